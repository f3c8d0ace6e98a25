"""The caches: of the objects in the store, and of Events."""

import asyncio
from collections.abc import Callable

from gardenbus.kubeapi.watch.watch_cache import WatchCache

WAIT_SECONDS = 3.0
"""Longest wait for a version that a client has seen elsewhere."""


class Caches:
    """Both caches, and waits for their versions."""

    def __init__(self, objects: WatchCache, events: WatchCache) -> None:
        self.objects, self.events = objects, events
        self._moved: dict[int, asyncio.Event] = {}
        for cache in (objects, events):
            cache.on_mark(self._waker(cache))

    def of(self, kind: str) -> WatchCache:
        """The cache of a kind."""
        return self.events if kind == "event" else self.objects

    async def wait_for(self, cache: WatchCache, version: int) -> bool:
        """Wait until a cache stands at a version; False when that takes too long."""
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                while cache.mark < version or not cache.synced:
                    await self._moved.setdefault(id(cache), asyncio.Event()).wait()
        except TimeoutError:
            return False
        return True

    def _waker(self, cache: WatchCache) -> Callable[[], None]:
        def wake() -> None:
            moved = self._moved.pop(id(cache), None)
            if moved is not None:
                moved.set()

        return wake
