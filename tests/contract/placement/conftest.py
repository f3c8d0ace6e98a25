"""Placements on real servers: relay and replicas of the service; what clusters say, a test says itself."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
import prometheus_client
import pytest

from gardenbus.common.adapters.redis.connection import RedisConnection
from gardenbus.common.adapters.redis.store import RedisStore
from gardenbus.common.api.conditions import conditions_of
from gardenbus.common.api.document import Document, StoredObject, section
from gardenbus.common.api.fleet.placement_parts import of
from gardenbus.common.api.fleet.works import CLEANED_UP
from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.errors import Conflict, NotFound, Unavailable
from gardenbus.common.ports.clock import timestamp
from gardenbus.common.ports.connections import Connections
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.common.runtime.health import Health
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.placement.app import start_placement
from gardenbus.placement.settings import PlacementSettings
from gardenbus.relay.adapters.redis_outbox import RedisOutbox
from gardenbus.relay.relay import Relay
from tests.support.builders import merged
from tests.support.connected import connected_adapters
from tests.support.eventually import eventually
from tests.support.placements import WEB, a_live_cluster, a_namespace
from tests.support.servers import Server

_prefixes = (f"placing{number}" for number in itertools.count())
CLOCK = SystemClock()


class Agents:
    """The agents of all clusters: what they are told of is done at once, but for those that are `broken`."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store
        self.broken: set[str] = set()
        self.are_silent = False

    async def run(self) -> None:
        while True:
            with contextlib.suppress(Unavailable):
                for stored in (await self._store.list_page("work")).objects:
                    with contextlib.suppress(Conflict, NotFound):
                        await self._report_status(stored, stored.document())
            await asyncio.sleep(0.05)

    async def _report_status(self, stored: StoredObject, work: Document) -> None:
        if self.are_silent:
            return
        if stored.is_deleting:
            reported = {"Applied": ("False", CLEANED_UP)}
        else:
            works = "False" if stored.key.namespace.removeprefix("fleet-member-") in self.broken else "True"
            reported = {"Applied": (works, "Tested"), "Available": (works, "Tested")}
        now, generation = timestamp(CLOCK.now()), stored.generation
        announced = {
            (each["type"], each["status"], each["reason"], each["observedGeneration"]) for each in conditions_of(work)
        }
        if announced != {(kind, *words, generation) for kind, words in reported.items()}:
            conditions = [
                {"type": kind, "status": words[0], "reason": words[1], "observedGeneration": generation}
                | {"lastTransitionTime": now}
                for kind, words in reported.items()
            ]
            await self._store.update(stored, {**work, "status": {"conditions": conditions}})


@dataclass
class Landscape:
    """Servers, and what a test needs to look at them."""

    nats: Server
    redis: Server
    prefix: str
    store: RedisStore
    subjects: Subjects
    agents: Agents

    async def add(self, *documents: Document) -> None:
        for document in documents:
            await self.store.create(document)

    async def clusters(self, *names: str, **labels: str) -> None:
        await self.add(*(a_live_cluster(name, CLOCK, labels) for name in names))

    async def change(self, key: ObjectKey, patch: Document) -> None:
        while True:
            stored = await self.store.get(key)
            assert stored is not None, key
            try:
                await self.store.update(stored, merged(stored.document(), patch))
            except Conflict:
                continue
            return

    async def get(self, key: ObjectKey = WEB) -> Document:
        stored = await self.store.get(key)
        assert stored is not None, f"{key} not found"
        return stored.document()

    async def delete(self, key: ObjectKey) -> None:
        while True:
            stored = await self.store.get(key)
            assert stored is not None, key
            try:
                await self.store.delete(stored)
            except Conflict:
                continue
            return

    async def all(self, kind: str) -> list[StoredObject]:
        found: list[StoredObject] = []
        token: str | None = None
        while True:
            page = await self.store.list_page(kind, continue_token=token)
            found += page.objects
            token = page.continue_token
            if token is None:
                return found

    async def chosen(self, placement: ObjectKey = WEB) -> dict[str, str]:
        """The state of each binding of a placement that was not given up, by cluster."""
        found: dict[str, str] = {}
        for stored in await self.all(of(placement.kind).binding.lower()):
            document = stored.document()
            labels, spec = section(document, "metadata", "labels"), section(document, "spec")
            is_own = labels["kubernetes-fleet.io/parent-CRP"] == placement.name
            if is_own and stored.key.namespace == placement.namespace and spec["state"] != "Unscheduled":
                assert spec["targetCluster"] not in found
                found[spec["targetCluster"]] = spec["state"]
        return found

    async def until_chosen(self, *clusters: str, placement: ObjectKey = WEB) -> None:
        async def reached() -> None:
            assert sorted(await self.chosen(placement)) == sorted(clusters)

        await eventually(reached, every=0.05)

    @asynccontextmanager
    async def replica(self, name: str = "one", **settings: Any) -> AsyncGenerator[ServiceContext[PlacementSettings]]:
        """One replica of the service."""
        quick = PlacementSettings(resource_collection_seconds=0.0, resource_interval_seconds=0.0, tick_seconds=0.1)
        configured = msgspec.structs.replace(quick, prefix=self.prefix, instance=name, **settings)
        health = Health(prometheus_client.CollectorRegistry())
        context = ServiceContext("placement", configured, health=health, clock=CLOCK)
        async with connected_adapters(self.nats, self.redis, self.prefix) as (store, bus):
            try:
                await start_placement(context, Connections(store, bus, self.subjects))
                yield context
            finally:
                await context.close()


@pytest.fixture
async def landscape(shared_nats_server: Server, shared_redis_server: Server) -> AsyncIterator[Landscape]:
    """A landscape without any replica of the service yet."""
    prefix = next(_prefixes)
    subjects = Subjects(prefix)
    async with AsyncExitStack() as stack:
        store, bus = await stack.enter_async_context(
            connected_adapters(shared_nats_server, shared_redis_server, prefix)
        )
        outbox_connection = RedisConnection(shared_redis_server.url, prefix)
        stack.push_async_callback(outbox_connection.close)
        relay = Relay(RedisOutbox(outbox_connection, CLOCK, leader="relay"), bus, subjects, CLOCK)
        task = asyncio.create_task(relay.run())

        async def is_open() -> None:
            try:
                await store.create(a_namespace())
            except Unavailable as error:
                raise AssertionError from error

        await eventually(is_open, every=0.02)
        agents = Agents(store)
        tasks = (task, asyncio.create_task(agents.run()))
        try:
            yield Landscape(shared_nats_server, shared_redis_server, prefix, store, subjects, agents)
        finally:
            for each in tasks:
                each.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
