"""Reports as they are read off the bus."""

from collections.abc import Mapping

import msgspec

from gardenbus.apiserver.domain import report_admission
from gardenbus.common.api.document import Document
from gardenbus.common.api.index_keys import FOLLOWING_KINDS
from gardenbus.common.api.keys import Header, ObjectKey
from gardenbus.common.api.manifests.parser import read_object
from gardenbus.common.errors import BadRequest, GardenbusError, Unsupported, without_frames
from gardenbus.common.ports.bus import QueueMessage
from gardenbus.common.ports.clock import timestamp

QUESTIONS = ("exists", "gone", "inventory")
"""Values of the header Gardenbus-Question, for a shoot or what follows one: `exists` has its binding or view (or that
there is none) announced again; `gone` reports that nothing of it is left on the seed, so that its tombstone can be
removed. `inventory`, of a Seed, is all that the seed runs (header Gardenbus-Recovery: for which recovery)."""

QUESTIONED_KINDS = ("shoot", *sorted(FOLLOWING_KINDS), "membercluster", "seed", "work")


class Report(msgspec.Struct, frozen=True):
    """One report, read."""

    queued: QueueMessage
    seed: str
    key: ObjectKey
    verb: str
    uid: str
    at: str
    sequence: int
    body: Document
    incarnation: int
    tombstone_sequence: int = 0
    """Of a `gone`: the sequence of the tombstone in BINDINGS."""
    recovery_id: str = ""
    """Of an `inventory`: the recovery that it is for."""


class RejectedReport(Exception):
    """A report that is rejected."""

    def __init__(self, queued: QueueMessage, error: GardenbusError, about: ObjectKey | None = None) -> None:
        super().__init__(error.message)
        self.queued = queued
        self.error = error
        self.about = about
        without_frames(error)


def read_report(queued: QueueMessage, seed: str, key: ObjectKey, incarnation: int) -> Report:
    """Read the headers and body of a report that belongs to an incarnation of REPORTS. Raises Terminal."""
    message = queued.message
    question = message.headers.get(Header.QUERY)
    verb = question or message.headers.get(Header.VERB, "status")
    if question and (question not in QUESTIONS or key.kind not in QUESTIONED_KINDS):
        kinds = ", ".join(QUESTIONED_KINDS)
        raise Unsupported(f"{Header.QUERY}: {question[:40]!r} is none of {', '.join(QUESTIONS)}, of {kinds}")
    if not question and verb not in report_admission.VERBS:
        raise Unsupported(f"{Header.VERB}: {verb[:40]!r} is none of {', '.join(report_admission.VERBS)}")
    body: Document = {}
    if verb not in ("exists", "gone", "delete"):
        body = read_object(message.body, "a report is one JSON object")
    if verb == "exists":
        body = _held(message.body)
    return Report(
        queued=queued,
        seed=seed,
        key=key,
        verb=verb,
        uid=message.headers.get(Header.UID, ""),
        at=timestamp(message.at),
        sequence=message.sequence,
        body=body,
        incarnation=incarnation,
        tombstone_sequence=_tombstone_sequence(message.headers) if verb == "gone" else 0,
        recovery_id=message.headers.get(Header.RECOVERY, "") if verb == "inventory" else "",
    )


def _held(body: bytes) -> Document:
    """The object as the sender of an `exists` holds it; empty where that cannot be read: the question counts."""
    try:
        return read_object(body, "")
    except GardenbusError:
        return {}


def _tombstone_sequence(headers: Mapping[str, str]) -> int:
    """The sequence of the tombstone in a `gone`. Raises BadRequest."""
    written = headers.get(Header.SEQUENCE, "")
    if not (written.isascii() and written.isdecimal() and len(written) <= 20):  # noqa: PLR2004 - a 64-bit number
        raise BadRequest(f"{Header.SEQUENCE}: must be the tombstone's sequence")
    return int(written)
