"""The Lease of one seed for those who watch it: followed on the bus while they do, and in no cache of all kinds."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import datetime

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import Document, encode
from gardenbus.common.api.keys import LEASE_NAMESPACE, ObjectKey, Subjects
from gardenbus.common.controller.unreadable import skip_unreadable
from gardenbus.common.controller.wait import keep_following
from gardenbus.common.ports.bus import Bus, FollowRestarted, ReplayDone, StreamMessage
from gardenbus.kubeapi.domain.heartbeats import metadata_of, versioned
from gardenbus.kubeapi.watch.cacher import Announcement, CachedObject, Cacher
from gardenbus.kubeapi.watch.caches import Caches

_decode = json_decoder(Document)


class SeedLeaseCaches:
    """Makes a cache of one Lease for each watch."""

    def __init__(self, bus: Bus, subjects: Subjects, caches: Caches, now: Callable[[], datetime]) -> None:
        self._caches = caches
        self._bus = bus
        self._subjects = subjects
        self._now = now

    @asynccontextmanager
    async def followed(self, seed: str, on_reset: Callable[[Cacher], None]) -> AsyncGenerator[Cacher]:
        """A cache that follows the Lease of a seed until the end of the block; it may not have been read yet."""
        cache = Cacher(self._now)
        cache.on_reset(lambda: on_reset(cache))
        cache.on_mark(self._caches.note_moved)
        following = keep_following("leases", lambda: self._follow(cache, seed))
        task = asyncio.create_task(following, name=f"lease {seed}")
        try:
            yield cache
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _follow(self, cache: Cacher, seed: str) -> None:
        stream, subject = self._subjects.stream("LEASES"), self._subjects.lease(seed)
        cache.begin_replay()
        async with self._bus.follow(stream, [subject], last_per_subject=True) as follower:
            async for event in follower:
                match event:
                    case ReplayDone():
                        cache.end_replay()
                    case FollowRestarted():
                        cache.begin_replay()
                    case StreamMessage() if event.marker is None:
                        with skip_unreadable(event):
                            _receive(cache, seed, event)
                    case StreamMessage():
                        pass


def _receive(cache: Cacher, seed: str, message: StreamMessage) -> None:
    version, lease = versioned(_decode(message.body), message.at)
    key = ObjectKey("lease", LEASE_NAMESPACE, seed)
    found = CachedObject(key, metadata_of(lease).uid or seed, version, encode(lease))
    cache.receive(None, version - 1)  # instants are far apart, which is no leap of the store's versions
    cache.receive(Announcement(found, message.at), version)
