"""What is kept of a rejected message."""

import hashlib

from gardenbus.common.controller.dead_letter import header_text, rejected_message, rejection_reason
from gardenbus.common.errors import FieldProblem, InvalidResource


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
