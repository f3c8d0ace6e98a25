"""Removes announcements that nats-server has brought back, of what is gone or elsewhere by now.

Killed, nats-server forgets that a message was replaced on its subject, once its replacement was removed: after a
binding, its tombstone and the tombstone's removal, the binding is there again. (Removals by request it remembers.) An
older copy of its disk holds such messages anyway, and the store may have forgotten their objects since.

After each connection to the bus the messages of OBJECTS and BINDINGS are compared with the store, a page at a time
while the relay goes on announcing. Removed is what was announced before the relay began to lead and the store shows no
longer: whatever is announced meanwhile has a higher sequence. Removing a message tears nothing down, as no gardenlet
takes its absence for a deletion. (The subjects alone would be less to read, but the server sorts a million of them for
each part of the list, and does nothing else with the stream meanwhile.)

Of the timers on QUEUES those are removed that have no schedule: no server fires them, and no queue delivers them.
"""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence

import structlog

from gardenbus.common.api.index_keys import FOLLOWING_KINDS
from gardenbus.common.api.keys import Header, ObjectKey, Subjects
from gardenbus.common.controller.timers import SCHEDULE
from gardenbus.common.errors import NotFound
from gardenbus.common.ports.bus import Bus, StreamMessage, StreamPosition
from gardenbus.relay import metrics
from gardenbus.relay.ports.outbox import Outbox, Shown

_log = structlog.stdlib.get_logger()

_COMPARED = {"OBJECTS": ">", "BINDINGS": ">", "QUEUES": "later.>"}
"""The streams, and what is compared of each."""

COMPARED_TOGETHER = 500
"""Messages compared in one round trip."""


class ObsoleteMessages:
    """See the module. `step` is to be called again and again while `is_pending`."""

    def __init__(self, outbox: Outbox, bus: Bus, subjects: Subjects) -> None:
        self._outbox = outbox
        self._bus = bus
        self._subjects = subjects
        self._is_needed = True
        self._streams: deque[tuple[str, StreamPosition]] = deque()
        self._next_sequence = 0

    def require(self) -> None:
        """The server may have been killed: compare after the next recovery."""
        self._is_needed = True

    def begin(self, announced: Mapping[str, StreamPosition]) -> None:
        """Compare, from the start, what was announced up to these positions."""
        if self._is_needed:
            self._next_sequence = 0
            self._streams = deque((name, announced[name]) for name in _COMPARED if name in announced)
            self._is_needed = not self._streams

    @property
    def is_pending(self) -> bool:
        """There is more to compare."""
        return bool(self._streams)

    async def step(self) -> None:
        """Compare one page. Raises NotFound when a stream is gone (it has to `begin` anew then), Unavailable."""
        if not self._streams:
            return
        try:
            is_end = await self._compare_page(*self._streams[0])
        except NotFound:
            self._is_needed = True
            raise
        if is_end:
            self._streams.popleft()
            self._next_sequence = 0

    async def _compare_page(self, name: str, announced: StreamPosition) -> bool:
        """Compare from the next sequence; True when it was the stream's last page."""
        stream = self._subjects.stream(name)
        if not self._next_sequence and (await self._bus.position(stream)).created != announced.created:
            return True
        page = await self._bus.messages_from(
            stream, f"{self._subjects.prefix}.{_COMPARED[name]}", self._next_sequence, COMPARED_TOGETHER
        )
        await self._remove_obsolete(stream, [each for each in page if each.sequence <= announced.sequence])
        if page:
            self._next_sequence = page[-1].sequence + 1
        return not page or self._next_sequence > announced.sequence

    async def _remove_obsolete(self, stream: str, page: Sequence[StreamMessage]) -> None:
        compared = [(message, shown_on(message.subject, self._subjects)) for message in page if _is_comparable(message)]
        read = [shown for _, shown in compared if shown]
        are_obsolete = iter(await self._outbox.obsolete(read) if read else ())
        obsolete = [
            message
            for message, shown in compared
            if (next(are_obsolete) if shown else stream == self._subjects.stream("QUEUES"))
        ]
        await asyncio.gather(*(self._bus.purge(stream, each.subject, upto_sequence=each.sequence) for each in obsolete))
        if obsolete:
            metrics.OBSOLETE_REMOVED.labels(stream).inc(len(obsolete))
            subjects = [each.subject for each in obsolete[:10]]
            _log.warning("announcements.removed", stream=stream, count=len(obsolete), subjects=subjects)


def _is_comparable(message: StreamMessage) -> bool:
    """Neither a timer, nor a tombstone: somebody obeys that yet."""
    is_tombstone = message.marker or message.headers.get(Header.VERB) == "deleted"
    return not is_tombstone and SCHEDULE not in message.headers


def shown_on(subject: str, subjects: Subjects) -> Shown | None:
    """Object and seed of an announcement's subject; None for one that no relay of this version announces on."""
    kind, _, tail = subject.removeprefix(f"{subjects.prefix}.").partition(".")
    try:
        if kind == "changed":
            return Shown(ObjectKey.from_tail(tail))
        seed, _, tail = tail.partition(".")
        if kind == "binding":
            return Shown(ObjectKey.from_tail(f"shoot.{tail}"), seed)
        key = ObjectKey.from_tail(tail)
    except ValueError:
        return None
    return Shown(key, seed) if kind == "view" and key.kind in ("seed", *FOLLOWING_KINDS) else None
