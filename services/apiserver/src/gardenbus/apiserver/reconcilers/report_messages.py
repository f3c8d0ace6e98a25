"""Reports as they are read off the bus: who speaks of what, and what is said. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from gardenbus.apiserver.decide.manifests import read_values
from gardenbus.apiserver.reconcilers import report_rules
from gardenbus.common.errors import BadRequest, GardenbusError, Unsupported
from gardenbus.common.ports.bus import Work
from gardenbus.common.ports.clock import timestamp
from gardenbus.common.resources.derived import FOLLOWING_KINDS
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.keys import Header, ObjectKey

QUESTIONS = ("exists", "gone")
"""What the header Gardenbus-Question may say of a shoot, or of what follows one: `exists` has its binding or view (or
that there is none) announced again; `gone` tells that nothing of it is left on the seed, so that the tombstone has done
its work."""

QUESTIONED_KINDS = ("shoot", *sorted(FOLLOWING_KINDS))


class Report(msgspec.Struct, frozen=True):
    """One report, read."""

    work: Work
    seed: str
    key: ObjectKey
    verb: str
    uid: str
    at: str
    sequence: int
    body: Document
    obeyed: int = 0
    """Of a `gone`: where the tombstone stands in BINDINGS."""


class Refused(Exception):
    """A report that is not taken."""

    def __init__(self, work: Work, error: GardenbusError, about: ObjectKey | None = None) -> None:
        super().__init__(error.message)
        self.work = work
        self.error = error
        self.about = about


def read_report(work: Work, seed: str, key: ObjectKey) -> Report:
    """Read a report's headers and body. Raises Terminal."""
    message = work.message
    question = message.headers.get(Header.QUESTION)
    verb = question or message.headers.get(Header.VERB, "status")
    if question and (question not in QUESTIONS or key.kind not in QUESTIONED_KINDS):
        kinds = ", ".join(QUESTIONED_KINDS)
        raise Unsupported(f"{Header.QUESTION}: {question[:40]!r} is none of {', '.join(QUESTIONS)}, of {kinds}")
    if not question and verb not in report_rules.VERBS:
        raise Unsupported(f"{Header.VERB}: {verb[:40]!r} is none of {', '.join(report_rules.VERBS)}")
    body: Document = {}
    if verb not in (*QUESTIONS, "delete"):
        values: Sequence[Any] = read_values(message.body)
        if len(values) != 1 or not isinstance(values[0], dict):
            raise BadRequest("a report is one JSON object")
        body = cast("Document", values[0])
    return Report(
        work=work,
        seed=seed,
        key=key,
        verb=verb,
        uid=message.headers.get(Header.UID, ""),
        at=timestamp(message.at),
        sequence=message.sequence,
        body=body,
        obeyed=_obeyed(message.headers) if verb == "gone" else 0,
    )


def _obeyed(headers: Mapping[str, str]) -> int:
    """The sequence of the tombstone in a `gone`. Raises BadRequest."""
    written = headers.get(Header.SEQUENCE, "")
    if not (written.isascii() and written.isdecimal() and len(written) <= 20):  # noqa: PLR2004 - a 64-bit number
        raise BadRequest(f"{Header.SEQUENCE}: must be the tombstone's sequence")
    return int(written)
