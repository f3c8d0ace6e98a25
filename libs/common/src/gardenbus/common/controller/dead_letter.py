"""Dead letter: keeps what no consumer can process, with the reason, so that an operator can inspect and replay it.

One policy for every consumer of a work queue: the message (at most 64 KB of it) goes to
`<prefix>.rejected.<verb>.<sender>`, of which the stream keeps a share for each sender, it is counted and logged (the
same of one sender once a minute, with `times`), and the object that it is about, where one is stored, gets a Warning
Event. May be repeated.
"""

import hashlib
import time
from collections.abc import Callable

from prometheus_client import Counter

from gardenbus.common.api.document import Document, StoredObject, encode
from gardenbus.common.api.keys import CLUSTER_SCOPE, Header, ObjectKey, Subjects
from gardenbus.common.api.redaction import without_secrets
from gardenbus.common.controller.reconcile_ids import current_reconcile_id
from gardenbus.common.controller.repeated_lines import RepeatedLines
from gardenbus.common.errors import GardenbusError, InvalidResource, Terminal
from gardenbus.common.ports import tracing
from gardenbus.common.ports.bus import Message, QueueMessage, StreamMessage
from gardenbus.common.ports.connections import Connections
from gardenbus.common.ports.store import EventRecord

REJECTED = Counter(
    "gardenbus_rejected_messages_total",
    "Messages put on the subject for rejected ones, by the reason of the error.",
    ["reason"],
)

BODY_LIMIT = 64 * 1024
HEADER_LIMIT = 1024
"""Bytes of a header that states a reason or a subject."""

EVENT_TEXT_LIMIT = 1024
"""Characters of an Event's message, as Kubernetes has it."""

ObjectOf = Callable[[str], ObjectKey | None]
"""The object that a message is about, by its subject; None where it names none."""


class HandlerFailed(Terminal):
    """A poison message: delivered too often without its handler finishing it."""

    reason = "HandlerFailed"


def no_object(_subject: str) -> None:
    """Messages of this queue are about no object."""


def queue_object(subjects: Subjects, queue: str, kind_in: Callable[[str], str]) -> ObjectOf:
    """Objects of the subjects `<prefix>.queue.<queue>.<namespace>.<name>`; `kind_in` has the kind by namespace."""
    prefix = subjects.queue_of(queue).removesuffix(">")

    def object_of(subject: str) -> ObjectKey:
        scope, _, name = subject.removeprefix(prefix).partition(".")
        namespace = "" if scope == CLUSTER_SCOPE else scope
        return ObjectKey(kind_in(namespace), namespace, name)

    return object_of


class DeadLetter:
    """Rejects messages for one consumer.

    `reporter` signs its Events. An Event's reason is `event_reason`, or else the error's; its text begins with
    `consequence` where one is given.
    """

    def __init__(
        self,
        connections: Connections,
        *,
        reporter: str,
        object_of: ObjectOf = no_object,
        event_reason: str = "",
        consequence: str = "",
    ) -> None:
        self._bus = connections.bus
        self._store = connections.store
        self._subjects = connections.subjects
        self._reporter = reporter
        self._object_of = object_of
        self._event_reason = event_reason
        self._consequence = consequence
        self._lines = RepeatedLines("message.rejected", time.monotonic)

    async def reject(
        self,
        message: StreamMessage,
        error: GardenbusError,
        *,
        document: Document | None = None,
        about: StoredObject | None = None,
        action: str = "",
    ) -> None:
        """Keep a message, or the one `document` of it at fault, and warn about the object: `about`, or the subject's.

        Raises Unavailable: the message must then not be acknowledged.
        """
        reason, rejected_subject = rejection_reason(error), self._subjects.rejected(message.subject)
        await self._bus.publish(
            rejected_message(
                rejected_subject=rejected_subject,
                subject=message.subject,
                body=message.body,
                reason=reason,
                rejected_part=None if document is None else encode(document),
            )
        )
        REJECTED.labels(error.reason).inc()
        self._lines.warn(
            rejected_subject,
            reason[:500],
            subject=message.subject,
            sequence=message.sequence,
            reason=reason[:500],
            **tracing.fields(tracing.received(message.headers)),
        )
        key = self._object_of(message.subject) if about is None else None
        about = await self._store.get(key) if key is not None else about
        if about is not None:
            await self._warn(about, error, action)

    async def _warn(self, about: StoredObject, error: GardenbusError, action: str) -> None:
        text = f"{self._consequence}: {error.message}" if self._consequence else rejection_reason(error)
        await self._store.record_event(
            EventRecord(
                about=about.key,
                uid=about.uid,
                type="Warning",
                reason=self._event_reason or error.reason,
                message=text[:EVENT_TEXT_LIMIT],
                reporter=self._reporter,
                action=action,
            )
        )

    async def reject_poison(self, message: QueueMessage) -> None:
        """Reject a message that was delivered too often, then acknowledge it. Raises Unavailable."""
        failures = message.deliveries - 1
        await self.reject(message.message, HandlerFailed(f"its handler failed {failures} times and did not end it"))
        await message.ack()

    async def reject_deadly(self, message: QueueMessage, death: str) -> None:
        """Reject a message that killed the process in which it was handled alone, then acknowledge it.

        `death` says how the process ended. Raises Unavailable.
        """
        killed = HandlerFailed(f"it killed its handler twice, the second time alone: {death}")
        await self.reject(message.message, killed)
        await message.ack()


def rejected_message(
    *, rejected_subject: str, subject: str, body: bytes, reason: str, rejected_part: bytes | None = None
) -> Message:
    """Message for the rejected subject: the first 64 KB (of `rejected_part` where only one document is at fault).

    A Secret is kept without its data: whoever looks at what was rejected reads no credentials in it.

    Headers carry the reason, the subject that it came from, the SHA-256 of the whole message, and the `reconcile_id`
    of the lines in the log that are about it.
    """
    reconcile_id = current_reconcile_id()
    return Message(
        subject=rejected_subject,
        body=without_secrets(body if rejected_part is None else rejected_part)[:BODY_LIMIT],
        headers={
            Header.REASON: header_text(reason),
            Header.SUBJECT: header_text(subject),
            Header.SHA256: hashlib.sha256(body).hexdigest(),
            **({Header.RECONCILE_ID: reconcile_id} if reconcile_id else {}),
        },
    )


def rejection_reason(error: GardenbusError) -> str:
    """An error in one line, with its fields."""
    problems = error.problems if isinstance(error, InvalidResource) else ()
    fields = "; ".join(f"{problem.field}: {problem.message}" for problem in problems)
    return f"{error.reason}: {error.message}" + (f" [{fields}]" if fields and fields not in error.message else "")


def header_text(text: str, limit: int = HEADER_LIMIT) -> str:
    """Text that is safe in a header: printable ASCII, one line, at most `limit` bytes."""
    line = "".join(character if character.isprintable() else " " for character in text)
    line = " ".join(line.split()).encode("ascii", "backslashreplace").decode()
    return line if len(line) <= limit else line[: limit - 3] + "..."
