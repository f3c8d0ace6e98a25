"""Feeds the view from the bus: OBJECTS from the last news of each object on, LEASES, and the newest of EVENTS.

Each stream is followed for ever, through outages. When a follower has to start anew, rows stay until the replay is
through; then goes what it did not mention.
"""

import asyncio
from datetime import datetime

import msgspec
import structlog

from gardenbus.common.errors import GardenbusError, NotFound, Transient
from gardenbus.common.ports.bus import Bus, Delivered, FollowRestarted, ReplayDone
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.keys import CANARY_LEASE, Header, ObjectKey, Subjects
from gardenbus.dashboard.reconcilers.asking import Api
from gardenbus.dashboard.reconcilers.view import LARGEST_EVENTS, View

_log = structlog.stdlib.get_logger()
_decode = msgspec.json.Decoder(dict[str, object]).decode

RETRY_SECONDS = 0.5
AT_ONCE = 100
"""News between two pauses for browsers."""


class Following:
    """See the module. `run_objects`, `run_leases` and `run_events` go on for ever."""

    def __init__(self, bus: Bus, subjects: Subjects, view: View, api: Api) -> None:
        self._bus = bus
        self._subjects = subjects
        self._view = view
        self._api = api
        self._mentioned: set[ObjectKey] | None = set()

    async def run_objects(self) -> None:
        """Follow what is announced of all objects."""
        while True:
            try:
                await self._objects()
            except (Transient, NotFound) as error:
                _log.warning("objects.interrupted", reason=error.message)
            await asyncio.sleep(RETRY_SECONDS)

    async def run_autoscalers(self) -> None:
        """Follow autoscalers alone, so that their history is known when somebody asks."""
        while True:
            try:
                await self._autoscalers()
            except (Transient, NotFound) as error:
                _log.warning("autoscalers.interrupted", reason=error.message)
            await asyncio.sleep(RETRY_SECONDS)

    async def run_leases(self) -> None:
        """Follow heartbeats."""
        while True:
            try:
                await self._leases()
            except (Transient, NotFound) as error:
                _log.warning("leases.interrupted", reason=error.message)
            await asyncio.sleep(RETRY_SECONDS)

    async def run_events(self) -> None:
        """Follow Events, from a bounded number of past ones on."""
        while True:
            try:
                await self._events()
            except (Transient, NotFound) as error:
                _log.warning("events.interrupted", reason=error.message)
            await asyncio.sleep(RETRY_SECONDS)

    async def _objects(self) -> None:
        self._mentioned = set()
        stream = self._subjects.stream("OBJECTS")
        async with self._bus.follow(stream, [self._subjects.changed_kind("*")], last_per_subject=True) as follower:
            number = 0
            async for event in follower:
                match event:
                    case ReplayDone():
                        self._sweep()
                    case FollowRestarted():
                        self._mentioned = set()
                    case Delivered() if event.marker is None:
                        await self._take(event)
                    case Delivered():
                        pass
                number += 1
                if number % AT_ONCE == 0:
                    await asyncio.sleep(0)

    async def _autoscalers(self) -> None:
        stream = self._subjects.stream("OBJECTS")
        autoscalers = [self._subjects.changed_kind("seedautoscaler")]
        async with self._bus.follow(stream, autoscalers, last_per_subject=True) as follower:
            async for event in follower:
                if isinstance(event, Delivered) and event.marker is None:
                    await self._take(event)

    async def _take(self, news: Delivered) -> None:
        try:
            key = ObjectKey.from_tail(news.subject.removeprefix(f"{self._subjects.prefix}.changed."))
        except ValueError:
            return  # anybody may publish
        if news.headers.get(Header.VERB) == "deleted":
            self._view.remove(key)
            return
        document = await self._fetched(key) if Header.TOO_LARGE in news.headers else _document(news.body)
        if document is None:
            return
        if self._mentioned is not None:
            self._mentioned.add(key)
        self._view.put(key, document, news.at)

    async def _fetched(self, key: ObjectKey) -> Document | None:
        try:
            return await self._api.get(key)
        except GardenbusError:
            return None  # gone meanwhile, or announced again when the API is back

    def _sweep(self) -> None:
        """The replay is through: what it did not mention is not there any more."""
        mentioned, self._mentioned = self._mentioned, None
        if mentioned is not None:
            for key in [key for key in self._view.keys() if key not in mentioned]:  # noqa: SIM118 - no mapping
                self._view.remove(key)
        self._view.synced = True

    async def _leases(self) -> None:
        stream, everybody = self._subjects.stream("LEASES"), self._subjects.lease(">")
        async with self._bus.follow(stream, [everybody], last_per_subject=True, headers_only=True) as follower:
            async for event in follower:
                if not isinstance(event, Delivered):
                    continue
                seed = event.subject.removeprefix(self._subjects.lease(""))
                if event.marker is not None:
                    self._view.silence(seed)
                elif seed != CANARY_LEASE:
                    self._beat(seed, event.at)

    def _beat(self, seed: str, at: datetime) -> None:
        self._view.beat(seed, at)

    async def _events(self) -> None:
        stream = self._subjects.stream("EVENTS")
        place = await self._bus.position(stream)
        after = max(0, place.sequence - LARGEST_EVENTS)
        async with self._bus.follow(stream, [f"{self._subjects.prefix}.event.>"], after_sequence=after) as follower:
            async for event in follower:
                if isinstance(event, Delivered) and event.marker is None:
                    document = _document(event.body)
                    if document is not None:
                        self._view.happened(document)


def _document(body: bytes) -> Document | None:
    try:
        return _decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
