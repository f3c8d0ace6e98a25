"""controllermanager beside a relay and an apiserver on real NATS and Redis, with a clock that may be ahead."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest
from prometheus_client import CollectorRegistry

from gardenbus.apiserver.app import start_apiserver
from gardenbus.apiserver.settings import ApiserverSettings
from gardenbus.common.adapters.redis.connection import RedisConnection
from gardenbus.common.adapters.redis.store import RedisStore
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.errors import Conflict, Unavailable
from gardenbus.common.ports.bus import Bus
from gardenbus.common.ports.connections import Connections
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.common.runtime.health import Health
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.controllermanager.app import start_controllermanager
from gardenbus.controllermanager.settings import ControllerManagerSettings
from gardenbus.relay.adapters.redis_outbox import RedisOutbox
from gardenbus.relay.relay import Relay
from tests.support.builders import a_project, merged
from tests.support.connected import connected_adapters
from tests.support.eventually import eventually
from tests.support.joint import joint as joint  # noqa: PLC0414  a fixture
from tests.support.servers import Server

_prefixes = (f"loops{number}" for number in itertools.count())
_CLOCK = SystemClock()


class ClockAhead(SystemClock):
    """The machine's clock, some time later."""

    def __init__(self, ahead: timedelta) -> None:
        self._ahead = ahead

    def now(self) -> datetime:
        return super().now() + self._ahead


@dataclass
class Landscape:
    """Servers, a store that is open, and whatever a test asks of them."""

    nats: Server
    redis: Server
    prefix: str
    store: RedisStore
    bus: Bus
    subjects: Subjects

    async def get(self, key: ObjectKey) -> Document | None:
        stored = await self.store.get(key)
        return None if stored is None else stored.document()

    async def change(self, key: ObjectKey, changes: Document) -> None:
        while True:
            stored = await self.store.get(key)
            assert stored is not None
            with contextlib.suppress(Conflict):
                await self.store.update(stored, merged(stored.document(), changes))
                return

    async def delete(self, key: ObjectKey) -> None:
        stored = await self.store.get(key)
        assert stored is not None
        await self.store.delete(stored)

    @asynccontextmanager
    async def controllermanager(self, *, ahead: timedelta = timedelta()) -> AsyncGenerator[None]:
        """One replica of the service."""
        settings = ControllerManagerSettings(prefix=self.prefix, instance="one")
        health = Health(CollectorRegistry())
        context = ServiceContext("controllermanager", settings, health=health, clock=ClockAhead(ahead))
        async with connected_adapters(self.nats, self.redis, self.prefix) as (store, bus):
            try:
                await start_controllermanager(context, Connections(store, bus, self.subjects))
                yield
            finally:
                await context.close()


@pytest.fixture
async def landscape(shared_nats_server: Server, shared_redis_server: Server) -> AsyncIterator[Landscape]:
    """Relay and apiserver, a project, and no replica of the service yet."""
    prefix = next(_prefixes)
    subjects = Subjects(prefix)
    async with AsyncExitStack() as stack:
        store, bus = await stack.enter_async_context(
            connected_adapters(shared_nats_server, shared_redis_server, prefix)
        )
        outbox = RedisConnection(shared_redis_server.url, prefix)
        stack.push_async_callback(outbox.close)
        relay = asyncio.create_task(Relay(RedisOutbox(outbox, _CLOCK, leader="relay"), bus, subjects, _CLOCK).run())
        apiserver = ServiceContext(
            "apiserver",
            ApiserverSettings(prefix=prefix, fetch_wait_seconds=0.2),
            health=Health(CollectorRegistry()),
            clock=_CLOCK,
        )

        async def is_open() -> None:
            try:
                await store.create(a_project("dev"))
            except Unavailable as error:
                raise AssertionError from error

        await eventually(is_open, every=0.02)
        await start_apiserver(apiserver, Connections(store, bus, subjects))
        try:
            yield Landscape(shared_nats_server, shared_redis_server, prefix, store, bus, subjects)
        finally:
            await apiserver.close()
            relay.cancel()
            await asyncio.gather(relay, return_exceptions=True)
