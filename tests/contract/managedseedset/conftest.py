"""Sets of seeds on real servers: relay, apiserver, scheduler, two service replicas, and scripted gardenlets."""

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import prometheus_client
import pytest

from gardenbus.apiserver.app import start_apiserver
from gardenbus.apiserver.settings import ApiserverSettings
from gardenbus.common.adapters.redis.connection import RedisConnection
from gardenbus.common.adapters.redis.store import RedisStore
from gardenbus.common.api.document import Document, StoredObject, encode, section
from gardenbus.common.api.garden.managed_seeds import seed_of
from gardenbus.common.api.keys import Header, ObjectKey, Subjects
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.bus import Bus, Message
from gardenbus.common.ports.connections import Connections
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.common.runtime.health import Health
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.managedseedset.app import start_managedseedset
from gardenbus.managedseedset.settings import ManagedSeedSetSettings
from gardenbus.relay.adapters.redis_outbox import RedisOutbox
from gardenbus.relay.relay import Relay
from gardenbus.scheduler.app import start_scheduler
from gardenbus.scheduler.metrics import SchedulerMetrics
from gardenbus.scheduler.settings import SchedulerSettings
from tests.support.builders import a_cloudprofile, a_condition, a_project, a_seed
from tests.support.connected import connected_adapters
from tests.support.eventually import eventually
from tests.support.seed_sets import SET, a_garden_project
from tests.support.servers import Server

HOST_SEED = "host-seed"
_prefixes = (f"sets{number}" for number in itertools.count())
_CLOCK = SystemClock()


class Gardenlets:
    """All gardenlets of a landscape: read the store, and report on the bus. `broken` shoots fail."""

    def __init__(self, store: RedisStore, bus: Bus, subjects: Subjects) -> None:
        self._store = store
        self._bus = bus
        self._subjects = subjects
        self._reported: dict[tuple[ObjectKey, str], int] = {}
        self.broken: set[str] = set()
        self.silent: set[str] = set()

    async def run(self) -> None:
        while True:
            with contextlib.suppress(Unavailable):
                await self._work()
            await asyncio.sleep(0.03)

    async def _work(self) -> None:
        for stored in (await self._store.list_page("shoot")).objects:
            if stored.parts.seed_name:
                await self._shoot(stored, stored.document())
        for stored in (await self._store.list_page("managedseed")).objects:
            await self._managed_seed(stored, stored.document())
        for stored in (await self._store.list_page("seed")).objects:
            await self._seed(stored, stored.document())

    async def _shoot(self, stored: StoredObject, shoot: Document) -> None:
        wanted, actual = stored.parts.seed_name, stored.parts.status_seed_name
        status = section(shoot, "status")
        operation = section(status, "lastOperation")
        generation = shoot["metadata"]["generation"]
        if not actual:
            await self._report(wanted, stored, {"seedName": wanted})
        elif wanted != actual:
            await self._report(actual, stored, {**_executed("Migrate", generation), "seedName": wanted})
        elif stored.is_deleting:
            await self._report(actual, stored, _executed("Delete", generation))
        elif status.get("observedGeneration") != generation or operation.get("state") not in ("Succeeded", "Failed"):
            kind = "Restore" if operation.get("type") == "Migrate" else "Create"
            kind = "Reconcile" if operation.get("state") == "Succeeded" and kind == "Create" else kind
            state = "Failed" if stored.key.name in self.broken else "Succeeded"
            await self._report(actual, stored, _executed(kind, generation, state))

    async def _managed_seed(self, stored: StoredObject, managed_seed: Document) -> None:
        name, status = stored.key.name, section(managed_seed, "status")
        shoot = await self._store.get(ObjectKey("shoot", "garden", name))
        if shoot is None or not shoot.parts.status_seed_name:
            return
        host = shoot.parts.status_seed_name
        seed = await self._store.get(ObjectKey("seed", "", name))
        if stored.is_deleting:
            if seed is None:
                gone = a_condition("SeedRegistered", "False", reason="Deleted")
                await self._report(host, stored, {"conditions": [gone]})
            else:
                await self._report(host, seed, None, verb="delete")
            return
        if section(shoot.document(), "status", "lastOperation").get("state") != "Succeeded":
            return
        if seed is None:
            await self._report(host, stored, seed_of(managed_seed), verb="apply", key=ObjectKey("seed", "", name))
        if status.get("observedGeneration") != managed_seed["metadata"]["generation"]:
            observed = {"observedGeneration": managed_seed["metadata"]["generation"]}
            await self._report(host, stored, {**observed, "conditions": [a_condition("SeedRegistered")]})

    async def _seed(self, stored: StoredObject, seed: Document) -> None:
        name, status = stored.key.name, section(seed, "status")
        if name in self.silent or status.get("observedGeneration") == seed["metadata"]["generation"]:
            return
        kinds = ("GardenletReady", "SeedSystemComponentsHealthy", "BackupBucketsReady")
        conditions = [a_condition(kind) for kind in kinds]
        observed = {"observedGeneration": seed["metadata"]["generation"], "conditions": conditions}
        await self._report(name, stored, {**a_seed(name, shoots="10")["status"], **observed})

    async def _report(
        self,
        seed: str,
        about: StoredObject,
        content: Document | None,
        *,
        verb: str = "status",
        key: ObjectKey | None = None,
    ) -> None:
        """Report once for each version of the object."""
        reported = (key or about.key, verb + json.dumps(content, sort_keys=True))
        if self._reported.get(reported) == about.version:
            return
        self._reported[reported] = about.version
        headers = {Header.VERB: verb} | ({Header.UID: about.uid} if key is None else {})
        body = {"status": content} if verb == "status" else content
        payload = b"" if body is None else encode(body)
        await self._bus.publish(Message(self._subjects.report(seed, key or about.key), payload, headers))


def _executed(kind: str, generation: int, state: str = "Succeeded") -> Document:
    operation = {"type": kind, "state": state, "progress": 100, "lastUpdateTime": "2026-01-02T03:04:05Z"}
    return {"observedGeneration": generation, "lastOperation": operation}


@dataclass
class Landscape:
    """Servers, services and what a test needs to inspect them."""

    nats: Server
    redis: Server
    prefix: str
    store: RedisStore
    bus: Bus
    subjects: Subjects
    gardenlets: Gardenlets
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def query(self, tail: str, body: Document) -> Document:
        response: Document = json.loads(await self.bus.request(self.subjects.api(tail), encode(body)))
        assert response["ok"], response["error"]
        return response

    async def scale(self, replicas: int) -> None:
        await self.query("scale", {"namespace": "garden", "name": SET.name, "replicas": replicas})

    async def patch(self, key: ObjectKey, patch: Document) -> None:
        await self.query("patch", {"kind": key.kind, "namespace": key.namespace, "name": key.name, "patch": patch})

    async def get(self, key: ObjectKey) -> Document:
        stored = await self.store.get(key)
        assert stored is not None, f"{key} not found"
        return stored.document()

    async def names(self, kind: str, namespace: str | None = None) -> list[str]:
        return [stored.key.name for stored in (await self.store.list_page(kind, namespace)).objects]

    async def until_status(self, **wanted: object) -> Document:
        """Wait until the set's status is so; None for what shall be absent."""

        async def reached() -> Document:
            status = section(await self.get(SET), "status")
            assert {name: status.get(name) for name in wanted} == wanted, status
            return status

        return await eventually(reached, every=0.05)

    @asynccontextmanager
    async def sets(self, **settings: object) -> AsyncGenerator[ServiceContext[ManagedSeedSetSettings]]:
        """One replica of the service."""
        configured = ManagedSeedSetSettings(prefix=self.prefix, instance="one", **settings)  # pyright: ignore[reportArgumentType]
        health = Health(prometheus_client.CollectorRegistry())
        context = ServiceContext("managedseedset", configured, health=health, clock=_CLOCK)
        async with connected_adapters(self.nats, self.redis, self.prefix) as (store, bus):
            try:
                await start_managedseedset(context, Connections(store, bus, self.subjects))
                yield context
            finally:
                await context.close()


@asynccontextmanager
async def a_landscape(nats: Server, redis: Server) -> AsyncGenerator[Landscape]:
    """Everything but the service itself."""
    prefix = next(_prefixes)
    subjects = Subjects(prefix)
    async with AsyncExitStack() as stack:
        store, bus = await stack.enter_async_context(connected_adapters(nats, redis, prefix))
        outbox_connection = RedisConnection(redis.url, prefix)
        stack.push_async_callback(outbox_connection.close)
        relay = Relay(RedisOutbox(outbox_connection, _CLOCK, leader="relay"), bus, subjects, _CLOCK)
        tasks = [asyncio.create_task(relay.run())]
        apiserver = ServiceContext(
            "apiserver",
            ApiserverSettings(prefix=prefix, fetch_wait_seconds=0.2),
            health=Health(prometheus_client.CollectorRegistry()),
            clock=_CLOCK,
        )

        async def is_open() -> None:
            try:
                await store.create(a_garden_project())
            except Unavailable as error:
                raise AssertionError from error

        await eventually(is_open, every=0.02)
        await start_apiserver(apiserver, Connections(store, bus, subjects))
        scheduler = ServiceContext(
            "scheduler",
            SchedulerSettings(prefix=prefix),
            health=Health(prometheus_client.CollectorRegistry()),
            clock=_CLOCK,
        )
        await start_scheduler(
            scheduler,
            Connections(store, bus, subjects),
            backoff=lambda _: 1.0,
            metrics=SchedulerMetrics(prometheus_client.CollectorRegistry()),
        )
        gardenlets = Gardenlets(store, bus, subjects)
        tasks.append(asyncio.create_task(gardenlets.run()))
        taints: Mapping[str, object] = {"taints": [{"key": "seed.gardener.cloud/protected"}]}
        for document in (a_project(), a_cloudprofile(), a_seed(HOST_SEED, ready=False, spec=taints)):
            await store.create(document)
        try:
            yield Landscape(nats, redis, prefix, store, bus, subjects, gardenlets)
        finally:
            await scheduler.close()
            await apiserver.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture
async def landscape(shared_nats_server: Server, shared_redis_server: Server) -> AsyncIterator[Landscape]:
    """A landscape with a host seed, and no replica of the service yet."""
    async with a_landscape(shared_nats_server, shared_redis_server) as landscape:
        yield landscape
