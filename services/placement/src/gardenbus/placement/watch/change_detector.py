"""Detects changes of selected resources: follows announcements of just those kinds and namespaces, without content.

When a placement selects something that is not followed yet, another follower takes its place, and all placements that
select it are enqueued: a change before its start must not be missed. KubeFleet calls this the resource change detector.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.fleet.placements import KINDS, Placement
from gardenbus.common.api.keys import CLUSTER_SCOPE, ObjectKey, Subjects
from gardenbus.common.controller.unreadable import skip_unreadable
from gardenbus.common.controller.wait import keep_following
from gardenbus.common.ports.bus import Bus, FollowRestarted, StreamMessage
from gardenbus.placement.domain.resource_selectors import ANY, WatchScope, scopes_around, watch_scopes
from gardenbus.placement.watch.event_handler import Enqueue

GATHER_SECONDS = 0.2
"""Period in which new selections are gathered before the follower is replaced."""


class ChangeDetector:
    """Enqueues placements whose selection changes. `changed` is an informer's callback, `run` the task."""

    def __init__(
        self, bus: Bus, subjects: Subjects, placements: Mapping[ObjectKey, Placement], enqueue: Enqueue
    ) -> None:
        self._bus = bus
        self._subjects = subjects
        self._placements = placements
        self._enqueue = enqueue
        self._selecting: dict[WatchScope, set[ObjectKey]] = {}
        self._scopes: dict[ObjectKey, frozenset[WatchScope]] = {}
        self._followed: frozenset[str] = frozenset()
        self._selection_changed = asyncio.Event()

    def changed(self, key: ObjectKey, _: StoredObject | None, new: StoredObject | None) -> None:
        """Record what a placement selects."""
        if key.kind not in KINDS:
            return
        placement = self._placements.get(key) if new is not None else None
        wanted = frozenset[WatchScope]() if placement is None else watch_scopes(placement)
        before = self._scopes.pop(key, frozenset())
        if wanted:
            self._scopes[key] = wanted
        for place in before - wanted:
            self._selecting[place].discard(key)
            if not self._selecting[place]:
                del self._selecting[place]
        for place in wanted - before:
            self._selecting.setdefault(place, set()).add(key)
        if not _filters(self._subjects, wanted) <= self._followed:
            self._selection_changed.set()

    async def run(self) -> None:
        """Follow for as long as the process lives."""
        following: list[asyncio.Task[None]] = []
        try:
            while True:
                await _wait_for(self._selection_changed, following[-1:])
                await asyncio.sleep(GATHER_SECONDS)
                self._selection_changed.clear()
                filters = _filters(self._subjects, self._selecting)
                if filters == self._followed:
                    continue
                before, self._followed = self._followed, filters
                ready = asyncio.Event()
                follow = partial(self._follow, sorted(filters), ready)
                following.append(asyncio.create_task(keep_following("selected resources", follow)))
                await _wait_for(ready, following[-1:])
                for predecessor in following[:-1]:
                    predecessor.cancel()
                del following[:-1]
                self._enqueue_all(
                    key for key, scopes in self._scopes.items() if _filters(self._subjects, scopes) - before
                )
        finally:
            for task in following:
                task.cancel()

    async def _follow(self, filters: list[str], ready: asyncio.Event) -> None:
        stream, prefix = self._subjects.stream("OBJECTS"), f"{self._subjects.prefix}.changed."
        place = await self._bus.position(stream)
        async with self._bus.follow(stream, filters, after_sequence=place.sequence, headers_only=True) as follower:
            if ready.is_set():
                self._enqueue_all(self._scopes)
            ready.set()
            async for event in follower:
                if isinstance(event, FollowRestarted):
                    self._enqueue_all(self._scopes)
                elif isinstance(event, StreamMessage):
                    with skip_unreadable(event):
                        self._enqueue_selecting(ObjectKey.from_tail(event.subject.removeprefix(prefix)))

    def _enqueue_selecting(self, changed: ObjectKey) -> None:
        for place in scopes_around(changed):
            self._enqueue_all(self._selecting.get(place, ()))

    def _enqueue_all(self, placements: Iterable[ObjectKey]) -> None:
        for key in placements:
            self._enqueue(key)


async def _wait_for(event: asyncio.Event, tasks: Sequence[asyncio.Task[None]]) -> None:
    """Wait for an event; raises the error of a task that ended before."""
    waiting = asyncio.create_task(event.wait())
    try:
        await asyncio.wait((waiting, *tasks), return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
    for task in tasks:
        if task.done():
            task.result()


def _filters(subjects: Subjects, scopes: Iterable[WatchScope]) -> frozenset[str]:
    """Return subject filters that do not overlap: a stream's consumer accepts no others."""
    pairs = {(place.kind, place.namespace or CLUSTER_SCOPE) for place in scopes}
    everything = f"{subjects.prefix}.changed.>"
    if (ANY, ANY) in pairs:
        return frozenset({everything})
    whole = {namespace for kind, namespace in pairs if kind == ANY}
    return frozenset(
        f"{subjects.prefix}.changed.{kind}.{namespace}.>"
        for kind, namespace in pairs
        if kind == ANY or namespace not in whole
    )
