"""Follows what placements select: the announcements of just those kinds and namespaces, without their content.

When a placement selects something that was not followed before, it begins anew, and all who select it look again: what
changed in between must not be missed.
"""

import asyncio
from collections.abc import Mapping

import structlog

from gardenbus.common.errors import Transient
from gardenbus.common.ports.bus import Bus, Delivered
from gardenbus.common.resources.document import StoredObject
from gardenbus.common.resources.keys import ObjectKey, Subjects
from gardenbus.common.resources.placements import KINDS, Placement
from gardenbus.placement.decide.selectors import Wanted
from gardenbus.placement.reconcilers.watching import Nudge

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

RETRY_SECONDS = 0.5
GATHER_SECONDS = 0.2
"""How long new selections are gathered before following begins anew."""


class Selection:
    """See the module. `changed` is an informer's callback, `run` the task."""

    def __init__(self, bus: Bus, subjects: Subjects, placements: Mapping[ObjectKey, Placement], nudge: Nudge) -> None:
        self._bus = bus
        self._subjects = subjects
        self._placements = placements
        self._nudge = nudge
        self._wanted: dict[ObjectKey, Wanted] = {}
        self._followed: frozenset[tuple[str, str]] = frozenset()
        self._news = asyncio.Event()

    def changed(self, key: ObjectKey, _: StoredObject | None, new: StoredObject | None) -> None:
        """Take in what a placement selects."""
        if key.kind not in KINDS:
            return
        placement = self._placements.get(key) if new is not None else None
        if placement is None:
            self._wanted.pop(key, None)
            return
        known = self._wanted.get(key)
        if known is None or known.selectors != placement.spec.resource_selectors:
            self._wanted[key] = Wanted(placement)
            if not self._wanted[key].subjects() <= self._followed:
                self._news.set()

    async def run(self) -> None:
        """Follow for as long as the process lives."""
        while True:
            self._news.clear()
            places = frozenset[tuple[str, str]]().union(*(each.subjects() for each in self._wanted.values()))
            if not places:
                await self._news.wait()
                continue
            added, self._followed = places - self._followed, places
            following = asyncio.create_task(self._follow(places, added))
            news = asyncio.create_task(self._news.wait())
            try:
                await asyncio.wait((following, news), return_when=asyncio.FIRST_COMPLETED)
                await asyncio.sleep(GATHER_SECONDS)
            finally:
                for task in (following, news):
                    task.cancel()
                await asyncio.gather(following, news, return_exceptions=True)

    async def _follow(self, places: frozenset[tuple[str, str]], added: frozenset[tuple[str, str]]) -> None:
        stream, prefix = self._subjects.stream("OBJECTS"), self._subjects.prefix
        filters = _disjoint(prefix, places)
        fresh = added
        while True:
            try:
                place = await self._bus.position(stream)
                async with self._bus.follow(
                    stream, filters, after_sequence=place.sequence, headers_only=True
                ) as follower:
                    for key, wanted in tuple(self._wanted.items()):
                        if wanted.subjects() & fresh:
                            self._nudge(key)
                    async for event in follower:
                        if not isinstance(event, Delivered):
                            continue
                        self._concern(ObjectKey.from_tail(event.subject.removeprefix(f"{prefix}.changed.")))
            except Transient as error:
                log.warning("selection.interrupted", reason=error.message)
                fresh = places
                await asyncio.sleep(RETRY_SECONDS)

    def _concern(self, changed: ObjectKey) -> None:
        for key, wanted in self._wanted.items():
            if wanted.touches(changed):
                self._nudge(key)


def _disjoint(prefix: str, places: frozenset[tuple[str, str]]) -> list[str]:
    """Subject filters that do not overlap: a stream's consumer takes no others."""
    if ("*", ">") in places:
        return [f"{prefix}.changed.>"]
    content = {namespace for kind, namespace in places if kind == "*"}
    kinds = sorted((kind, namespace) for kind, namespace in places if kind != "*" and namespace not in content)
    return [f"{prefix}.changed.*.{each}.>" for each in sorted(content)] + [
        f"{prefix}.changed.{kind}.{namespace}.>" for kind, namespace in kinds
    ]
