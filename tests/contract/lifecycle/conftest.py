"""A lifecycle on a real NATS with short periods, and gardenlets that do nothing but send heartbeats."""

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import prometheus_client
import pytest

from gardenbus.common.adapters.nats import jetstream
from gardenbus.common.adapters.nats.streams import StreamSettings
from gardenbus.common.api.conditions import conditions_of, get_condition
from gardenbus.common.api.configuration.controller_manager import LifecycleConfiguration
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.errors import Conflict, Transient
from gardenbus.common.ports.bus import Bus, Message, StreamMessage
from gardenbus.common.ports.connections import Connections
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.common.runtime.health import Health
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.lifecycle.app import start_lifecycle
from gardenbus.lifecycle.settings import LifecycleSettings
from gardenbus.relay.relay import Relay
from tests.support.eventually import eventually
from tests.support.memory.outbox import MemoryOutbox
from tests.support.memory.store import MemoryStore
from tests.support.servers import Server, start_nats

MONITOR_SECONDS = 2.0
SYNC_SECONDS = 0.5
SHOOT_SECONDS = 2.0
RENEWAL_SECONDS = 0.2
CONFIGURATION = LifecycleConfiguration(
    sync_period=timedelta(seconds=SYNC_SECONDS),
    monitor_period=timedelta(seconds=MONITOR_SECONDS),
    shoot_monitor_period=timedelta(seconds=SHOOT_SECONDS),
)
_prefixes = (f"life{number}" for number in itertools.count())


@dataclass
class Scene:
    """Store, bus and relay of a landscape; lifecycles and gardenlets come and go."""

    server: Server
    subjects: Subjects
    store: MemoryStore
    bus: Bus
    tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict[str, asyncio.Task[None]])
    lifecycles: list[tuple[ServiceContext[LifecycleSettings], contextlib.AsyncExitStack]] = field(
        default_factory=list[tuple[ServiceContext[LifecycleSettings], contextlib.AsyncExitStack]]
    )

    async def start_lifecycle(self) -> None:
        """Start one (more) replica, with a connection of its own."""
        settings = LifecycleSettings(prefix=self.subjects.prefix, configuration=CONFIGURATION)
        health = Health(prometheus_client.CollectorRegistry())
        context = ServiceContext("lifecycle", settings, health=health, clock=SystemClock())
        stack = contextlib.AsyncExitStack()
        bus = await stack.enter_async_context(
            jetstream.connect(
                self.server.url,
                "lifecycle",
                self.subjects.prefix,
                streams=StreamSettings(lease_seconds=MONITOR_SECONDS),
            )
        )
        self.lifecycles.append((context, stack))
        await start_lifecycle(context, Connections(self.store, bus, self.subjects))

        async def ready() -> None:
            assert (await context.health.readyz()).ok

        await eventually(ready)

    async def stop_lifecycles(self) -> None:
        for context, stack in self.lifecycles:
            await context.close()
            await stack.aclose()
        self.lifecycles.clear()

    async def add(self, document: Document) -> None:
        assert isinstance(await self.store.create(document), StoredObject)

    async def now(self, kind: str, name: str, namespace: str = "") -> Document:
        stored = await self.store.get(ObjectKey(kind, namespace, name))
        assert stored is not None
        return stored.document()

    async def write(self, kind: str, name: str, change: Callable[[Document], None], namespace: str = "") -> None:
        """Change an object, retrying on conflict."""
        while True:
            stored = await self.store.get(ObjectKey(kind, namespace, name))
            assert stored is not None
            document = stored.document()
            change(document)
            with contextlib.suppress(Conflict):
                await self.store.update(stored, document)
                return

    def start_heartbeats(self, seed: str, *, at: Callable[[datetime], datetime] = lambda now: now) -> None:
        """Start a gardenlet's heartbeats; `at` turns the time into the written one."""
        self.tasks[seed] = asyncio.create_task(self._send_heartbeats(seed, at))

    async def stop_heartbeats(self, seed: str) -> None:
        """Stop a gardenlet's heartbeats."""
        task = self.tasks.pop(seed)
        task.cancel()
        await asyncio.wait({task})

    async def _send_heartbeats(self, seed: str, at: Callable[[datetime], datetime]) -> None:
        while True:
            with contextlib.suppress(Transient):
                await self.publish_lease(seed, {"holderIdentity": seed, "renewTime": at(SystemClock().now())})
            await asyncio.sleep(RENEWAL_SECONDS)

    async def publish_lease(self, seed: str, spec: Any) -> None:
        body = json.dumps({"kind": "Lease", "spec": spec}, default=datetime.isoformat).encode()
        await self.bus.publish(Message(self.subjects.lease(seed), body))

    async def readiness(self, seed: str) -> Document:
        condition = get_condition(conditions_of(await self.now("seed", seed)), "GardenletReady")
        assert condition is not None
        return condition

    async def until_silent(self, seed: str) -> None:
        async def silent() -> None:
            assert (await self.readiness(seed))["status"] == "Unknown"

        await eventually(silent, every=0.02)

    async def stays_ready(self, seed: str, *, seconds: float) -> None:
        end = SystemClock().monotonic() + seconds
        while SystemClock().monotonic() < end:
            assert (await self.readiness(seed))["status"] == "True", await self.readiness(seed)
            await asyncio.sleep(0.02)

    async def events(self) -> list[Document]:
        """All Events on the bus."""
        found: list[Document] = []
        stream = self.subjects.stream("EVENTS")
        async with self.bus.follow(stream, [f"{self.subjects.prefix}.event.>"]) as follower:
            async for event in follower:
                if not isinstance(event, StreamMessage):
                    return found
                found.append(json.loads(event.body))
        return found


@pytest.fixture(scope="module")
def own_nats_server(tmp_path_factory: pytest.TempPathFactory) -> Server:  # pyright: ignore[reportInvalidTypeForm]
    server = start_nats(tmp_path_factory.mktemp("nats") / "server")
    yield server  # pyright: ignore[reportReturnType]
    server.stop()


@pytest.fixture
async def scene(own_nats_server: Server, tmp_path: Path) -> AsyncIterator[Scene]:
    prefix = next(_prefixes)
    subjects = Subjects(prefix)
    clock = SystemClock()
    store = MemoryStore(clock, reporter="lifecycle", is_open=False)
    async with jetstream.connect(
        own_nats_server.url, "scene", prefix, streams=StreamSettings(lease_seconds=MONITOR_SECONDS)
    ) as bus:
        relay = Relay(MemoryOutbox(store, leader="relay"), bus, subjects, clock)
        relaying = asyncio.create_task(relay.run())

        async def opened() -> None:
            assert store.state.is_open

        await eventually(opened)
        scene = Scene(own_nats_server, subjects, store, bus)
        yield scene
        for seed in tuple(scene.tasks):
            await scene.stop_heartbeats(seed)
        await scene.stop_lifecycles()
        relaying.cancel()
        await asyncio.wait({relaying})
