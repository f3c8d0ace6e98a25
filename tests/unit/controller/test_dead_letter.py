"""What is kept of a rejected message."""

import hashlib
import json
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from gardenbus.common.api.document import encode
from gardenbus.common.api.redaction import HIDDEN, LAST_APPLIED, UNREADABLE
from gardenbus.common.controller.dead_letter import header_text, rejected_message, rejection_reason
from gardenbus.common.errors import BadRequest, FieldProblem, InvalidResource
from gardenbus.diagnostics.rejected_messages import read_rejected_message
from gardenbus.diagnostics.replay import replay_message


def test_a_reason_is_one_line_of_ascii_that_fits_a_header() -> None:
    assert header_text("a\r\nGardenbus-Uid: forged\x00") == "a Gardenbus-Uid: forged"
    assert header_text("für") == "f\\xfcr"
    assert len(header_text("x" * 5000)) == 1024
    assert len(header_text("ü" * 5000)) == 1024


def test_a_rejected_message_keeps_its_first_64_kb_and_the_digest_of_all_of_it() -> None:
    body = b"x" * 100_000
    message = rejected_message(
        rejected_subject="garden.rejected", subject="garden.apply", body=body, reason="too\nlong"
    )

    assert message.body == body[: 64 * 1024]
    assert message.headers == {
        "Gardenbus-Reason": "too long",
        "Gardenbus-Subject": "garden.apply",
        "Gardenbus-Sha256": hashlib.sha256(body).hexdigest(),
    }


def test_a_reason_names_the_fields() -> None:
    error = InvalidResource("not valid", (FieldProblem("spec.region", "is required"),))

    assert rejection_reason(error) == "Invalid: not valid [spec.region: is required]"


AT = datetime(2026, 3, 1, tzinfo=UTC)
MARKER = "bWFya2VyLW9mLXRoZS1zZWNyZXQ="
A_SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "dev"}, "data": {"k": MARKER}}


@pytest.mark.parametrize(
    "body",
    [
        json.dumps(A_SECRET),
        json.dumps(A_SECRET).replace("Secret", "\\u0053ecret"),
        json.dumps([A_SECRET, A_SECRET]),
        json.dumps({"kind": "List", "items": [A_SECRET]}),
        json.dumps({**A_SECRET, "kind": "InternalSecret", "stringData": {"k": MARKER}}),
        json.dumps({**A_SECRET, "data": MARKER}),
        json.dumps({**A_SECRET, "data": [MARKER]}),
        json.dumps({"kind": "ShootState", "spec": {"gardener": [{"data": MARKER}]}}),
        json.dumps({"kind": "Secret", "metadata": {"annotations": {LAST_APPLIED: MARKER}}}),
        f"kind: Secret\ndata:\n  k: {MARKER}\n",
        f'{{"kind": "Secret", "data": {{"k": "{MARKER}"',
    ],
)  # fmt: skip
def test_a_secret_is_kept_without_its_data(body: str):
    whole = rejected_message(rejected_subject="r", subject="s", body=body.encode(), reason="why")
    part = rejected_message(rejected_subject="r", subject="s", body=b"{}", reason="why", rejected_part=body.encode())
    for message in (whole, part):
        assert MARKER.encode() not in message.body
        assert HIDDEN.encode() in message.body or message.body == UNREADABLE


@pytest.mark.parametrize(("begin", "end"), [("[", "]"), ('{"kind":', "}"), ('[{"a":', "}]")])
@pytest.mark.parametrize("levels", [60, 300, 600, 5_000])
def test_a_message_nested_ever_so_deep_is_kept(begin: str, end: str, levels: int):
    def kept(inner: str) -> bytes:
        body = begin * levels + inner + end * levels
        return rejected_message(rejected_subject="r", subject="s", body=body.encode(), reason="x").body

    assert kept("0") == (begin * levels + "0" + end * levels).encode()[: 64 * 1024]
    assert MARKER.encode() not in kept(json.dumps(A_SECRET))


def test_what_holds_no_secret_is_kept_as_it_was():
    body = b'{"kind": "Shoot",   "spec": {"token": "t"}}'
    assert rejected_message(rejected_subject="r", subject="s", body=body, reason="why").body == body


async def test_what_was_kept_without_its_data_is_not_sent_again():
    original = read_rejected_message(7, AT, {"Gardenbus-Subject": "garden.apply"}, b"")
    for body in (
        rejected_message(rejected_subject="r", subject="s", body=encode(A_SECRET), reason="w").body,
        UNREADABLE,
    ):
        with pytest.raises(BadRequest, match="the data of its Secret was not kept"):
            await replay_message(cast("Any", None), original, body)
