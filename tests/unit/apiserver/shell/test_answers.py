"""Answers and rejections look as they are promised."""

import hashlib

import msgspec
import pytest

from gardenbus.apiserver.answers import answered, answered_together, reason_of, refused, rejection, single_line
from gardenbus.common.errors import BadRequest, FieldProblem, InvalidResource, NotFound


def test_an_answer_carries_its_result_and_warnings() -> None:
    answer = msgspec.json.decode(answered({"a": 1}, ["status is ignored"]).encoded())

    assert answer == {"ok": True, "result": {"a": 1}, "warnings": ["status is ignored"]}


def test_a_stored_manifest_is_passed_on_unparsed() -> None:
    assert (
        answered(msgspec.Raw(b'{"kind":"Shoot"}')).encoded() == b'{"ok":true,"result":{"kind":"Shoot"},"warnings":[]}'
    )


def test_a_refusal_names_each_field() -> None:
    error = InvalidResource("2 fields are wrong", (FieldProblem("spec.region", "is required"),))

    assert msgspec.json.decode(refused(error).encoded()) == {
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
        ("metadata.annotations[confirmation.gardener.cloud/deletion]: a Shoot is deleted only after", None),
        ("kind: 'foo' is not known here", "kind"),
        ("not UTF-8: byte 0", ""),
        ("seed aws: shoots are scheduled on it", ""),
        ("nested deeper than 64 levels", ""),
    ],
)
def test_a_message_that_begins_with_a_field_names_it(message: str, field: str | None) -> None:
    details = msgspec.json.decode(refused(BadRequest(message)).encoded())["error"]["details"]
    expected = message.partition(": ")[0] if field is None else field
    assert [detail["field"] for detail in details] == ([expected] if expected else [])
    assert all(detail["message"] and detail["message"] in message for detail in details)


def test_several_documents_are_ok_only_if_all_are() -> None:
    good, bad = answered({"a": 1}), refused(NotFound("shoot dev/a is not there"))

    assert answered_together([good, good]).result == [{"a": 1}, {"a": 1}]
    together = msgspec.json.decode(answered_together([good, bad]).encoded())
    assert not together["ok"]
    assert [part["ok"] for part in together["result"]] == [True, False]
    assert together["error"]["code"] == 404


def test_a_reason_is_one_line_of_ascii_that_fits_a_header() -> None:
    assert single_line("a\r\nGardenbus-Uid: forged\x00") == "a Gardenbus-Uid: forged"
    assert single_line("für") == "f\\xfcr"
    assert len(single_line("x" * 5000)) == 1024
    assert len(single_line("ü" * 5000)) == 1024


def test_a_rejected_message_keeps_its_first_64_kb_and_the_digest_of_all_of_it() -> None:
    body = b"x" * 100_000
    message = rejection(rejected_subject="garden.rejected", subject="garden.apply", body=body, reason="too\nlong")

    assert message.body == body[: 64 * 1024]
    assert message.headers == {
        "Gardenbus-Reason": "too long",
        "Gardenbus-Subject": "garden.apply",
        "Gardenbus-Sha256": hashlib.sha256(body).hexdigest(),
    }


def test_a_reason_names_the_fields() -> None:
    error = InvalidResource("not valid", (FieldProblem("spec.region", "is required"),))

    assert reason_of(error) == "Invalid: not valid [spec.region: is required]"
