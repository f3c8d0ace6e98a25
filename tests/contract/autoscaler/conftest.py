"""Autoscalers beside a relay, an apiserver and a scheduler on real NATS and Redis; the test plays the set of seeds."""

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from gardenbus.apiserver.app import start_apiserver
from gardenbus.apiserver.settings import ApiserverSettings
from gardenbus.autoscaler.app import start_autoscaler
from gardenbus.autoscaler.settings import AutoscalerSettings
from gardenbus.common.adapters.nats import jetstream
from gardenbus.common.adapters.redis.connection import RedisConnection
from gardenbus.common.adapters.redis.store import RedisStore
from gardenbus.common.api.conditions import conditions_of, get_condition
from gardenbus.common.api.configuration.seed_autoscaler import AutoscalerConfiguration
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.garden.managed_seed_sets import replica_managed_seed, replica_shoot, template_seed
from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.errors import Conflict, Unavailable
from gardenbus.common.ports.bus import Bus, ReplayDone, StreamMessage
from gardenbus.common.ports.connections import Connections
from gardenbus.common.ports.store import Store
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.common.runtime.health import Health
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.common.runtime.settings import CommonSettings
from gardenbus.relay.adapters.redis_outbox import RedisOutbox
from gardenbus.relay.relay import Relay
from gardenbus.scheduler.app import start_scheduler
from gardenbus.scheduler.metrics import SchedulerMetrics
from gardenbus.scheduler.settings import SchedulerSettings
from tests.support.autoscaling import API
from tests.support.builders import a_cloudprofile, a_project, a_shoot, merged
from tests.support.eventually import eventually
from tests.support.servers import Server

_prefixes = (f"scale{number}" for number in itertools.count())
SET = ObjectKey("managedseedset", "garden", "grove")
AUTOSCALER = ObjectKey("seedautoscaler", "garden", "grove")
LABELS = {"set": "grove"}
CAPACITY = 10


def the_set(**changes: Any) -> Document:
    """A set of one seed of 10, whose shoots need a seed label that does not exist."""
    networking = {"nodes": "10.40.0.0/16", "pods": "10.41.0.0/16", "services": "10.42.0.0/16"}
    cluster = a_shoot(spec={"networking": networking, "seedSelector": {"matchLabels": {"host-seed": "yes"}}})["spec"]
    config = {
        "apiVersion": "gardenlet.config.gardener.cloud/v1alpha1",
        "kind": "GardenletConfiguration",
        "resources": {"capacity": {"shoots": CAPACITY}},
        "seedConfig": {"metadata": {"labels": LABELS}},
    }
    return merged(
        {
            "apiVersion": API,
            "kind": "ManagedSeedSet",
            "metadata": {"name": SET.name, "namespace": SET.namespace},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": LABELS},
                "template": {"metadata": {"labels": LABELS}, "spec": {"gardenlet": {"config": config}}},
                "shootTemplate": {"metadata": {"labels": LABELS}, "spec": cluster},
            },
        },
        changes,
    )


def guests(count: int, *, first: int = 0, **spec: Any) -> list[Document]:
    """Shoots that fit the set's seeds."""
    own = {"networking": {"nodes": "10.9.0.0/16"}, **spec}
    return [a_shoot(f"guest-{number:03}", spec=own) for number in range(first, first + count)]


@dataclass
class Scene:
    """Servers, a store that is open, a relay, an apiserver and a scheduler."""

    nats: Server
    redis: Server
    prefix: str
    store: Store
    bus: Bus
    subjects: Subjects

    async def hold(self, *documents: Document) -> None:
        for document in documents:
            await self.store.create(document)

    async def get(self, key: ObjectKey) -> Document:
        stored = await self.store.get(key)
        assert stored is not None, f"{key} not found"
        return stored.document()

    async def change(self, key: ObjectKey, changes: Document) -> None:
        while True:
            stored = await self.store.get(key)
            assert stored is not None
            with contextlib.suppress(Conflict):
                await self.store.update(stored, merged(stored.document(), changes))
                return

    async def remove(self, *keys: ObjectKey) -> None:
        for key in keys:
            while True:
                stored = await self.store.get(key)
                if stored is None:
                    break
                with contextlib.suppress(Conflict):
                    bare = await self.store.update(stored, merged(stored.document(), {"metadata": {"finalizers": []}}))
                    assert isinstance(bare, StoredObject)
                    await self.store.delete(bare)

    async def build(self, *names: str, ready: bool = True) -> None:
        """As the set does: a shoot, a ManagedSeed, and its Seed."""
        managed_seed_set = await self.get(SET)
        for name in names:
            seed = template_seed(managed_seed_set, name)
            placed = merged(replica_shoot(managed_seed_set, name), {"spec": {"seedSelector": None}})
            await self.hold(placed, replica_managed_seed(managed_seed_set, name))
            await self.hold(seed if ready else merged(seed, {"status": None}))

    async def finish(self, name: str) -> None:
        """Let a registered Seed become ready."""
        await self.change(ObjectKey("seed", "", name), {"status": template_seed(await self.get(SET), name)["status"]})

    async def ordered(self) -> int:
        return (await self.get(SET))["spec"]["replicas"]

    async def expect_ordered(self, replicas: int) -> None:
        async def so() -> None:
            status = (await self.get(AUTOSCALER)).get("status", {})
            assert await self.ordered() == replicas, status
            assert (status.get("targetReplicas"), status.get("desiredReplicas")) == (replicas, replicas)

        await eventually(so, every=0.03)

    async def stays_ordered(self, replicas: int, *, seconds: float) -> None:
        end = SystemClock().monotonic() + seconds
        while SystemClock().monotonic() < end:
            assert await self.ordered() == replicas, (await self.get(AUTOSCALER)).get("status")
            await asyncio.sleep(0.03)

    async def expect_condition(self, kind: str, status: str, reason: str) -> str:
        async def so() -> str:
            found = get_condition(conditions_of(await self.get(AUTOSCALER)), kind)
            assert found is not None
            assert (found["status"], found["reason"]) == (status, reason)
            return found["message"]

        return await eventually(so, every=0.03)

    async def expect_placed(self, placed: int, *, waiting: int = 0) -> None:
        async def so() -> None:
            page = await self.store.list_page("shoot", "garden-dev")
            assert sum(bool(shoot.parts.seed_name) for shoot in page.objects) == placed
            waits = await self.store.unschedulable_classes("default-scheduler")
            assert sum(each.count for each in waits if b'"garden-dev"' in each.descriptor) == waiting

        await eventually(so, every=0.03)

    async def events(self, reason: str) -> Sequence[Document]:
        found: dict[str, Document] = {}
        async with self.bus.follow(
            self.subjects.stream("EVENTS"), [f"{self.subjects.prefix}.event.seedautoscaler.>"]
        ) as follower:
            async for event in follower:
                if isinstance(event, ReplayDone):
                    break
                if isinstance(event, StreamMessage):
                    reported = json.loads(event.body)
                    if reported["reason"] == reason:
                        found[reported["message"]] = reported
        return list(found.values())

    @asynccontextmanager
    async def autoscaler(self, *, window: timedelta = timedelta()) -> AsyncGenerator[None]:
        """One replica of the service, with connections of its own."""
        default = AutoscalerConfiguration()
        configuration = AutoscalerConfiguration(
            sync_period=timedelta(seconds=1),
            pace=type(default.pace)(downscale_stabilization=window),
        )
        settings = AutoscalerSettings(prefix=self.prefix, configuration=configuration)
        context = a_context("autoscaler", settings)
        redis = RedisConnection(self.redis.url, self.prefix)
        async with jetstream.connect(self.nats.url, "autoscaler", self.prefix) as bus:
            try:
                store = RedisStore(redis, SystemClock(), reporter="seed-autoscaler")
                await start_autoscaler(context, Connections(store, bus, self.subjects))
                yield
            finally:
                await context.close()
                await redis.close()


def a_context(name: str, settings: CommonSettings) -> ServiceContext[Any]:
    return ServiceContext(name, settings, health=Health(CollectorRegistry()), clock=SystemClock())


@pytest.fixture
async def scene(shared_nats_server: Server, shared_redis_server: Server) -> AsyncIterator[Scene]:
    prefix = next(_prefixes)
    subjects, clock = Subjects(prefix), SystemClock()
    redis = RedisConnection(shared_redis_server.url, prefix)
    async with jetstream.connect(shared_nats_server.url, "test", prefix) as bus:
        relay = Relay(RedisOutbox(redis, clock, leader="relay"), bus, subjects, clock)
        relaying = asyncio.create_task(relay.run())
        store = RedisStore(redis, clock)

        async def is_open() -> None:
            if relaying.done():
                relaying.result()
            try:
                await store.create(a_project())
            except Unavailable as error:
                raise AssertionError from error

        await eventually(is_open, every=0.02)
        await store.create(a_cloudprofile())
        await store.create(a_project("garden", "garden"))
        apiserver = a_context("apiserver", ApiserverSettings(prefix=prefix, fetch_wait_seconds=0.2))
        scheduler = a_context("scheduler", SchedulerSettings(prefix=prefix))
        await start_apiserver(apiserver, Connections(store, bus, subjects))
        await start_scheduler(
            scheduler,
            Connections(store, bus, subjects),
            backoff=lambda _failures: 60.0,
            metrics=SchedulerMetrics(CollectorRegistry()),
        )
        yield Scene(shared_nats_server, shared_redis_server, prefix, store, bus, subjects)
        await scheduler.close()
        await apiserver.close()
        relaying.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await relaying
        await redis.close()
