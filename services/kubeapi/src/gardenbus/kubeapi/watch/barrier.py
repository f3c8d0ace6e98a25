"""Barrier of reads that must be newest: whoever has written, at any replica, sees it in the next list."""

from typing import NoReturn

import msgspec

from gardenbus.common.api.keys import Subjects
from gardenbus.common.controller.api_client import response_result
from gardenbus.common.controller.shared_query import SharedQuery
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.bus import Bus, StreamPosition
from gardenbus.kubeapi.watch.caches import WAIT_SECONDS, Caches
from gardenbus.kubeapi.watch.updater import ObjectsUpdater

REQUEST_SECONDS = 5.0


class _Settled(msgspec.Struct, frozen=True):
    created: str
    sequence: int


class Barrier:
    """Requests of a relay up to where all is announced, once for all who wait, and waits until that was read."""

    def __init__(self, bus: Bus, subjects: Subjects, caches: Caches, updater: ObjectsUpdater) -> None:
        self._bus = bus
        self._subjects = subjects
        self._caches = caches
        self._updater = updater
        self._settled = SharedQuery(self._query)

    async def pass_through(self) -> None:
        """Return when the cache has all that was stored before. Raises Unavailable."""
        settled = await self._settled.get()
        if not await self._caches.wait_until(lambda: self._updater.position >= settled):
            self._raise_late()
        highest = self._caches.objects.highest  # an object may have been announced in a version that settles later
        if not await self._caches.wait_for(self._caches.objects, highest):
            self._raise_late()

    async def _query(self) -> StreamPosition:
        payload = await self._bus.request(self._subjects.settled, b"", timeout_seconds=REQUEST_SECONDS)
        settled = msgspec.convert(response_result(payload, "settled"), _Settled)
        return StreamPosition(int(settled.created), settled.sequence)

    @staticmethod
    def _raise_late() -> NoReturn:
        raise Unavailable(f"the announcements were not read within {WAIT_SECONDS:g} s: try again")
