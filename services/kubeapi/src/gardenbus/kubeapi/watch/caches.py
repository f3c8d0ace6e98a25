"""The caches: of the objects in the store, and of Events."""

import asyncio
from collections.abc import Callable

from gardenbus.common.errors import Unavailable
from gardenbus.kubeapi.watch.cacher import Cacher

WAIT_SECONDS = 3.0
"""Longest wait for a version that a client has seen elsewhere."""


class Caches:
    """Both caches, and waits for what comes into them."""

    def __init__(self, objects: Cacher, events: Cacher) -> None:
        self.objects, self.events = objects, events
        self._moved = asyncio.Event()
        for cache in (objects, events):
            cache.on_mark(self.note_moved)

    def of(self, kind: str) -> Cacher:
        """The cache of a kind."""
        return self.events if kind == "event" else self.objects

    async def wait_for(self, cache: Cacher, version: int) -> bool:
        """Wait until a cache stands at a version; False when that takes too long."""
        return await self.wait_until(lambda: cache.synced and cache.mark >= version)

    async def until_read(self, cache: Cacher) -> None:
        """Wait until a cache has been read. Raises Unavailable."""
        if not cache.synced and not await self.wait_for(cache, 0):
            raise Unavailable(f"the announcements were not read within {WAIT_SECONDS:g} s: try again")

    async def wait_until(self, is_reached: Callable[[], bool]) -> bool:
        """Wait until something has come in; False when that takes too long."""
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                while not is_reached():
                    await self._moved.wait()
        except TimeoutError:
            return False
        return True

    def note_moved(self) -> None:
        """Something has come in: those who wait look again."""
        self._moved.set()
        self._moved = asyncio.Event()
