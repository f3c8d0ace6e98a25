"""Feeds the cache from the bus: the last announcement of each object, LEASES, and the newest EVENTS.

Each stream is followed for ever, through outages. When a follower has to restart, rows stay until the replay is
complete; then rows that it did not contain are removed.
"""

import asyncio
import gc
from functools import partial
from typing import NoReturn

import msgspec
import structlog

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import PROBE_LEASE, Header, ObjectKey, Subjects
from gardenbus.common.api.kinds import SHOWN
from gardenbus.common.controller.unreadable import skip_unreadable
from gardenbus.common.controller.wait import keep_following
from gardenbus.common.errors import GardenbusError
from gardenbus.common.ports.bus import Bus, FollowRestarted, ReplayDone, StreamMessage
from gardenbus.common.ports.clock import Clock
from gardenbus.dashboard.api_client import GardenApiClient
from gardenbus.dashboard.watch.first_read import first_read
from gardenbus.dashboard.watch.landscape import MAX_EVENTS_KEPT, DashboardCache

_log = structlog.stdlib.get_logger()
_decode = json_decoder(dict[str, object])

RETRY_SECONDS = 0.5
FILL_SECONDS = 5.0
"""Interval between two samples of how full seeds are."""

FIRST_READ_SECONDS = 3.0
"""Interval between two reads of the store's indexes."""

AT_ONCE = 100
"""Messages between two pauses for browsers."""


class CacheUpdater:
    """Feeds the cache; `run_objects`, `run_leases` and `run_events` run for ever."""

    def __init__(self, bus: Bus, subjects: Subjects, cache: DashboardCache, api: GardenApiClient) -> None:
        self._bus = bus
        self._subjects = subjects
        self._cache = cache
        self._api = api
        self._replayed: dict[str, set[ObjectKey]] = {kind: set() for kind in SHOWN}
        """By kind, what its replay has brought until now, while one goes on."""

    async def run_objects(self) -> None:
        """Follow the announcements of all objects, each kind for itself (kinds.SHOWN)."""
        async with asyncio.TaskGroup() as tasks:
            for kind in SHOWN:
                tasks.create_task(keep_following(kind, partial(self._objects, kind)), name=f"follow {kind}")

    async def run_autoscalers(self) -> None:
        """Follow autoscalers alone, to record their history before the first visit."""
        await keep_following("autoscalers", self._autoscalers)

    async def run_first_reads(self) -> None:
        """Use what the store's indexes say, until all announcements have been read."""
        while not self._cache.synced:
            try:
                first = await first_read(self._api)
            except GardenbusError as error:
                _log.warning("stream.interrupted", content="first reads", reason=error.message)
            else:
                if not self._cache.synced:
                    self._cache.put_first(first)
            await asyncio.sleep(FIRST_READ_SECONDS)

    async def run_leases(self) -> None:
        """Follow heartbeats."""
        await keep_following("leases", self._leases)

    async def run_events(self) -> None:
        """Follow Events, beginning with a bounded number of past ones."""
        await keep_following("events", self._events)

    async def _objects(self, kind: str) -> None:
        self._replayed[kind] = set()
        stream = self._subjects.stream("OBJECTS")
        async with self._bus.follow(stream, [self._subjects.changed_kind(kind)], last_per_subject=True) as follower:
            number = 0
            async for event in follower:
                match event:
                    case ReplayDone():
                        self._sweep(kind)
                    case FollowRestarted():
                        self._replayed[kind] = set()
                    case StreamMessage() if event.marker is None:
                        with skip_unreadable(event):
                            await self._apply(event)
                    case StreamMessage():
                        pass
                number += 1
                if number % AT_ONCE == 0:
                    await asyncio.sleep(0)

    async def _autoscalers(self) -> None:
        stream = self._subjects.stream("OBJECTS")
        autoscalers = [self._subjects.changed_kind("seedautoscaler")]
        async with self._bus.follow(stream, autoscalers, last_per_subject=True) as follower:
            async for event in follower:
                if isinstance(event, StreamMessage) and event.marker is None:
                    with skip_unreadable(event):
                        await self._apply(event)

    async def _apply(self, delivered: StreamMessage) -> None:
        try:
            key = ObjectKey.from_tail(delivered.subject.removeprefix(f"{self._subjects.prefix}.changed."))
        except ValueError:
            return  # a foreign message
        if delivered.headers.get(Header.VERB) == "deleted":
            self._cache.remove(key)
            return
        document = await self._fetched(key) if Header.TOO_LARGE in delivered.headers else _document(delivered.body)
        if document is None:
            return
        if key.kind in self._replayed:
            self._replayed[key.kind].add(key)
        self._cache.put(key, document, delivered.at)

    async def _fetched(self, key: ObjectKey) -> Document | None:
        try:
            return await self._api.get(key)
        except GardenbusError:
            return None  # gone meanwhile, or announced again when the API is back

    def _sweep(self, kind: str) -> None:
        """Remove rows of a kind that its complete replay did not contain."""
        replayed = self._replayed.pop(kind, None)
        if replayed is not None:
            for key in self._cache.keys_of(kind) - replayed:
                self._cache.remove(key)
        if not self._replayed and not self._cache.synced:
            self._cache.mark_synced()
            gc.freeze()  # rows refer to nothing: the garbage collector need not look through all of them every time

    async def _leases(self) -> None:
        stream, everybody = self._subjects.stream("LEASES"), self._subjects.lease(">")
        async with self._bus.follow(stream, [everybody], last_per_subject=True, headers_only=True) as follower:
            async for event in follower:
                if not isinstance(event, StreamMessage):
                    continue
                seed = event.subject.removeprefix(self._subjects.lease(""))
                if event.marker is None and seed != PROBE_LEASE:
                    self._cache.record_heartbeat(seed, event.at)

    async def _events(self) -> None:
        stream = self._subjects.stream("EVENTS")
        place = await self._bus.position(stream)
        after = max(0, place.sequence - MAX_EVENTS_KEPT)
        async with self._bus.follow(stream, [f"{self._subjects.prefix}.event.>"], after_sequence=after) as follower:
            async for event in follower:
                if isinstance(event, StreamMessage) and event.marker is None:
                    document = _document(event.body)
                    if document is not None:
                        with skip_unreadable(event):
                            self._cache.add_event(document)


async def record_fills(cache: DashboardCache, clock: Clock) -> NoReturn:
    """Sample how full seeds are, for ever, from the moment at which the whole landscape is cached."""
    while True:
        if cache.synced:
            cache.record_fills(clock.now())
        await clock.sleep(FILL_SECONDS if cache.synced else RETRY_SECONDS)


async def keep_orders(cache: DashboardCache, clock: Clock) -> None:
    """Put the shoots in all orders that the page offers, as soon as the whole landscape is cached."""
    while not cache.synced:
        await clock.sleep(RETRY_SECONDS)
    await cache.lists.keep_all_orders()


def _document(body: bytes) -> Document | None:
    try:
        return _decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
