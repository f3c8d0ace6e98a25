"""Answers and rejections look as they are promised."""

import msgspec
import pytest

from gardenbus.apiserver.domain.responses import (
    combined_response,
    error_response,
    success_response,
)
from gardenbus.common.errors import BadRequest, FieldProblem, InvalidResource, NotFound


def test_an_answer_carries_its_result_and_warnings() -> None:
    response = msgspec.json.decode(success_response({"a": 1}, ["status is ignored"]).encoded())

    assert response == {"ok": True, "result": {"a": 1}, "warnings": ["status is ignored"]}


def test_a_stored_manifest_is_passed_on_unparsed() -> None:
    assert (
        success_response(msgspec.Raw(b'{"kind":"Shoot"}')).encoded()
        == b'{"ok":true,"result":{"kind":"Shoot"},"warnings":[]}'
    )


def test_a_refusal_names_each_field() -> None:
    error = InvalidResource("2 fields are wrong", (FieldProblem("spec.region", "is required"),))

    assert msgspec.json.decode(error_response(error).encoded()) == {
        "ok": False,
        "error": {
            "code": 422,
            "reason": "Invalid",
            "message": "2 fields are wrong",
            "details": [{"field": "spec.region", "message": "is required"}],
        },
    }


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ("metadata.name: is needed: give the object a name", "metadata.name"),
        ("document 2: spec.x[0].y: given twice: keep one", "spec.x[0].y"),
        ("metadata.annotations[confirmation.gardener.cloud/deletion]: the Shoot is deleted only after", None),
        ("kind: 'foo' is not known here", "kind"),
        ("not UTF-8: byte 0", ""),
        ("seed aws: shoots are scheduled on it", ""),
        ("nested deeper than 64 levels", ""),
    ],
)
def test_a_message_that_begins_with_a_field_names_it(message: str, field: str | None) -> None:
    details = msgspec.json.decode(error_response(BadRequest(message)).encoded())["error"]["details"]
    expected = message.partition(": ")[0] if field is None else field
    assert [detail["field"] for detail in details] == ([expected] if expected else [])
    assert all(detail["message"] and detail["message"] in message for detail in details)


def test_several_documents_are_ok_only_if_all_are() -> None:
    good, bad = success_response({"a": 1}), error_response(NotFound("shoot dev/a not found"))

    assert combined_response([good, good]).result == [{"a": 1}, {"a": 1}]
    together = msgspec.json.decode(combined_response([good, bad]).encoded())
    assert not together["ok"]
    assert [part["ok"] for part in together["result"]] == [True, False]
    assert together["error"]["code"] == 404
