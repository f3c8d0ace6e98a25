"""A guarded nats-server with relay, apiserver and identity service on it, and agents that have nothing but a token."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path
from typing import Any

import prometheus_client

from gardenbus.agent.certificate_requests import Send
from gardenbus.apiserver.app import start_apiserver
from gardenbus.apiserver.settings import ApiserverSettings
from gardenbus.common.adapters.nats import jetstream
from gardenbus.common.adapters.nats.connection import Connection
from gardenbus.common.adapters.nats.credentials import Credentials, Login, login_credentials, read_credentials
from gardenbus.common.adapters.redis.connection import RedisConnection
from gardenbus.common.adapters.redis.store import RedisStore
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.api_client import ApiserverClient
from gardenbus.common.ports.connections import Connections
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.common.runtime.health import Health
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.credentials import secret_files
from gardenbus.credentials.certificates import Authority, Issued, new_authority
from gardenbus.identity.app import start_identity
from gardenbus.identity.settings import IdentitySettings
from gardenbus.relay.adapters.redis_outbox import RedisOutbox
from gardenbus.relay.adapters.redis_stats import outbox_times
from gardenbus.relay.relay import Relay, RelaySettings
from gardenbus.relay.settled import SettledRequests
from tests.support.identities import SUBJECTS, Keys, new_keys, start_guarded_nats
from tests.support.servers import Server, start_redis

CLOCK = SystemClock()


class GuardedLandscape:
    """The services, each with its own credentials, and the operator's requests."""

    def __init__(self, directory: Path, keys: Keys, authority: Issued, nats: Server, redis: Server) -> None:
        self.directory = directory
        self.keys = keys
        self.nats = nats
        self.redis = redis
        self.stack = contextlib.AsyncExitStack()
        self.operator: ApiserverClient
        secret_files.write(directory / "ca.crt", authority.certificate)
        secret_files.write(directory / "ca.key", authority.key)
        for name, pair in (("callout", keys.callout), ("issuer", keys.issuer), ("system", keys.system)):
            secret_files.write(directory / f"{name}.nk", pair.seed.encode())

    async def start(self, replicas: int = 1, **settings: Any) -> None:
        """Start everything."""
        relay, store = await self._connections("relay")
        task = asyncio.create_task(
            Relay(
                RedisOutbox(store[1], CLOCK, leader="one"), relay, SUBJECTS, CLOCK, RelaySettings(idle_seconds=0.05)
            ).run()
        )
        self.stack.push_async_callback(_ended, task)
        settled = SettledRequests(
            lambda: outbox_times(store[1]), lambda: relay.position(SUBJECTS.stream("OBJECTS")), CLOCK
        )
        await relay.serve("relay", "1.0.0", {SUBJECTS.settled: settled.handle})
        bus, own = await self._connections("apiserver")
        configured = ApiserverSettings(fetch_wait_seconds=0.2, authorization="enforce")
        context = ServiceContext("apiserver", configured, health=_health(), clock=CLOCK)
        self.stack.push_async_callback(context.close)
        await start_apiserver(context, Connections(own[0], bus, SUBJECTS))
        for _ in range(replicas):
            await self.start_identity(**settings)
        bus = await self.bus(Login("operator", "the operator's"))
        self.operator = ApiserverClient(bus, SUBJECTS, user="operator")

    async def start_identity(self, **settings: Any) -> Callable[[], Any]:
        """Start one (more) replica; returns what stops it."""
        own = self.directory
        configured = IdentitySettings(
            nats_url=self.nats.url,
            callout_credentials=str(own / "callout.nk"),
            issuer_key=str(own / "issuer.nk"),
            authorities=str(own / "ca.crt"),
            signing_certificate=str(own / "ca.crt"),
            signing_key=str(own / "ca.key"),
            system_credentials=str(own / "system.nk"),
            **settings,
        )
        bus, store = await self._connections("identity")
        context = ServiceContext("identity", configured, health=_health(), clock=CLOCK)
        self.stack.push_async_callback(context.close)
        await start_identity(context, Connections(store[0], bus, SUBJECTS))
        return context.close

    async def bus(self, login: Login | Path) -> jetstream.JetStreamBus:
        """A bus of somebody with a password, or with credentials in a file."""
        credentials = login_credentials(login) if isinstance(login, Login) else read_credentials(login, "")
        return await self.stack.enter_async_context(self._connected("somebody", credentials))

    @contextlib.asynccontextmanager
    async def send_as(self, credentials: Credentials, user: str) -> AsyncGenerator[Send]:
        """Requests of a user, over a connection of its own."""
        async with self._connected(user, credentials) as bus:
            yield ApiserverClient(bus, SUBJECTS, user=user, timeout_seconds=3).request

    async def connect(self, credentials: Credentials, user: str) -> Connection:
        """A connection of a user; raises Unavailable when it is not let in."""
        connection = Connection()
        self.stack.push_async_callback(connection.close)
        await connection.open(
            self.nats.url, user, credentials=credentials, on_reconnect=lambda: None, fails_unauthorized=True
        )
        return connection

    @property
    def store(self) -> RedisStore:
        """The store, past all services."""
        return self._store

    async def stored(self, key: ObjectKey) -> Document:
        """An object; empty when it is not there."""
        found = await self._store.get(key)
        return found.document() if found is not None else {}

    async def all_stored(self) -> Mapping[ObjectKey, StoredObject]:
        """All objects of the store."""
        found: dict[ObjectKey, StoredObject] = {}
        for counted in await self._store.census():
            family, _, kind = counted.partition(".")
            token, is_left = None, family == "objects"
            while is_left:
                page = await self._store.list_page(kind, continue_token=token)
                found |= {stored.key: stored for stored in page.objects}
                token = page.continue_token
                is_left = token is not None
        return found

    async def _connections(self, service: str) -> tuple[jetstream.JetStreamBus, tuple[RedisStore, RedisConnection]]:
        file = self.directory / f"{service}.service.nk"
        secret_files.write(file, self.keys.services[service].seed.encode())
        bus = await self.stack.enter_async_context(self._connected(service, read_credentials(file, service)))
        connection = RedisConnection(self.redis.url)
        self.stack.push_async_callback(connection.close)
        self._store = RedisStore(connection, CLOCK, reporter=service)
        return bus, (self._store, connection)

    def _connected(
        self, name: str, credentials: Credentials
    ) -> "contextlib.AbstractAsyncContextManager[jetstream.JetStreamBus]":
        return jetstream.connect(
            self.nats.url, name, credentials=credentials, manages_streams=name == "relay", fails_unauthorized=True
        )


async def _ended(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _health() -> Health:
    return Health(prometheus_client.CollectorRegistry())


@contextlib.asynccontextmanager
async def guarded_landscape(directory: Path, replicas: int = 1, **settings: Any) -> AsyncGenerator[GuardedLandscape]:
    """All of it, on servers of its own."""
    directory.mkdir(parents=True, exist_ok=True)
    authority = new_authority("gardenbus", CLOCK.now())
    keys = new_keys()._replace(authority=Authority(authority))
    nats, redis = start_guarded_nats(directory / "nats", keys), start_redis(directory / "redis")
    landscape = GuardedLandscape(directory, keys, authority, nats, redis)
    try:
        await landscape.start(replicas, **settings)
        yield landscape
    finally:
        await landscape.stack.aclose()
        nats.stop()
        redis.stop()
