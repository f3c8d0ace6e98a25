"""Follows what placements select: the announcements of just those kinds and namespaces, without their content.

When a placement selects something that was not followed before, another follower takes over, and all who select it look
again: what changed before it began must not be missed.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence

import structlog

from gardenbus.common.errors import Transient
from gardenbus.common.ports.bus import Bus, Delivered, FollowRestarted
from gardenbus.common.resources.document import StoredObject
from gardenbus.common.resources.keys import CLUSTER_SCOPE, ObjectKey, Subjects
from gardenbus.common.resources.placements import KINDS, Placement
from gardenbus.placement.decide.selectors import ANY, Place, places_around, places_of
from gardenbus.placement.reconcilers.watching import Nudge

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

RETRY_SECONDS = 0.5
GATHER_SECONDS = 0.2
"""How long new selections are gathered before another follower takes over."""


class Selection:
    """See the module. `changed` is an informer's callback, `run` the task."""

    def __init__(self, bus: Bus, subjects: Subjects, placements: Mapping[ObjectKey, Placement], nudge: Nudge) -> None:
        self._bus = bus
        self._subjects = subjects
        self._placements = placements
        self._nudge = nudge
        self._selecting: dict[Place, set[ObjectKey]] = {}
        self._places: dict[ObjectKey, frozenset[Place]] = {}
        self._followed: frozenset[str] = frozenset()
        self._news = asyncio.Event()

    def changed(self, key: ObjectKey, _: StoredObject | None, new: StoredObject | None) -> None:
        """Take in what a placement selects."""
        if key.kind not in KINDS:
            return
        placement = self._placements.get(key) if new is not None else None
        wanted = frozenset[Place]() if placement is None else places_of(placement)
        before = self._places.pop(key, frozenset())
        if wanted:
            self._places[key] = wanted
        for place in before - wanted:
            self._selecting[place].discard(key)
            if not self._selecting[place]:
                del self._selecting[place]
        for place in wanted - before:
            self._selecting.setdefault(place, set()).add(key)
        if not _filters(self._subjects, wanted) <= self._followed:
            self._news.set()

    async def run(self) -> None:
        """Follow for as long as the process lives."""
        following: list[asyncio.Task[None]] = []
        try:
            while True:
                await _until(self._news, following[-1:])
                await asyncio.sleep(GATHER_SECONDS)
                self._news.clear()
                filters = _filters(self._subjects, self._selecting)
                if filters == self._followed:
                    continue
                before, self._followed = self._followed, filters
                ready = asyncio.Event()
                following.append(asyncio.create_task(self._follow(sorted(filters), ready)))
                await _until(ready, following[-1:])
                for predecessor in following[:-1]:
                    predecessor.cancel()
                del following[:-1]
                self._look(key for key, places in self._places.items() if _filters(self._subjects, places) - before)
        finally:
            for task in following:
                task.cancel()

    async def _follow(self, filters: list[str], ready: asyncio.Event) -> None:
        stream, prefix = self._subjects.stream("OBJECTS"), f"{self._subjects.prefix}.changed."
        while True:
            try:
                place = await self._bus.position(stream)
                async with self._bus.follow(
                    stream, filters, after_sequence=place.sequence, headers_only=True
                ) as follower:
                    if ready.is_set():
                        self._look(self._places)
                    ready.set()
                    async for event in follower:
                        if isinstance(event, FollowRestarted):
                            self._look(self._places)
                        elif isinstance(event, Delivered):
                            self._concern(ObjectKey.from_tail(event.subject.removeprefix(prefix)))
            except Transient as error:
                log.warning("selection.interrupted", reason=error.message)
                await asyncio.sleep(RETRY_SECONDS)

    def _concern(self, changed: ObjectKey) -> None:
        for place in places_around(changed):
            self._look(self._selecting.get(place, ()))

    def _look(self, placements: Iterable[ObjectKey]) -> None:
        for key in placements:
            self._nudge(key)


async def _until(event: asyncio.Event, tasks: Sequence[asyncio.Task[None]]) -> None:
    """Wait for an event; raises what tasks that must not end have ended with."""
    waiting = asyncio.create_task(event.wait())
    try:
        await asyncio.wait((waiting, *tasks), return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
    for task in tasks:
        if task.done():
            task.result()


def _filters(subjects: Subjects, places: Iterable[Place]) -> frozenset[str]:
    """Subject filters that do not overlap: a stream's consumer takes no others."""
    pairs = {(place.kind, place.namespace or CLUSTER_SCOPE) for place in places}
    everything = f"{subjects.prefix}.changed.>"
    if (ANY, ANY) in pairs:
        return frozenset({everything})
    whole = {namespace for kind, namespace in pairs if kind == ANY}
    return frozenset(
        f"{subjects.prefix}.changed.{kind}.{namespace}.>"
        for kind, namespace in pairs
        if kind == ANY or namespace not in whole
    )
