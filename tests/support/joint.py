"""A relay, a store and an informer on servers that a test may kill and take back in time."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from gardenbus.common.adapters.nats import jetstream
from gardenbus.common.adapters.nats.jetstream import JetStreamBus
from gardenbus.common.adapters.redis.connection import RedisConnection
from gardenbus.common.adapters.redis.store import RedisStore
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.controller.informer import Informer
from gardenbus.common.errors import NotFound, Transient
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.relay.adapters.redis_outbox import RedisOutbox
from gardenbus.relay.relay import Relay, RelaySettings
from tests.support.eventually import eventually
from tests.support.servers import Server

SUBJECTS = Subjects()
CLOCK = SystemClock()


@dataclass
class Joint:
    """Store and bus, and the relays between them."""

    bus: JetStreamBus
    connection: RedisConnection
    store: RedisStore
    nats: Server
    redis: Server
    tasks: list[asyncio.Task[None]] = field(default_factory=list[asyncio.Task[None]])

    def start_relay(
        self, name: str = "one", *, ttl: float = 1.0, connection: RedisConnection | None = None
    ) -> asyncio.Task[None]:
        """Run a relay in the background."""
        settings = RelaySettings(lead_ttl_seconds=ttl, idle_seconds=0.1)
        relay = Relay(self.outbox(name, connection=connection), self.bus, SUBJECTS, CLOCK, settings)
        task = asyncio.create_task(relay.run())
        self.tasks.append(task)
        return task

    def outbox(self, name: str, *, connection: RedisConnection | None = None) -> RedisOutbox:
        """A relay's side of the store."""
        return RedisOutbox(connection or self.connection, CLOCK, leader=name)

    async def stop_relays(self) -> None:
        """Stop them all; each gives the lead back."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        self.tasks.clear()

    async def create(self, document: Document) -> StoredObject:
        """Create as soon as the store is open."""

        async def created() -> StoredObject:
            try:
                stored = await self.store.create(document)
            except Transient as error:
                raise AssertionError(error.message) from error
            assert isinstance(stored, StoredObject)
            return stored

        return await eventually(created)

    async def update(self, key: ObjectKey, **labels: str) -> StoredObject:
        """Change an object's labels."""
        base = await self.store.get(key)
        assert base is not None
        document = base.document()
        document["metadata"]["labels"] = labels
        stored = await self.store.update(base, document)
        assert isinstance(stored, StoredObject)
        return stored

    async def announced(self, subject: str, version: int) -> None:
        """Wait until the last message on a subject is of a version (or a later one)."""

        async def there() -> None:
            try:
                last = await self.bus.last(SUBJECTS.stream(stream_of(subject)), subject)
            except (Transient, NotFound) as error:
                raise AssertionError(error.message) from error
            assert last is not None
            assert int(last.headers["Gardenbus-Version"]) >= version, last.headers

        await eventually(there)

    async def quiet(self) -> None:
        """Wait until everything has been announced."""

        async def empty() -> None:
            try:
                census = await self.store.census()
            except Transient as error:
                raise AssertionError(error.message) from error
            assert census["outbox"] == 0

        await eventually(empty)

    @contextlib.asynccontextmanager
    async def informer(
        self, kinds: Sequence[str], namespaces: Mapping[str, str] | None = None
    ) -> AsyncGenerator[Informer]:
        """A running informer."""
        informer = Informer(self.store, self.bus, SUBJECTS, kinds, namespaces)
        await informer.start()
        try:
            yield informer
        finally:
            await informer.stop()


def stream_of(subject: str) -> str:
    """The stream that a subject of a landscape's belongs to."""
    return {"changed": "OBJECTS", "binding": "BINDINGS", "view": "BINDINGS", "queue": "QUEUES", "later": "QUEUES"}[
        subject.split(".")[1]
    ]


@pytest.fixture
async def joint(nats_server: Server, redis_server: Server) -> AsyncIterator[Joint]:
    """Both servers, connected; no relay yet."""
    connection = RedisConnection(redis_server.url)
    async with jetstream.connect(nats_server.url, "joint") as bus:
        joint = Joint(bus, connection, RedisStore(connection, CLOCK), nats_server, redis_server)
        yield joint
        await joint.stop_relays()
    await connection.close()
