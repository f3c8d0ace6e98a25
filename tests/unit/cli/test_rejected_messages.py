"""What is kept of a message that could not be taken, read for people."""

import hashlib
from datetime import UTC, datetime

import pytest

from gardenbus.diagnostics.rejected_messages import (
    RejectedMessage,
    as_text,
    body_of,
    fields_in,
    read_rejected_message,
)

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SHOOT = b'{"kind":"Shoot","metadata":{"name":"apollo","namespace":"garden-dev"}}'


def rejected(body: bytes = SHOOT, subject: str = "garden.apply", reason: str = "Invalid: no") -> RejectedMessage:
    digest = hashlib.sha256(body).hexdigest()
    headers = {"Gardenbus-Reason": reason, "Gardenbus-Subject": subject, "Gardenbus-Sha256": digest}
    return read_rejected_message(7, AT, headers, body)


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        ("spec.region: is required", ("spec.region",)),
        ("Shoot garden-dev/a is invalid: spec.region: is required", ("spec.region",)),
        ("2 fields are wrong [spec.region: is required; spec.provider.workers[0].name: is taken]",
         ("spec.region", "spec.provider.workers[0].name")),
        ("kind: 'foo' is not known here", ("kind",)),
        ("its handler failed 5 times and did not end it", ()),
        ("not UTF-8: byte 0", ()),
    ],
)  # fmt: skip
def test_the_fields_that_a_refusal_names_are_found(message: str, fields: tuple[str, ...]) -> None:
    assert fields_in(message) == fields


def test_a_reason_is_told_apart_from_its_message() -> None:
    assert (rejected().reason, rejected().message) == ("Invalid", "no")
    assert rejected(reason="something else").message == "something else"


@pytest.mark.parametrize(
    ("body", "subject", "named"),
    [
        (SHOOT, "garden.apply", "shoot garden-dev/apollo"),
        (b'{"kind":"shoot","namespace":"garden-dev","name":"apollo"}', "garden.delete", "shoot garden-dev/apollo"),
        (b"\xff\xfe", "garden.report.aws.shoot.garden-dev.apollo", "shoot garden-dev/apollo"),
        (b"", "garden.report.aws.seed._.aws.eu", "seed aws.eu"),
        (b"", "garden.queue.migration.garden-dev.apollo", "garden-dev/apollo"),
        (b"[", "garden.apply", ""),
    ],
)
def test_the_object_is_named_as_far_as_it_can_be_known(body: bytes, subject: str, named: str) -> None:
    assert rejected(body, subject).object == named


def test_what_was_cut_is_told_from_what_is_only_part_of_a_message() -> None:
    whole = rejected(b"x" * 65_536)
    assert not whole.is_cut
    assert whole._replace(digest="of more").is_cut
    assert not rejected()._replace(digest="of a list of documents").is_cut


def test_a_document_is_edited_as_yaml_and_sent_as_json() -> None:
    text = as_text(rejected())
    assert text.startswith("kind: Shoot\n")
    assert body_of(f"# why\n{text}") == SHOOT
    assert body_of("a: 1\n---\nb: 2\n") == b"a: 1\n---\nb: 2\n"
    for broken in ("# only why\n", "a: ["):
        with pytest.raises(ValueError, match=r"nothing is left|not YAML"):
            body_of(broken)
