"""Writes the landscape's history into the stream HISTORY: a point a minute at the most, with what happened before it.

Each replica does the same at each minute:

1. read the end of the stream, and the last point;
2. nothing to do if it is of this minute: another replica wrote it;
3. observe the landscape, and decide on the next point from it and the last one (`domain.history`);
4. store the point with its changes, all or nothing, only where the stream still ends there.

So two replicas never write one minute twice, and one that dies leaves nothing half done. A stream that is away, full or
missing costs a line in the log: the next minute is another attempt.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import NoReturn

import structlog

from gardenbus.common.api.garden.unschedulable import cause_of
from gardenbus.common.api.history import LEVELS, NOT_READ, HistoryPoint, decode_point, encode
from gardenbus.common.controller.process_counts import ReceivedCounts
from gardenbus.common.errors import Conflict, GardenbusError, NotFound
from gardenbus.common.ports.bus import Message
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.connections import Connections
from gardenbus.lifecycle import metrics
from gardenbus.lifecycle.controllers.migration import CONTROLLER as MIGRATION
from gardenbus.lifecycle.domain.history import Observed, due_level, next_point
from gardenbus.lifecycle.watch.history_sources import HistorySources
from gardenbus.lifecycle.watch.seed_gauges import SeedGauges

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

STREAM = "HISTORY"
MINUTE = LEVELS[0].interval.total_seconds()

MOST_REASONS = 1_000
"""Waiting shoots whose reasons are read for a point; the others are counted without."""

MOST_CAUSES = 20
LONGEST_CAUSE = 200


class HistoryWriter:
    """See the module."""

    def __init__(
        self,
        connections: Connections,
        clock: Clock,
        *,
        seeds: SeedGauges,
        sources: HistorySources,
        counts: ReceivedCounts,
    ) -> None:
        self._store, self._bus, self._subjects = connections.store, connections.bus, connections.subjects
        self._clock = clock
        self._seeds = seeds
        self._sources = sources
        self._counts = counts
        self._problem = ""

    async def run(self) -> NoReturn:
        """Write for ever, at the beginning of each minute."""
        while True:
            await self.attempt()
            await self._clock.sleep(MINUTE - self._clock.now().timestamp() % MINUTE)

    async def attempt(self) -> None:
        """Write if a point is due, and log and export how it went."""
        try:
            await self.write()
        except NotFound as error:
            self._report(error.message)
            await self._make_stream()
        except GardenbusError as error:
            self._report(error.message)
        else:
            self._report("")
            metrics.HISTORY_CURRENT.set(self._clock.now().timestamp())

    async def write(self) -> bool:
        """Write the point of this minute, if one is due; returns whether this replica did.

        Raises NotFound where there is no stream, Unavailable.
        """
        stream, subject = self._subjects.stream(STREAM), self._subjects.history_point
        position = await self._bus.position(stream)
        stored = await self._bus.last(stream, subject) if position.sequence else None
        last = decode_point(stored.body) if stored is not None else None
        if due_level(self._clock.now(), last) is None:
            return False
        observed = await self._observe()
        due = next_point(last, observed, self._clock.now())
        if due is None:
            return False
        messages = [Message(self._subjects.history_change, encode(change)) for change in due.changes]
        messages.append(Message(subject, encode(due.point), ttl=_life_of(due.point)))
        try:
            await self._bus.publish_batch(
                stream, messages, expected_last_sequence=position.sequence, whole=len(messages) > 1
            )
        except Conflict:
            return False  # another replica was faster
        return True

    async def _make_stream(self) -> None:
        try:
            await self._bus.ensure_streams()
        except GardenbusError as error:
            log.warning("history.interrupted", reason=error.message)

    async def _observe(self) -> Observed:
        await self._seeds.refresh_usage()
        census = await self._store.census()
        waiting = census.get("shoots.waiting", 0)
        return Observed(
            seeds=self._seeds.seed_uses(),
            sets=dict(self._sources.sets),
            profiles=dict(self._sources.profiles),
            shoots=census.get("objects.shoot", 0),
            pending=census.get("shoots.pending", 0),
            moving=await self._moving(),
            waiting=await self._causes(waiting) if waiting else {},
            counts=dict(self._counts.by_process),
        )

    async def _moving(self) -> int:
        """Shoots that migrate: each is in the queue of migrations, or has a timer there."""
        stream, queue = self._subjects.stream("QUEUES"), self._subjects.queue_of(MIGRATION)
        timers = await self._bus.subjects(stream, self._subjects.later(queue))
        found = {
            subject.partition(f".{MIGRATION}.")[2] for subject in (*timers, *await self._bus.subjects(stream, queue))
        }
        return len(found)

    async def _causes(self, waiting: int) -> Mapping[str, int]:
        """Waiting shoots by cause, the most frequent first."""
        counts: dict[str, int] = {}
        for shoot in await self._store.unschedulable_shoots(limit=MOST_REASONS):
            cause = cause_of(shoot.message)[:LONGEST_CAUSE]
            counts[cause] = counts.get(cause, 0) + 1
        ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:MOST_CAUSES]
        rest = waiting - sum(count for _, count in ordered)
        return dict(ordered) | ({NOT_READ: rest} if rest > 0 else {})

    def _report(self, problem: str) -> None:
        """Log a problem once, and its end."""
        if problem and not self._problem:
            log.warning("history.interrupted", reason=problem)
        elif self._problem and not problem:
            log.info("history.resumed")
        self._problem = problem


def _life_of(point: HistoryPoint) -> timedelta:
    return LEVELS[point.level].kept
