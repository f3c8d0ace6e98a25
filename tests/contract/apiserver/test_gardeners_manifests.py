"""Gardener's own manifests over the bus: whatever else may be against some of them, each of their fields is known."""

import json
from collections.abc import Iterator

from gardenbus.common.api.document import Document
from gardenbus.common.api.manifests.parser import parse
from tests.contract.apiserver.conftest import Apiserver
from tests.support.builders import a_shoot
from tests.support.shared_files import required_shared

UNKNOWN = "is no field of a"
MISSPELT = a_shoot("misspelt", spec={"provider": {"workers": [{"nam": "a"}]}})


def _gardeners() -> Iterator[tuple[str, list[Document]]]:
    files = (*required_shared("examples").glob("*.yaml"), *required_shared("golden").glob("landscape-*.json"))
    for file in sorted(files):
        if documents := [each for each in parse(file.read_bytes()) if "name" in each.get("metadata", {})]:
            yield file.name, documents


async def test_no_answer_to_a_strict_request_calls_a_field_unknown(apiserver: Apiserver) -> None:
    seen = 0
    for name, documents in (*_gardeners(), ("misspelt", [MISSPELT])):
        for document in documents:
            response = await apiserver.response("apply", document, validate="strict", dry_run="true")
            assert response.keys() >= {"ok"}, name
            assert (UNKNOWN in json.dumps(response)) == (document is MISSPELT), (name, response)
            seen += 1
    assert seen > 500


async def test_no_durable_request_is_rejected_or_warned_of_for_an_unknown_field(apiserver: Apiserver) -> None:
    for _, documents in _gardeners():
        await apiserver.publish("apply", {"kind": "List", "items": documents}, {"Gardenbus-Validate": "strict"})
    await apiserver.publish("apply", MISSPELT, {"Gardenbus-Validate": "strict"})
    await apiserver.until_handled()

    reasons = [each.headers["Gardenbus-Reason"] for each in await apiserver.rejected()]
    warnings = [each.event.message for each in await apiserver.warnings()]
    assert len(warnings) > 100
    (misspelt,) = [reason for reason in (*reasons, *warnings) if UNKNOWN in reason]
    assert misspelt.endswith("spec.provider.workers[0].nam: is no field of a Shoot; did you mean `name`?")
