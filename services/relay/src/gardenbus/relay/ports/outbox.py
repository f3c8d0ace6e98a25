"""Outbox: the relay's side of the store, with the lead among relays and the repair of what went back.

Only one relay leads at a time; every call but `lead` raises `Conflict` when somebody else does by now, and when the
store is another one than it was at the last `lead`: restarted, or gone back to an older copy.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

import msgspec

from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.bus import StreamPosition
from gardenbus.common.ports.recovery import Recovery
from gardenbus.common.ports.store import EventRecord
from gardenbus.common.ports.stream_history import StreamHistories, StreamLoss

ChangeType = Literal["added", "modified", "deleted"]


class ObjectEntry(msgspec.Struct, frozen=True):
    """An object was written. `left`: seeds that it no longer concerns; `unblock_index`: the counter after the write.

    `trace`: the traceparent of the write ("": not traced).
    """

    entry: str
    key: ObjectKey
    version: int
    uid: str
    verb: ChangeType
    with_binding: bool
    left: tuple[str, ...]
    unblock_index: int
    trace: str = ""


class QueueEntry(msgspec.Struct, frozen=True):
    """An object is to be enqueued: `tail` of the queue's subject."""

    entry: str
    tail: str
    trace: str = ""


class EventEntry(msgspec.Struct, frozen=True):
    """An Event, seen `count` times since `first_at`."""

    entry: str
    event: EventRecord
    event_id: str
    count: int
    first_at: str
    at: str


OutboxEntry = ObjectEntry | QueueEntry | EventEntry


class OutboxPage(msgspec.Struct, frozen=True):
    """The head of the outbox, in order, and the current state of each object in it (None: it is gone).

    `audiences`: of the objects that follow a shoot, the seeds that the shoot concerns now. `removed`: of objects that
    are gone, the version of the last removal, as far as it is remembered. `recovery_id`: of the store's recovery.
    """

    entries: Sequence[OutboxEntry]
    objects: Mapping[ObjectKey, StoredObject | None]
    audiences: Mapping[ObjectKey, tuple[str, ...]] = msgspec.field(default_factory=dict[ObjectKey, tuple[str, ...]])
    removed: Mapping[ObjectKey, int] = msgspec.field(default_factory=dict[ObjectKey, int])
    recovery_id: str = ""


class Leadership(msgspec.Struct, frozen=True):
    """Leadership of the caller, and the store's openness for writes.

    `is_continued`: nobody else has led since the caller did, and the store has neither restarted nor gone back.
    """

    leading: bool
    is_open: bool
    is_continued: bool = False


class Restored(msgspec.Struct, frozen=True):
    """State of one object on the bus: its document, or None for a tombstone."""

    key: ObjectKey
    uid: str
    version: int
    document: Document | None


class RecoveryStart(NamedTuple):
    """Grounds on which a store that is opened has to recover ("" for none that the relay knows of).

    `stream` and `position`: name and end of REQUESTS. What was ordered up to there, or to where the store knows of it,
    was ordered before the recovery.
    """

    cause: str = ""
    stream: str = ""
    position: StreamPosition = StreamPosition(0, 0)


NO_CAUSE = RecoveryStart()


class RecoveryProgress(NamedTuple):
    """The store's recovery (None: there is none), and whether it has just ended."""

    recovery: Recovery | None = None
    has_ended: bool = False


class IndexedUpTo(NamedTuple):
    """Progress of a walk over what an older version stored: up to a version; `is_end`: nothing is left after it."""

    version: int
    is_end: bool


class Shown(NamedTuple):
    """Subject of an announcement: of an object's changes, or (`seed`) of what the gardenlet of a seed sees of it."""

    key: ObjectKey
    seed: str = ""


class Outbox(StreamHistories, Protocol):
    """See the module."""

    async def lead(self, ttl_seconds: float) -> Leadership:
        """Take or keep the lead for a while."""
        ...

    async def resign(self) -> None:
        """Give the lead back."""
        ...

    async def head(self, limit: int, after: str | None = None) -> OutboxPage:
        """Read the oldest entries, or the oldest after one."""
        ...

    async def wait(self, seconds: float) -> None:
        """Return when an entry is there, or after a while."""
        ...

    async def trim(self, last: str | None, positions: Mapping[str, StreamPosition]) -> None:
        """Forget the entries up to `last`, and remember how far the streams had come."""
        ...

    async def advance(self, last: str, positions: Mapping[str, StreamPosition], limit: int) -> OutboxPage:
        """`trim`, and return the oldest entries after `last`."""
        ...

    async def positions(self) -> Mapping[str, StreamPosition]:
        """Positions of the streams at the last trim."""
        ...

    async def open(self, version: int, unblock_index: int, start: RecoveryStart = NO_CAUSE) -> None:
        """Open the store for writes; versions go on well above `version` and above all handed out before.

        A recovery begins if there is a cause: in `start`, because it was restored from a backup, or as no relay has led
        it for long. One that lasts goes on.
        """
        ...

    async def advance_recovery(self, waited: str, *, announces: bool) -> RecoveryProgress:
        """End the recovery if it is over. `waited`: the id of one that has lasted for a lease period.

        `announces`: silent Seeds are announced again, with its id.
        """
        ...

    async def restore(self, restored: Restored) -> bool:
        """Put back what the bus has in a higher version than the (closed) store; returns True if it had."""
        ...

    async def restore_many(self, restored: Sequence[Restored]) -> Sequence[bool]:
        """Put several back, in order, in one round trip; each is checked on its own, as by `restore`."""
        ...

    async def reannounce(self, above_version: int) -> None:
        """Append everything stored or removed above a version to the outbox again."""
        ...

    async def obsolete(self, shown: Sequence[Shown]) -> Sequence[bool]:
        """For each, True if the store has no such object, or none that its seed may see. Raises Unavailable."""
        ...

    async def requeue_pending(self, *, untried_only: bool = False) -> None:
        """Queue every pending shoot, and every one that migrates, again.

        With `untried_only` those that were marked unschedulable are left out; their unblocking is queued instead.
        """
        ...

    async def index_older(self, after: int) -> IndexedUpTo:
        """Index objects after a version, as an older version of ours has stored them without today's indexes.

        The open store is not walked again once an end was reached. Raises Unavailable.
        """
        ...

    async def count_older(self) -> bool:
        """Count some of what an older version stored: shoots by state, objects by namespace; False once none is left.

        Each call goes on where the last one ended. Raises Unavailable.
        """
        ...

    async def compare_stream(self, stream: str, created: int, acknowledged: int) -> bool:
        """Note as lost what a consumer has acknowledged and the store (closed, as it went back) has not seen.

        Returns whether there was any.
        """
        ...

    async def report_loss(self, loss: StreamLoss, event: EventRecord) -> bool:
        """Record the Event about a loss; returns False, and does nothing, if that was done before."""
        ...

    async def collect_tombstones(self, before: str, floor: StreamPosition) -> int:
        """Forget objects removed before an instant whose last request is at or below `floor`; returns their number."""
        ...
