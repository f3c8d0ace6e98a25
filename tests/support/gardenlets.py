"""A landscape in one process for tests of gardenlets: real NATS, the real apiserver and relay, a store in memory."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import prometheus_client

from gardenbus.agent.connections import AgentConnections
from gardenbus.agent.host import HostPorts
from gardenbus.apiserver.app import start_apiserver
from gardenbus.apiserver.settings import ApiserverSettings
from gardenbus.common.adapters.nats import jetstream
from gardenbus.common.adapters.nats.credentials import NO_CREDENTIALS, Credentials
from gardenbus.common.adapters.nats.jetstream import JetStreamBus
from gardenbus.common.api.conditions import conditions_of
from gardenbus.common.api.configuration.gardenlet import GardenletConfiguration, parse_configurations
from gardenbus.common.api.document import Document, StoredObject, encode, section
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.ports.bus import Message, StreamMessage
from gardenbus.common.ports.connections import Connections
from gardenbus.common.ports.store import SeedBinding
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.common.runtime.health import Health
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.gardenlet.app import gardenlet_of
from gardenbus.gardenlet.host import GardenletHost
from gardenbus.relay.relay import Relay
from tests.support.builders import a_project, a_shoot, merged
from tests.support.eventually import eventually
from tests.support.memory.outbox import MemoryOutbox
from tests.support.memory.store import MemoryStore

BACKUP_SECRET: Document = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "backup", "namespace": "garden"}}


def a_configuration(seed: str = "aws-eu1", **changes: Any) -> Document:
    """A GardenletConfiguration that is quick: steps take 10 ms, a heartbeat is due each second."""
    default: Document = {
        "apiVersion": "gardenlet.config.gardener.cloud/v1alpha1",
        "kind": "GardenletConfiguration",
        "seedConfig": {
            "metadata": {"name": seed},
            "spec": {
                "provider": {"type": "aws", "region": "eu-west-1", "zones": ["eu-west-1a"]},
                "networks": {"nodes": "10.240.0.0/16", "pods": "10.241.0.0/16", "services": "10.242.0.0/16"},
            },
        },
        "resources": {"capacity": {"shoots": "250"}},
        "controllers": {"seed": {"leaseResyncSeconds": 1, "leaseResyncMissThreshold": 4}},
        "backend": {"type": "local", "stepSeconds": 0.01},
    }
    return merged(default, changes)


def configured(document: Document) -> GardenletConfiguration:
    """A configuration as it is read."""
    (configuration,) = parse_configurations(encode(document))
    return configuration


@dataclass
class Garden:
    """The landscape: a store, and gardenlets that are started and killed by the test."""

    nats_url: str
    subjects: Subjects
    store: MemoryStore
    bus: JetStreamBus
    directory: Path
    running: dict[GardenletHost, tuple["asyncio.Task[None]", AsyncExitStack]] = field(
        default_factory=dict[GardenletHost, tuple["asyncio.Task[None]", AsyncExitStack]]
    )

    async def start_alone(self, *configurations: Document, directory: Path | None = None) -> GardenletHost:
        """Start a process whose gardenlets have credentials of their own in their directories."""
        bus = JetStreamBus(self.subjects)
        ports = HostPorts(
            bus,
            self.subjects,
            SystemClock(),
            directory or self.directory,
            AgentConnections(self.nats_url, self.subjects),
        )
        host = GardenletHost([configured(each) for each in configurations], ports, gardenlet_of)
        await host.start()
        self.running[host] = (asyncio.create_task(host.run()), AsyncExitStack())
        return host

    async def start(self, *configurations: Document, directory: Path | None = None) -> GardenletHost:
        """Start a process's worth of gardenlets."""
        connection = AsyncExitStack()
        bus = await connection.enter_async_context(
            jetstream.connect(self.nats_url, "gardenlet", self.subjects.prefix, manages_streams=False)
        )
        ports = HostPorts(bus, self.subjects, SystemClock(), directory or self.directory)
        host = GardenletHost([configured(each) for each in configurations], ports, gardenlet_of)
        await host.start()
        self.running[host] = (asyncio.create_task(host.run()), connection)
        return host

    async def kill(self, host: GardenletHost) -> None:
        """End it without any farewell."""
        task, connection = self.running.pop(host)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await connection.aclose()
        await host.close()

    async def stop(self, host: GardenletHost) -> None:
        """End it in an orderly way."""
        task, _ = self.running[host]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await host.stop()
        await self.kill(host)

    async def get(self, key: ObjectKey) -> Document:
        """An object that must be there."""
        stored = await self.store.get(key)
        assert stored is not None, f"{key} not found"
        return stored.document()

    async def seed(self, name: str = "aws-eu1") -> Document:
        """A Seed that must be there."""
        return await self.get(ObjectKey("seed", "", name))

    async def shoot(self, name: str = "apollo") -> Document:
        """A Shoot that must be there."""
        return await self.get(ObjectKey("shoot", "garden-dev", name))

    async def place(self, seed: str = "aws-eu1", shoot: Document | None = None) -> StoredObject:
        """Create a shoot and bind it, once the seed is ready."""
        await self.until_ready(seed)
        created = await self.store.create(shoot or a_shoot())
        assert isinstance(created, StoredObject)
        binding = SeedBinding(
            created.key.namespace,
            created.key.name,
            created.uid,
            created.generation,
            seed,
            scheduling_generation=await self.scheduling_generation(seed),
        )
        reply = await self.store.bind([binding])
        assert reply.outcomes in (["bound"], ("bound",)), reply.outcomes
        return created

    async def scheduling_generation(self, seed: str) -> int:
        """What a bind depends on."""
        stored = await self.store.get(ObjectKey("seed", "", seed))
        assert stored is not None
        return stored.scheduling_generation

    async def change(self, key: ObjectKey, *, bump_generation: bool = False, **changes: Any) -> None:
        """Change an object as a person would."""

        async def changed() -> None:
            stored = await self.store.get(key)
            assert stored is not None
            try:
                await self.store.update(stored, merged(stored.document(), changes), bump_generation=bump_generation)
            except Exception as error:
                raise AssertionError(str(error)) from error

        await eventually(changed, every=0.02)

    async def delete(self, key: ObjectKey) -> None:
        """Delete an object as a person would."""

        async def deleted() -> None:
            stored = await self.store.get(key)
            assert stored is not None
            try:
                await self.store.delete(stored)
            except Exception as error:
                raise AssertionError(str(error)) from error

        await eventually(deleted, every=0.02)

    async def until_ready(self, seed: str = "aws-eu1") -> Document:
        """Wait until a seed's gardenlet is ready."""

        async def ready() -> Document:
            document = await self.seed(seed)
            assert conditions(document).get("GardenletReady") == "True", document.get("status")
            return document

        return await eventually(ready, every=0.02)

    async def until_state(self, state: str, name: str = "apollo", *, operation: str | None = None) -> Document:
        """Wait until a shoot's last operation is in a state."""

        async def reached() -> Document:
            document = await self.shoot(name)
            last = section(document, "status", "lastOperation")
            assert last.get("state") == state, document.get("status")
            assert operation in (None, last["type"])
            return document

        return await eventually(reached, every=0.02)

    async def until_gone(self, key: ObjectKey) -> None:
        """Wait until an object is no more."""

        async def gone() -> None:
            stored = await self.store.get(key)
            assert stored is None, stored.document()

        await eventually(gone, every=0.02)

    async def lease(self, seed: str = "aws-eu1") -> StreamMessage | None:
        """The last lease message of a seed."""
        return await self.bus.last(self.subjects.stream("LEASES"), self.subjects.lease(seed))

    async def publish(self, subject: str, body: bytes, headers: dict[str, str]) -> None:
        """Publish on the bus."""
        await self.bus.publish(Message(subject, body, headers))

    async def lose_stream(self, name: str) -> None:
        """Delete a stream with all it holds; the relay makes it anew, and announces what the store has."""
        await self.bus.request(f"$JS.API.STREAM.DELETE.{self.subjects.stream(name)}", b"")

    async def rejected(self) -> StreamMessage | None:
        """The last thing that was rejected."""
        stream = self.subjects.stream("REJECTED")
        found = [await self.bus.last(stream, subject) for subject in await self.bus.subjects(stream, ">")]
        return max((each for each in found if each is not None), key=lambda each: each.sequence, default=None)


def conditions(document: Document, field: str = "conditions") -> dict[str, str]:
    """Type and status of every condition."""
    return {str(entry["type"]): str(entry["status"]) for entry in conditions_of(document, field)}


@asynccontextmanager
async def a_garden(
    nats_url: str,
    prefix: str,
    directory: Path,
    credentials: Callable[[Principal], Credentials] = lambda _: NO_CREDENTIALS,
) -> AsyncGenerator[Garden]:
    """A landscape without gardenlets yet, with one project and the Secret of backups; each comes in as who they are."""
    subjects, clock = Subjects(prefix), SystemClock()
    store = MemoryStore(clock, reporter="tester")
    async with AsyncExitStack() as buses:

        async def connected(principal: Principal, *, manages_streams: bool = False) -> JetStreamBus:
            own = credentials(principal)
            opened = jetstream.connect(
                nats_url, principal.name, prefix, credentials=own, manages_streams=manages_streams
            )
            return await buses.enter_async_context(opened)

        relay_bus = await connected(Principal("service", "relay"), manages_streams=True)
        bus = await connected(Principal("operator", "operator"))
        apiserver_bus = await connected(Principal("service", "apiserver"))
        relay = asyncio.create_task(Relay(MemoryOutbox(store), relay_bus, subjects, clock).run())
        context = ServiceContext(
            "apiserver",
            ApiserverSettings(
                prefix=prefix,
                fetch_wait_seconds=0.2,
                authorization="off" if credentials(Principal("service", "apiserver")) is NO_CREDENTIALS else "enforce",
            ),
            health=Health(prometheus_client.CollectorRegistry()),
            clock=clock,
        )
        await start_apiserver(context, Connections(store, apiserver_bus, subjects))
        garden = Garden(nats_url, subjects, store, bus, directory)
        try:
            for document in (a_project(), BACKUP_SECRET):
                await store.create(document)
            yield garden
        finally:
            for host in tuple(garden.running):
                await garden.kill(host)
            await context.close()
            relay.cancel()
            await asyncio.gather(relay, return_exceptions=True)
