from typing import Annotated

import msgspec
import pytest

from gardenbus.common.errors import SettingsInvalid
from gardenbus.common.runtime.settings import CommonSettings, load


class QueueSettings(CommonSettings, frozen=True, kw_only=True):
    batch: Annotated[int, msgspec.Meta(gt=0)] = 100


def test_defaults_hold_when_nothing_is_given():
    settings = load(CommonSettings, environ={})

    assert settings.nats_url == "nats://127.0.0.1:4222"
    assert settings.prefix == "garden"
    assert settings.health_port == 0
    assert settings.instance


def test_the_environment_is_read_by_the_names_of_the_fields():
    settings = load(QueueSettings, {"GARDENBUS_BATCH": "7", "GARDENBUS_HEALTH_PORT": "8080"})

    assert settings.batch == 7
    assert settings.health_port == 8080


@pytest.mark.parametrize("url", ["foo", "http://me:secret@nats:4222"])
def test_an_address_that_is_none_is_rejected_with_an_example_and_not_shown(url: str):
    with pytest.raises(SettingsInvalid) as caught:
        load(CommonSettings, {"GARDENBUS_NATS_URL": url})

    assert "GARDENBUS_NATS_URL: " in str(caught.value)
    assert str(caught.value).endswith("; it looks like nats://nats.example.org:4222")
    assert url not in str(caught.value)


def test_all_problems_are_told_at_once():
    environ = {"GARDENBUS_NATS_URL": "http://x", "GARDENBUS_HEALTH_PORT": "70000", "GARDENBUS_BATCH": "few"}

    with pytest.raises(SettingsInvalid) as caught:
        load(QueueSettings, environ)

    problems = caught.value.problems
    assert [problem.partition(":")[0] for problem in problems] == [
        "GARDENBUS_NATS_URL",
        "GARDENBUS_HEALTH_PORT",
        "GARDENBUS_BATCH",
    ]
    assert "Expected `int`, got `str`" in problems[2]


@pytest.mark.parametrize("prefix", ["a.b", "Garden", "a b", "*", ""])
def test_a_prefix_that_is_no_label_is_refused(prefix: str):
    with pytest.raises(SettingsInvalid):
        load(CommonSettings, environ={"GARDENBUS_PREFIX": prefix})
