"""Feeds the caches from the bus: OBJECTS for all kinds, and EVENTS, for ever and through outages.

Events have no version of the store: theirs is their place in the stream.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

import structlog

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import encode, section
from gardenbus.common.api.keys import Header, ObjectKey, Subjects
from gardenbus.common.api.numbers import whole_number
from gardenbus.common.controller.unreadable import skip_unreadable
from gardenbus.common.controller.wait import keep_following
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.bus import Bus, FollowRestarted, ReplayDone, StreamMessage, StreamPosition
from gardenbus.kubeapi.domain.manifests import presented
from gardenbus.kubeapi.watch.cacher import Announcement, CachedObject, Cacher, Restart

_log = structlog.stdlib.get_logger()
_decode = json_decoder(dict[str, Any])

AT_ONCE = 100
"""Messages between two pauses for requests."""

MOST_EVENTS = 20_000
"""Events of the past that are read; the stream has them for a day."""

REOPENED_SECONDS = 30.0
"""Time after which a store that was opened anew is read once more: what it lost is removed from the stream by then."""

Fetch = Callable[[ObjectKey], Awaitable[bytes | None]]


class ObjectsUpdater:
    """Follows OBJECTS. `fetch` reads an object whose announcement was too large for its body."""

    def __init__(self, bus: Bus, subjects: Subjects, cache: Cacher, fetch: Fetch, moved: Callable[[], None]) -> None:
        self._moved = moved
        """To be called when `position` has grown."""
        self._bus = bus
        self._subjects = subjects
        self._cache = cache
        self._fetch = fetch
        self._prefix = f"{subjects.prefix}.changed."
        self._created = 0
        self.position = StreamPosition(0, 0)
        """Place up to which all was received; a stream that was made anew has others."""

    async def run(self) -> NoReturn:
        """Follow for ever."""
        await keep_following("objects", self._follow_until_restart)

    async def _follow_until_restart(self) -> None:
        """Follow until the store is opened anew, then for a while."""
        try:
            await self._follow()
        except Restart:
            _log.info("watches.expired", reason="the store was opened anew")
        with contextlib.suppress(TimeoutError, Restart):
            async with asyncio.timeout(REOPENED_SECONDS):
                await self._follow()

    async def _follow(self) -> None:
        stream = self._subjects.stream("OBJECTS")
        self._cache.begin_replay()
        self._created = (await self._bus.position(stream)).created
        async with self._bus.follow(stream, [f"{self._prefix}>"], last_per_subject=True) as follower:
            number = 0
            async for event in follower:
                match event:
                    case ReplayDone():
                        if (await self._bus.position(stream)).created != self._created:
                            raise Unavailable(f"{stream} was made anew while it was read")
                        self._cache.end_replay()
                        self._note(event.sequence)
                    case FollowRestarted():
                        _log.info("watches.expired", reason=event.reason)
                        self._cache.begin_replay()
                        self._created = (await self._bus.position(stream)).created
                    case StreamMessage():
                        if event.marker is None:
                            await self._receive(event)
                        self._note(event.sequence)
                number += 1
                if number % AT_ONCE == 0:
                    await asyncio.sleep(0)

    def _note(self, sequence: int) -> None:
        if self._cache.synced and not self._cache.is_replaying:
            self.position = StreamPosition(self._created, sequence)
            self._moved()

    async def _receive(self, message: StreamMessage) -> None:
        change = None
        with skip_unreadable(message):  # what the cache raises is not about the message, and ends the following
            change = await self._change(message)
        self._cache.receive(change, whole_number(message.headers.get(Header.SETTLED)))

    async def _change(self, message: StreamMessage) -> Announcement | None:
        headers = message.headers
        if Header.VERSION not in headers:
            return None  # a foreign message
        key = ObjectKey.from_tail(message.subject.removeprefix(self._prefix))
        verb, version, uid = headers.get(Header.VERB), int(headers[Header.VERSION]), headers[Header.UID]
        body: bytes | None = message.body
        if verb == "deleted":
            return Announcement(CachedObject(key, uid, version, b""), message.at, is_removed=True)
        if Header.TOO_LARGE in headers:
            body = await self._fetch(key)
        if not body:
            return None
        return Announcement(CachedObject(key, uid, version, presented(body)), message.at, is_added=verb == "added")


class EventsUpdater:
    """Follows EVENTS, beginning with a bounded number of past ones."""

    def __init__(self, bus: Bus, subjects: Subjects, cache: Cacher) -> None:
        self._bus = bus
        self._subjects = subjects
        self._cache = cache

    async def run(self) -> NoReturn:
        """Follow for ever."""
        await keep_following("events", self._follow)

    async def _follow(self) -> None:
        stream = self._subjects.stream("EVENTS")
        after = max(0, (await self._bus.position(stream)).sequence - MOST_EVENTS)
        self._cache.begin_replay()
        async with self._bus.follow(stream, [f"{self._subjects.prefix}.event.>"], after_sequence=after) as follower:
            async for event in follower:
                match event:
                    case ReplayDone():
                        self._cache.end_replay()
                    case FollowRestarted():
                        self._cache.begin_replay()
                    case StreamMessage() if event.marker is None:
                        with skip_unreadable(event):
                            self._cache.receive(_event(event), event.sequence)
                    case StreamMessage():
                        pass


def _event(message: StreamMessage) -> Announcement | None:
    document = _decode(message.body)
    metadata = section(document, "metadata")
    name = metadata.get("name")
    if not name:
        return None  # a login is one, and of nobody's object
    uid = str(metadata.get("uid") or name)
    metadata |= {"uid": uid, "resourceVersion": str(message.sequence)}
    key = ObjectKey("event", str(metadata.get("namespace") or "default"), str(name))
    return Announcement(CachedObject(key, uid, message.sequence, encode(document)), message.at)
