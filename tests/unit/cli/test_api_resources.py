"""`api-resources` and `--validate`."""

from typing import Any

import pytest

from gardenbus.cli.client.api import ApiClient
from gardenbus.cli.commands.api_resources import group_of, scope_of, selected
from gardenbus.cli.commands.options import validation_of
from gardenbus.common.api.field_validation import FieldValidation
from gardenbus.common.api.keys import Subjects
from gardenbus.common.errors import BadRequest

SERVED: list[dict[str, Any]] = [
    {"apiVersion": "v1", "plural": "pods", "namespaced": True},
    {"apiVersion": "core.gardener.cloud/v1beta1", "plural": "shoots", "namespaced": True},
    {"apiVersion": "core.gardener.cloud/v1beta1", "plural": "seeds", "namespaced": False},
]


@pytest.mark.parametrize(
    ("namespaced", "group", "names"),
    [
        (None, None, ["pods", "seeds", "shoots"]),
        (True, None, ["pods", "shoots"]),
        (False, None, ["seeds"]),
        (None, "", ["pods"]),
        (True, "core.gardener.cloud", ["shoots"]),
    ],
)
def test_resources_are_chosen_by_scope_and_group(namespaced: bool | None, group: str | None, names: list[str]) -> None:
    assert [each["plural"] for each in selected(SERVED, namespaced=namespaced, group=group)] == names
    assert group_of(SERVED[0]) == ""


def test_namespaced_takes_true_and_false() -> None:
    assert [scope_of(text) for text in (None, "true", "false")] == [None, True, False]
    with pytest.raises(BadRequest, match="--namespaced=maybe: true or false"):
        scope_of("maybe")


@pytest.mark.parametrize(("word", "meant"), [("true", "strict"), ("warn", "warn"), ("false", "ignore")])
def test_validate_takes_the_words_of_kubectl(word: str, meant: str) -> None:
    assert validation_of(word) is FieldValidation(meant)
    with pytest.raises(BadRequest, match="--validate: must be strict, warn or ignore, not 'maybe'"):
        validation_of("maybe")


class RecordingBus:
    """A bus that keeps what headers a request had."""

    def __init__(self) -> None:
        self.headers: list[dict[str, str]] = []
        self.subjects: list[str] = []

    async def request(self, subject: str, *_: Any, headers: dict[str, str] | None = None, **__: Any) -> bytes:
        self.headers.append(headers or {})
        self.subjects.append(subject)
        return b'{"ok":true}'


async def test_a_validation_other_than_strict_goes_with_each_request() -> None:
    bus: Any = RecordingBus()
    api = ApiClient(bus, Subjects())
    for validation in FieldValidation:
        await api.validating(validation).request("apply")
    assert bus.headers == [{}, {"Gardenbus-Validate": "warn"}, {"Gardenbus-Validate": "ignore"}]


async def test_an_operator_sends_requests_by_name_and_may_still_look_at_streams() -> None:
    bus: Any = RecordingBus()
    api = ApiClient(bus, Subjects(), name="operator")
    await api.request("apply")
    await api.validating(FieldValidation.WARN).request("apply")
    await ApiClient(bus, Subjects()).request("apply")
    assert bus.subjects == ["garden.as.operator.api.apply", "garden.as.operator.api.apply", "garden.api.apply"]
    assert api.bus is bus
