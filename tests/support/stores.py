"""The store under test, on Redis or in memory, with what a test needs around it."""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from gardenbus.common.adapters.redis.connection import RedisConnection
from gardenbus.common.adapters.redis.function_library import LIBRARY, Library
from gardenbus.common.adapters.redis.store import RedisStore
from gardenbus.common.adapters.redis.users import RedisUser, acl_rules
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.store import (
    BindOutcome,
    SeedBinding,
    SeenGroups,
    Store,
    UnblockIndexes,
    UnschedulableResult,
    UnschedulableShoot,
)
from gardenbus.relay.adapters.redis_outbox import RedisOutbox
from gardenbus.relay.ports.outbox import EventEntry, ObjectEntry, Outbox, OutboxEntry, QueueEntry
from tests.support.clocks import FakeClock
from tests.support.eventually import HANG_SECONDS
from tests.support.memory.outbox import MemoryOutbox
from tests.support.memory.store import MemoryStore

REPORTER = "tester"
_prefixes = (f"test{number}" for number in itertools.count())


@dataclass
class StoreUnderTest:
    """A store, its relay's side, and short cuts that every test of it takes."""

    name: str
    store: Store
    outbox: Outbox
    clock: FakeClock
    connection: RedisConnection | None = None

    def another_relay(self, leader: str = "another") -> Outbox:
        """A second relay on the same store."""
        if isinstance(self.store, MemoryStore):
            return MemoryOutbox(self.store, leader=leader)
        assert self.connection is not None
        return RedisOutbox(self.connection, self.clock, leader=leader)

    async def open(self, version: int = 0, unblock_index: int = 0) -> None:
        """Open it as a relay does."""
        await self.outbox.lead(86_400)
        await self.outbox.open(version, unblock_index)

    async def close_for_writes(self) -> None:
        """Close it as a restart does: on Redis by loading the library anew, which closes every landscape there."""
        if isinstance(self.store, MemoryStore):
            self.store.close_for_writes()
        elif self.connection is not None:
            await self.connection.ensure_library()
            await self.connection.command("FUNCTION", "DELETE", self.connection.library)
            await self.connection.ensure_library()
        assert not (await self.outbox.lead(86_400)).is_open

    async def reset_versions(self) -> None:
        """Begin the versions anew, as a store that lost everything does."""
        if isinstance(self.store, MemoryStore):
            self.store.state.reset_versions()
        elif self.connection is not None:
            for counter in ("version", "usage_version"):
                await self.connection.command("SET", self.connection.key(counter), "0")

    async def pass_time(self, seconds: float) -> None:
        """Let time go by, for the store too."""
        self.clock.advance(seconds)
        if self.connection is not None:
            await asyncio.sleep(seconds)

    async def created(self, document: Document, **options: Any) -> StoredObject:
        """Create an object that nothing speaks against."""
        return stored(await self.store.create(document, **options))

    async def changed(self, base: StoredObject, document: Document, **options: Any) -> StoredObject:
        """Update an object that nothing speaks against."""
        return stored(await self.store.update(base, document, **options))

    async def now(self, key: ObjectKey) -> StoredObject:
        """An object that must be there."""
        return stored(await self.store.get(key))

    async def bound(self, shoot: StoredObject, seed: str, **changes: Any) -> BindOutcome:
        """Bind one shoot as it was read."""
        reply = await self.store.bind([a_binding(shoot, seed, **changes)])
        return reply.outcomes[0]

    async def marked_unschedulable(self, shoot: StoredObject, **changes: Any) -> UnschedulableResult:
        """Park one shoot as it was read, on what is gained by now."""
        unblock_indexes = (await self.store.usage()).unblock_indexes
        reply = await self.store.mark_unschedulable(
            [an_unschedulable_shoot(shoot, seen=changes.pop("seen", unblock_indexes), **changes)]
        )
        return reply.outcomes[0]

    async def entries(self) -> Sequence[OutboxEntry]:
        """The whole outbox, as who leads sees it."""
        await self.outbox.lead(86_400)
        return (await self.outbox.head(100_000)).entries

    async def fresh_entries(self) -> Sequence[OutboxEntry]:
        """What came since this was called last."""
        entries = await self.entries()
        if entries:
            await self.outbox.trim(entries[-1].entry, {})
        return entries

    async def work(self) -> list[str]:
        """The queue entries that came since."""
        return [entry.tail for entry in await self.fresh_entries() if isinstance(entry, QueueEntry)]

    async def changes(self) -> list[ObjectEntry]:
        """The announcements of objects that came since."""
        return [entry for entry in await self.fresh_entries() if isinstance(entry, ObjectEntry)]

    async def events(self) -> list[EventEntry]:
        """The Events that came since."""
        return [entry for entry in await self.fresh_entries() if isinstance(entry, EventEntry)]


def in_memory(*, is_open: bool = True) -> StoreUnderTest:
    """A store in memory; open unless said otherwise."""
    clock = FakeClock()
    store = MemoryStore(clock, reporter=REPORTER, is_open=is_open)
    return StoreUnderTest("memory", store, MemoryOutbox(store), clock)


def on_redis(
    url: str, prefix: str | None = None, *, library: Library = LIBRARY, leader: str = "relay"
) -> StoreUnderTest:
    """A store on Redis below a prefix of its own; closed. Close its connection at the end."""
    clock = FakeClock()
    connection = RedisConnection(url, prefix or next(_prefixes), timeout_seconds=HANG_SECONDS, library=library)
    store = RedisStore(connection, clock, reporter=REPORTER)
    return StoreUnderTest("redis", store, RedisOutbox(connection, clock, leader=leader), clock, connection)


@asynccontextmanager
async def on_redis_as_services(url: str, service: RedisUser = "apiserver") -> AsyncGenerator[StoreUnderTest]:
    """The same, with each side as its own Redis user: the store as a service's, the outbox as the relay's.

    The kit's own connection is the administrator's.
    """
    kit = on_redis(url)
    assert kit.connection is not None
    prefix = kit.connection.prefix
    admitted: dict[RedisUser, RedisConnection] = {}
    for user in (service, "relay"):
        name = f"{user}-{prefix}"
        await kit.connection.command("ACL", "SETUSER", name, "on", f">{name}", *acl_rules(user, prefix))
        own_url = url.replace("://", f"://{name}:{name}@")
        admitted[user] = RedisConnection(own_url, prefix, timeout_seconds=HANG_SECONDS)
    await admitted["relay"].ensure_ready()
    try:
        store = RedisStore(admitted[service], kit.clock, reporter=REPORTER)
        outbox = RedisOutbox(admitted["relay"], kit.clock, leader="relay")
        yield replace(kit, store=store, outbox=outbox)
    finally:
        for connection in (*admitted.values(), kit.connection):
            await connection.close()


def stored(response: object) -> StoredObject:
    """An answer that must be an object."""
    assert isinstance(response, StoredObject), response
    return response


def a_binding(
    shoot: StoredObject,
    seed: str,
    *,
    scheduling_generation: int | None = None,
    spec: Document | None = None,
    decision_record: bytes = b"",
    groups: SeenGroups | None = None,
) -> SeedBinding:
    """The placement of a shoot as it was read."""
    return SeedBinding(
        shoot.key.namespace,
        shoot.key.name,
        shoot.uid,
        shoot.generation,
        seed,
        scheduling_generation,
        spec,
        decision_record,
        groups=groups or {},
    )


def an_unschedulable_shoot(
    shoot: StoredObject,
    *,
    seen: UnblockIndexes,
    message: str = "no seed fits",
    equivalence_class: str = "small",
    descriptor: bytes = b'{"size":1}',
    scheduler_name: str = "default-scheduler",
    trace: str = "",
    groups: SeenGroups | None = None,
) -> UnschedulableShoot:
    """The refusal of a shoot as it was read."""
    return UnschedulableShoot(
        namespace=shoot.key.namespace,
        name=shoot.key.name,
        uid=shoot.uid,
        generation=shoot.generation,
        scheduler_name=scheduler_name,
        equivalence_class=equivalence_class,
        descriptor=descriptor,
        seen=seen,
        message=message,
        trace=trace,
        groups=groups or {},
    )
