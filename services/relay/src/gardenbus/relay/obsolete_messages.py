"""Removes announcements that nats-server has brought back, of what is gone or elsewhere by now.

Killed, nats-server forgets that a message was replaced on its subject, once its replacement was removed: after a
binding, its tombstone and the tombstone's removal, the binding is there again. (Removals by request it remembers.) An
older copy of its disk holds such messages anyway, and the store may have forgotten their objects since.

After each connection to the bus the subjects of OBJECTS and BINDINGS are compared with the store, a page at a time
while the relay goes on announcing. Removed is what was announced before the relay began to lead and the store shows no
longer: whatever is announced meanwhile has a higher sequence. Removing a message tears nothing down, as no gardenlet
takes its absence for a deletion.

Of the timers on QUEUES those are removed that have no schedule: no server fires them, and no queue delivers them.
"""

import asyncio
from collections import deque
from collections.abc import Mapping

import structlog

from gardenbus.common.api.index_keys import FOLLOWING_KINDS
from gardenbus.common.api.keys import Header, ObjectKey, Subjects
from gardenbus.common.controller.timers import SCHEDULE
from gardenbus.common.errors import NotFound, Transient
from gardenbus.common.ports.bus import Bus, StreamPosition
from gardenbus.relay import metrics
from gardenbus.relay.ports.outbox import Outbox, Shown

_log = structlog.stdlib.get_logger()

_COMPARED = {"OBJECTS": ">", "BINDINGS": ">", "QUEUES": "later.>"}
"""The streams, and what is compared of each."""

COMPARED_TOGETHER = 500
"""Subjects compared in one round trip."""


class ObsoleteMessages:
    """See the module. `step` is to be called again and again while `is_pending`."""

    def __init__(self, outbox: Outbox, bus: Bus, subjects: Subjects) -> None:
        self._outbox = outbox
        self._bus = bus
        self._subjects = subjects
        self._is_needed = True
        self._streams: deque[tuple[str, StreamPosition]] = deque()
        self._left: deque[tuple[str, Shown | None]] = deque()

    def require(self) -> None:
        """The server may have been killed: compare after the next recovery."""
        self._is_needed = True

    def begin(self, announced: Mapping[str, StreamPosition]) -> None:
        """Compare, from the start, what was announced up to these positions."""
        if self._is_needed:
            self._left.clear()
            self._streams = deque((name, announced[name]) for name in _COMPARED if name in announced)
            self._is_needed = not self._streams

    @property
    def is_pending(self) -> bool:
        """There is more to compare."""
        return bool(self._streams)

    async def step(self) -> None:
        """Compare one page. Raises NotFound when a stream is gone, Unavailable; it has to `begin` anew then."""
        if not self._streams:
            return
        try:
            await self._compare_page(*self._streams[0])
        except (NotFound, Transient):
            self._is_needed = True
            raise
        if not self._left:
            self._streams.popleft()

    async def _compare_page(self, name: str, announced: StreamPosition) -> None:
        stream = self._subjects.stream(name)
        if not self._left:
            if (await self._bus.position(stream)).created != announced.created:
                return
            found = await self._bus.subjects(stream, f"{self._subjects.prefix}.{_COMPARED[name]}")
            each_shown = ((subject, shown_on(subject, self._subjects)) for subject in found)
            self._left.extend(each for each in each_shown if each[1] or name == "QUEUES")
        page = [self._left.popleft() for _ in range(min(COMPARED_TOGETHER, len(self._left)))]
        are_obsolete = iter(await self._outbox.obsolete([shown for _, shown in page if shown]))
        obsolete = [subject for subject, shown in page if shown is None or next(are_obsolete)]
        are_removed = await asyncio.gather(*(self._remove(stream, each, announced.sequence) for each in obsolete))
        if removed := [subject for subject, is_removed in zip(obsolete, are_removed, strict=True) if is_removed]:
            metrics.OBSOLETE_REMOVED.labels(stream).inc(len(removed))
            _log.warning("announcements.removed", stream=stream, count=len(removed), subjects=removed[:10])

    async def _remove(self, stream: str, subject: str, upto: int) -> bool:
        """Remove a subject's last message, unless it is a timer, a tombstone (somebody obeys it yet), or newer."""
        last = await self._bus.last(stream, subject)
        if last is None or last.marker or last.sequence > upto:
            return False
        if last.headers.get(Header.VERB) == "deleted" or SCHEDULE in last.headers:
            return False
        await self._bus.purge(stream, subject, upto_sequence=last.sequence)
        return True


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
