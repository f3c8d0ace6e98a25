"""Product's services as actors: relay, scheduler, apiserver handlers and informer, on simulated connections."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from prometheus_client import CollectorRegistry

from gardenbus.apiserver.access.audit_log import AuditLog
from gardenbus.apiserver.access.authorizer import Authorizer
from gardenbus.apiserver.domain.request_subjects import reported_object, reports_filter
from gardenbus.apiserver.messages import durable_requests
from gardenbus.apiserver.messages.durable_requests import DurableRequestHandler
from gardenbus.apiserver.messages.reports import ReportHandler
from gardenbus.apiserver.registry.read_cache import ManifestCache
from gardenbus.apiserver.registry.writer import Writer
from gardenbus.common.api.keys import Subjects
from gardenbus.common.api.queues import QUEUES
from gardenbus.common.controller.batch_consumer import BatchConsumer, BatchSettings
from gardenbus.common.controller.dead_letter import DeadLetter, queue_object
from gardenbus.common.controller.informer import Callback, Informer
from gardenbus.common.controller.scheduling_hints import HintReceiver, HintSender
from gardenbus.common.controller.timers import Timers
from gardenbus.common.errors import Transient
from gardenbus.common.ports.bus import Bus, QueueMessage
from gardenbus.common.ports.connections import Connections
from gardenbus.common.ports.store import Store
from gardenbus.relay.relay import Relay, RelaySettings
from gardenbus.scheduler.controllers.shoots import ShootSchedulingReconciler
from gardenbus.scheduler.controllers.unblocking import UnblockingReconciler
from gardenbus.scheduler.housekeeping import Housekeeping
from gardenbus.scheduler.metrics import SchedulerMetrics
from gardenbus.scheduling.cache import KINDS, SchedulingCache
from tests.simulation.actor import Actor
from tests.simulation.connections import SimulatedBus, SimulatedStore, SimulationClock

SCHEDULER = "default-scheduler"
durable_requests.EARLIER_POLL_SECONDS = 1.0  # polls are choice points like any other: fewer of them, more of the rest
RELAY = RelaySettings(page=6, lead_ttl_seconds=5.0, idle_seconds=2.0)
BATCHES = BatchSettings(batch=2, wait_seconds=60.0)
"""So few that more wait often: then the next batch is fetched while one is handled."""
USAGE_POLL_SECONDS = 10.0
NEVER_SECONDS, RETRY_SECONDS = 100_000.0, 60.0
"""Backoff of an unschedulable shoot: what ends its wait must be the cluster event, not the timer. Only where Redis may
go back in time may it be the timer: a scheduler does not know the usage anew before it reads it again."""


@cache
def _metrics() -> SchedulerMetrics:
    return SchedulerMetrics(CollectorRegistry())


@dataclass
class Parts:
    """What every service is made of."""

    actor: Actor
    store: SimulatedStore
    bus: SimulatedBus
    clock: SimulationClock
    subjects: Subjects

    @property
    def connections(self) -> Connections:
        """As services have them."""
        return Connections(cast("Store", self.store), cast("Bus", self.bus), self.subjects)


async def persist(call: Callable[[], Any], clock: SimulationClock) -> Any:
    """Call until the servers are there, as a service does when it starts."""
    while True:
        try:
            return await call()
        except Transient:
            await clock.sleep(0.5)


async def run_relay(parts: Parts, outbox: Any) -> None:
    """One relay."""
    await Relay(outbox, parts.connections.bus, parts.subjects, parts.clock, RELAY).run()


async def run_scheduler(
    parts: Parts, observed: Callback, keep: Callable[[Informer], None], retry_seconds: float
) -> None:
    """One scheduler, wired as its app does."""
    connections, clock, subjects = parts.connections, parts.clock, parts.subjects
    informer = Informer(connections.store, connections.bus, subjects, KINDS)
    scheduling = SchedulingCache(informer, "SameRegion")
    informer.subscribe(scheduling.changed)
    informer.subscribe(observed)
    await informer.start()
    keep(informer)
    housekeeping = Housekeeping(store=connections.store, cache=scheduling, clock=clock, stopping=asyncio.Event())
    await persist(housekeeping.refresh_usage, clock)

    async def opened(name: str, subject: str) -> Any:
        return await persist(lambda: connections.bus.work_queue("QUEUES", f"{name}-{SCHEDULER}", subject), clock)

    shared: dict[str, Any] = {
        "store": connections.store,
        "cache": scheduling,
        "timers": Timers(connections.bus, subjects),
        "clock": clock,
        "metrics": _metrics(),
        "scheduler_name": SCHEDULER,
    }
    shoots = await opened("scheduling", subjects.queue_of(f"scheduling.{SCHEDULER}"))
    activation = await opened("waking", subjects.queue("waking", "", SCHEDULER))
    reconciler = ShootSchedulingReconciler(queue=shoots, backoff=lambda _failures: retry_seconds, **shared)
    unblocking = UnblockingReconciler(queue=activation, **shared)
    letter = DeadLetter(
        connections,
        reporter="scheduler",
        object_of=queue_object(subjects, f"scheduling.{SCHEDULER}", QUEUES["scheduling"].kind_in),
    )
    plain = DeadLetter(connections, reporter="scheduler")
    common: dict[str, Any] = {"clock": clock, "settings": BATCHES}
    consumers = (
        BatchConsumer("shoots", shoots, reconciler.handle_batch, reject=letter.reject_poison, **common),
        BatchConsumer("waking", activation, unblocking.handle_batch, reject=plain.reject_poison, **common),
    )
    hints = HintReceiver(reconciler.bind_early, subjects, clock, SCHEDULER)
    await persist(lambda: hints.subscribe(connections.bus), clock)
    loops = (*(consumer.run() for consumer in consumers), hints.run(), housekeeping.run(USAGE_POLL_SECONDS))
    await _together(*loops)


class WatchedRequests(DurableRequestHandler):
    """Durable requests that report whenever they wait for earlier ones no longer."""

    gave_up: Callable[[int], None]

    async def _wait_for_earlier(self, queued: QueueMessage, deadline: float) -> bool:
        is_first = await super()._wait_for_earlier(queued, deadline)
        if not is_first:
            self.gave_up(queued.message.sequence)
        return is_first


async def run_apiserver(parts: Parts, gave_up: Callable[[int], None]) -> None:
    """The durable half of an apiserver: requests and reports, wired as its app does."""
    connections, clock, subjects = parts.connections, parts.clock, parts.subjects
    store, bus = connections.store, connections.bus
    manifests, writer = ManifestCache(store), Writer(store, clock)
    writer.on_created = HintSender(bus, subjects).created
    letter = DeadLetter(connections, reporter="apiserver", object_of=reported_object(subjects))

    async def opened(stream: str, subject: str) -> Any:
        return await persist(lambda: bus.work_queue(stream, "apiserver", subject), clock)

    requests = WatchedRequests(
        bus=bus,
        clock=clock,
        store=store,
        subjects=subjects,
        queue=await opened("REQUESTS", ">"),
        writer=writer,
        manifests=manifests,
        dead_letter=letter,
        authorizer=Authorizer(store, AuditLog(clock), is_enforced=False),
        consumer="apiserver",
        concurrency=8,
    )
    requests.gave_up = gave_up
    reports = ReportHandler(
        bus=bus,
        store=store,
        subjects=subjects,
        queue=await opened("REPORTS", reports_filter(subjects)),
        writer=writer,
        manifests=manifests,
        dead_letter=letter,
        concurrency=8,
    )
    for refresh in (requests.reader.refresh, reports.refresh):
        await persist(refresh, clock)
        bus.on_reconnect(refresh)
    common: dict[str, Any] = {"reject": letter.reject_poison, "clock": clock, "settings": BATCHES}
    consumers = (
        BatchConsumer("requests", requests.queue, requests.handle, **common),
        BatchConsumer("reports", reports.queue, reports.handle, **common),
    )
    await _together(*(consumer.run() for consumer in consumers))


async def run_watcher(parts: Parts, observed: Callback, keep: Callable[[Informer], None]) -> None:
    """Somebody who only watches shoots and seeds."""
    informer = Informer(parts.connections.store, parts.connections.bus, parts.subjects, ("shoot", "seed"))
    informer.subscribe(observed)
    await informer.start()
    keep(informer)
    await parts.actor.loop.create_future()


async def _together(*coroutines: Any) -> None:
    """Run until the first of them fails, which is this one's failure too."""
    await asyncio.gather(*coroutines)
