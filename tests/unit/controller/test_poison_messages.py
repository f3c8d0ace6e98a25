"""Every consumer of a work queue rejects a poison message alike."""

import hashlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from prometheus_client import REGISTRY, CollectorRegistry
from structlog.testing import capture_logs

from gardenbus.apiserver.app import start_apiserver
from gardenbus.apiserver.settings import ApiserverSettings
from gardenbus.autoscaler.app import start_autoscaler
from gardenbus.autoscaler.settings import AutoscalerSettings
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.scheduling_order import BANDS
from gardenbus.common.api.keys import Header, ObjectKey, Subjects
from gardenbus.common.api.kinds import by_word
from gardenbus.common.api.queues import QUEUES
from gardenbus.common.ports.bus import Message
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.connections import Connections
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.common.runtime.health import Health
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.common.runtime.settings import CommonSettings
from gardenbus.controllermanager.app import LOOPS, start_controllermanager
from gardenbus.controllermanager.settings import ControllerManagerSettings
from gardenbus.lifecycle.app import start_lifecycle
from gardenbus.lifecycle.settings import LifecycleSettings
from gardenbus.managedseedset.app import start_managedseedset
from gardenbus.managedseedset.settings import ManagedSeedSetSettings
from gardenbus.placement.app import start_placement
from gardenbus.placement.settings import PlacementSettings
from gardenbus.relay.ports.outbox import EventEntry
from gardenbus.scheduler.app import start_scheduler
from gardenbus.scheduler.metrics import SchedulerMetrics
from gardenbus.scheduler.settings import SchedulerSettings
from tests.support.eventually import eventually
from tests.support.memory.bus import MemoryBus, MemoryQueue
from tests.support.memory.outbox import MemoryOutbox
from tests.support.memory.store import MemoryStore

SUBJECTS = Subjects()
BODY = b"x" * 100_000
CONSUMES = re.compile(r"\b(start_controller|BatchConsumer)\(")
"""What makes a consumer of a work queue."""
FLEET = "placement.kubernetes-fleet.io/v1"


class Service(NamedTuple):
    """A service, and how it is started on a bus and a store."""

    name: str
    settings: CommonSettings
    start: Callable[..., Awaitable[Any]]


async def start_default_scheduler(context: Any, connections: Connections) -> None:
    metrics = SchedulerMetrics(CollectorRegistry())
    await start_scheduler(context, connections, backoff=lambda _: 60.0, metrics=metrics)


APISERVER = Service("apiserver", ApiserverSettings(fetch_wait_seconds=0.1), start_apiserver)
SCHEDULER = Service("scheduler", SchedulerSettings(), start_default_scheduler)
AUTOSCALER = Service("autoscaler", AutoscalerSettings(), start_autoscaler)
SETS = Service("managedseedset", ManagedSeedSetSettings(), start_managedseedset)
LIFECYCLE = Service("lifecycle", LifecycleSettings(), start_lifecycle)
PLACEMENT = Service("placement", PlacementSettings(), start_placement)
CONTROLLER_MANAGER = Service("controllermanager", ControllerManagerSettings(), start_controllermanager)

SHOOT = ("core.gardener.cloud/v1beta1", "Shoot", ObjectKey("shoot", "garden-dev", "web"))
SET = ("seedmanagement.gardener.cloud/v1alpha1", "ManagedSeedSet", ObjectKey("managedseedset", "garden", "web"))
SCALER = ("autoscaling.gardenbus.io/v1alpha1", "SeedAutoscaler", ObjectKey("seedautoscaler", "garden", "web"))
CLUSTER_PLACEMENT = (FLEET, "ClusterResourcePlacement", ObjectKey("clusterresourceplacement", "", "web"))
PLACED = (FLEET, "ResourcePlacement", ObjectKey("resourceplacement", "garden-dev", "web"))
EVICTION = (FLEET, "ClusterResourcePlacementEviction", ObjectKey("clusterresourceplacementeviction", "", "web"))
OVERRIDE = (FLEET, "ClusterResourceOverride", ObjectKey("clusterresourceoverride", "", "web"))
BINDING = (FLEET, "ClusterResourceBinding", ObjectKey("clusterresourcebinding", "", "web"))


class Consumer(NamedTuple):
    """A durable consumer, a subject of its queue, and the object that this is about, with the Event's reason."""

    service: Service
    stream: str
    name: str
    subject_filter: str
    subject: str
    about: tuple[str, str, ObjectKey] | None = None
    event_reason: str = ""


def controller(
    service: Service, queue: str, about: tuple[str, str, ObjectKey] | None, event_reason: str = ""
) -> Consumer:
    namespace, name = (about[2].namespace, about[2].name) if about else ("", "some-uid")
    subject = SUBJECTS.queue(queue, namespace, name)
    return Consumer(service, "QUEUES", queue, SUBJECTS.queue_of(queue), subject, about, event_reason)


def an_object_of(word: str) -> tuple[str, str, ObjectKey]:
    kind = by_word(word, stored=(word,))
    return kind.api_version, kind.kind, ObjectKey(word, "garden-dev" if kind.namespaced else "", "web")


CONSUMERS = [
    Consumer(APISERVER, "REQUESTS", "apiserver", ">", SUBJECTS.apply),
    Consumer(
        APISERVER, "REPORTS", "apiserver", "garden.report.>", SUBJECTS.report("a", SHOOT[2]), SHOOT, "HandlerFailed"
    ),
    controller(APISERVER, "garbage", None),
    *(
        Consumer(
            SCHEDULER,
            "QUEUES",
            f"scheduling{band}-default-scheduler",
            SUBJECTS.scheduling_band("default-scheduler", band),
            SUBJECTS.scheduling("default-scheduler", SHOOT[2], band),
            SHOOT,
            "SchedulingRejected",
        )
        for band in BANDS
    ),
    Consumer(
        SCHEDULER,
        "QUEUES",
        "waking-default-scheduler",
        SUBJECTS.queue("waking", "", "default-scheduler"),
        SUBJECTS.queue("waking", "", "default-scheduler"),
    ),
    controller(AUTOSCALER, "autoscaler", SCALER, "ReconcileRejected"),
    controller(SETS, "managedseedset", SET, "ReconcileError"),
    controller(LIFECYCLE, "migration", SHOOT, "MigrationRejected"),
    controller(PLACEMENT, "placement", CLUSTER_PLACEMENT, "ReconcileRejected"),
    controller(PLACEMENT, "placementscheduling", PLACED, "ReconcileRejected"),
    controller(PLACEMENT, "placementstatus", CLUSTER_PLACEMENT, "ReconcileRejected"),
    controller(PLACEMENT, "placementrollout", CLUSTER_PLACEMENT, "ReconcileRejected"),
    controller(PLACEMENT, "placementeviction", EVICTION, "ReconcileRejected"),
    controller(PLACEMENT, "placementwork", BINDING, "ReconcileRejected"),
    controller(PLACEMENT, "placementoverride", OVERRIDE, "ReconcileRejected"),
    *(controller(CONTROLLER_MANAGER, loop.name, an_object_of(loop.kind), "ReconcileError") for loop in LOOPS),
]


class BusWithoutEnqueuers(MemoryBus):
    """Informers enqueue what they list, and that would take the place of the poison message."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.consumers: set[tuple[str, str]] = set()

    async def publish_many(self, messages: Sequence[Message]) -> None:
        del messages

    async def work_queue(self, stream: str, consumer: str, subject_filter: str, *, fetch_bytes: int = 0) -> MemoryQueue:
        self.consumers.add((stream, consumer))
        return await super().work_queue(stream, consumer, subject_filter, fetch_bytes=fetch_bytes)


class Landscape:
    """A bus and a store in memory, on which services are started."""

    def __init__(self) -> None:
        self.clock = SystemClock()
        self.bus = BusWithoutEnqueuers(self.clock)
        self.store = MemoryStore(self.clock)
        self.contexts: list[ServiceContext[Any]] = []

    async def start(self, service: Service) -> None:
        context: ServiceContext[Any] = ServiceContext(
            service.name, service.settings, health=Health(CollectorRegistry()), clock=self.clock
        )
        self.contexts.append(context)
        await service.start(context, Connections(self.store, self.bus, SUBJECTS))

    async def poison(self, consumer: Consumer) -> None:
        """Publish a message and have it delivered as often as is allowed, each time without an end."""
        queue = await self.bus.work_queue(consumer.stream, consumer.name, consumer.subject_filter)
        await self.bus.publish(Message(consumer.subject, BODY))
        for _ in range(5):
            (message,) = await queue.fetch(1, 0)
            await message.release()

    async def events(self, key: ObjectKey) -> list[EventEntry]:
        outbox = MemoryOutbox(self.store)
        await outbox.lead(60)
        entries = (await outbox.head(1000)).entries
        return [entry for entry in entries if isinstance(entry, EventEntry) and entry.event.about == key]

    async def close(self) -> None:
        for context in self.contexts:
            await context.close()


@pytest.fixture
async def landscape() -> AsyncIterator[Landscape]:
    landscape = Landscape()
    yield landscape
    await landscape.close()


def document_of(api_version: str, kind: str, key: ObjectKey) -> Document:
    metadata = {"name": key.name, **({"namespace": key.namespace} if key.namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": {}}


def rejected_so_far() -> float:
    return REGISTRY.get_sample_value("gardenbus_rejected_messages_total", {"reason": "HandlerFailed"}) or 0.0


@pytest.mark.parametrize("consumer", CONSUMERS, ids=lambda consumer: consumer.subject)
async def test_a_poison_message_is_kept_counted_logged_and_warned_about(
    landscape: Landscape, consumer: Consumer
) -> None:
    await landscape.poison(consumer)
    if consumer.about is not None:
        await landscape.store.create(document_of(*consumer.about))
    counted = rejected_so_far()

    with capture_logs() as logs:
        await landscape.start(consumer.service)

        async def kept() -> None:
            assert not await landscape.bus.subjects(consumer.stream, consumer.subject)

        await eventually(kept, every=0.01)

    message = await landscape.bus.last("REJECTED", SUBJECTS.rejected(consumer.subject))
    assert message is not None
    assert message.body == BODY[: 64 * 1024]
    assert re.fullmatch("[0-9a-f]{16}", message.headers[Header.RECONCILE_ID])
    assert message.headers == {
        Header.RECONCILE_ID: message.headers[Header.RECONCILE_ID],
        Header.REASON: "HandlerFailed: its handler failed 5 times and did not end it",
        Header.SUBJECT: consumer.subject,
        Header.SHA256: hashlib.sha256(BODY).hexdigest(),
    }
    assert rejected_so_far() == counted + 1
    assert [line["subject"] for line in logs if line["event"] == "message.rejected"] == [consumer.subject]
    if consumer.about is not None:
        (event,) = await landscape.events(consumer.about[2])
        assert (event.event.type, event.event.reason) == ("Warning", consumer.event_reason)
        assert "its handler failed 5 times" in event.event.message


async def test_every_consumer_of_a_work_queue_is_in_the_table(landscape: Landscape) -> None:
    sources = Path(__file__).parents[3].glob("services/*/src/**/*.py")
    consuming = {path.parts[path.parts.index("services") + 1] for path in sources if CONSUMES.search(path.read_text())}
    services = {consumer.service.name: consumer.service for consumer in CONSUMERS}
    assert services.keys() == consuming
    for service in services.values():
        await landscape.start(service)

    assert landscape.bus.consumers == {(consumer.stream, consumer.name) for consumer in CONSUMERS}


def test_the_consumers_of_queues_are_those_of_the_table() -> None:
    expected = {
        queue.consumer_of("default-scheduler", band) if queue.is_per_scheduler else queue.name
        for queue in QUEUES.values()
        for band in (BANDS if queue.name == "scheduling" else ("",))
    }
    assert {consumer.name for consumer in CONSUMERS if consumer.stream == "QUEUES"} == expected
    assert all(
        consumer.service.name == QUEUES[consumer.name].consumer for consumer in CONSUMERS if consumer.name in QUEUES
    )
