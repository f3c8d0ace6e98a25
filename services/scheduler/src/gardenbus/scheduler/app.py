"""Wires a scheduler: informer, queues, reconcilers, explain handlers."""

import random
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

import structlog

from gardenbus.common.controller.backoff import Backoff
from gardenbus.common.controller.batch_consumer import BatchConsumer, BatchSettings
from gardenbus.common.controller.dead_letter import DeadLetter, queue_object
from gardenbus.common.controller.informer import Informer, log_unreadable
from gardenbus.common.controller.isolation import Handle
from gardenbus.common.controller.scheduling_hints import HintReceiver
from gardenbus.common.controller.timers import Timers
from gardenbus.common.ports.bus import WorkQueue
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.connections import Connections
from gardenbus.common.ports.store import Store
from gardenbus.common.runtime.connections import connect_all
from gardenbus.common.runtime.controllers import start_informers
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.scheduler.controllers.shoots import BackoffSeconds, ShootSchedulingReconciler
from gardenbus.scheduler.controllers.unblocking import UnblockingReconciler
from gardenbus.scheduler.handlers.explain_seeds import SeedExplainHandler
from gardenbus.scheduler.handlers.explain_shoots import ShootExplainHandler
from gardenbus.scheduler.housekeeping import Housekeeping
from gardenbus.scheduler.metrics import SchedulerMetrics
from gardenbus.scheduler.settings import SchedulerSettings
from gardenbus.scheduling.cache import KINDS, SchedulingCache
from gardenbus.scheduling.installed_filters import load_filters
from gardenbus.scheduling.user_filters import SeedFilter

_log = structlog.stdlib.get_logger()

REPORTER = "shoot-scheduler"
UNBLOCKING_BATCH = 100

ISOLATE_FROM = 4
"""Delivery from which on a message is handled alone: a replica that is killed now and then must not slow down all."""


class _Shared(TypedDict):
    """The arguments that both reconcilers share."""

    store: Store
    cache: SchedulingCache
    timers: Timers
    clock: Clock
    metrics: SchedulerMetrics
    scheduler_name: str


class _Queues(NamedTuple):
    """The queues of both reconcilers."""

    shoots: WorkQueue
    unblocking: WorkQueue


async def start_scheduler(
    context: ServiceContext[SchedulerSettings],
    connections: Connections,
    *,
    backoff: BackoffSeconds,
    filters: Sequence[SeedFilter] = (),
    metrics: SchedulerMetrics | None = None,
) -> SchedulingCache:
    """Start all loops on the context's tasks; returns once the cache is filled and queues are consumed."""
    store, subjects = connections.store, connections.subjects
    configuration = context.settings.configuration
    if configuration.ignored:
        _log.info("configuration.ignored", fields=configuration.ignored)
    metrics = metrics or SchedulerMetrics()
    informer = Informer(store, connections.bus, subjects, KINDS)
    cache = SchedulingCache(informer, configuration.strategy, filters, log_unreadable)
    informer.subscribe(cache.changed)
    await start_informers(context, informer, unready="the landscape is not cached yet")
    housekeeping = Housekeeping(store=store, cache=cache, clock=context.clock, stopping=context.stopping)
    await context.wait_for("store", housekeeping.refresh_usage)
    queues = await _opened(context, connections, metrics)
    parts = _Shared(
        store=store,
        cache=cache,
        timers=Timers(connections.bus, subjects),
        clock=context.clock,
        metrics=metrics,
        scheduler_name=configuration.scheduler_name,
    )
    shoots = ShootSchedulingReconciler(queue=queues.shoots, backoff=backoff, **parts)
    unblocking = UnblockingReconciler(queue=queues.unblocking, **parts)
    for name, consumer in _batch_consumers(context, connections, queues, shoots, unblocking).items():
        task = context.spawn(name, consumer.run())
        context.on_stop(name, lambda task=task: _ended(task))
    hints = HintReceiver(shoots.bind_early, subjects, context.clock, configuration.scheduler_name)
    await context.wait_for("nats", lambda: hints.subscribe(connections.bus))
    context.spawn("hints", hints.run())
    context.spawn("housekeeping", housekeeping.run(context.settings.usage_poll_seconds))
    await _serve(context, connections, cache)
    return cache


async def _opened(
    context: ServiceContext[SchedulerSettings], connections: Connections, metrics: SchedulerMetrics
) -> _Queues:
    scheduler_name = context.settings.configuration.scheduler_name
    stream = connections.subjects.stream("QUEUES")

    async def opened(name: str, subject: str) -> WorkQueue:
        return await context.wait_for(
            "nats", lambda: connections.bus.work_queue(stream, f"{name}-{scheduler_name}", subject)
        )

    queues = _Queues(
        shoots=await opened("scheduling", connections.subjects.queue_of(f"scheduling.{scheduler_name}")),
        unblocking=await opened("waking", connections.subjects.queue("waking", "", scheduler_name)),
    )
    metrics.depth.labels("shoots").set_function(lambda: queues.shoots.depth)
    metrics.depth.labels("waking").set_function(lambda: queues.unblocking.depth)
    return queues


def _batch_consumers(
    context: ServiceContext[SchedulerSettings],
    connections: Connections,
    queues: _Queues,
    shoots: ShootSchedulingReconciler,
    unblocking: UnblockingReconciler,
) -> Mapping[str, BatchConsumer]:
    """The consumers of both queues, by name."""
    settings = context.settings
    dead_letter = DeadLetter(
        connections,
        reporter=REPORTER,
        object_of=queue_object(connections.subjects, f"scheduling.{settings.configuration.scheduler_name}", "shoot"),
        event_reason="SchedulingRejected",
        consequence="The shoot is not scheduled until it changes",
    )

    def consumer(name: str, queue: WorkQueue, handle: Handle, dead_letter: DeadLetter, batch: int) -> BatchConsumer:
        limits = BatchSettings(batch=batch, isolate_from=ISOLATE_FROM)
        reject, clock, stopping = dead_letter.reject_poison, context.clock, context.stopping
        return BatchConsumer(name, queue, handle, reject=reject, clock=clock, settings=limits, stopping=stopping)

    silent = DeadLetter(connections, reporter=REPORTER)
    return {
        "shoots": consumer("shoots", queues.shoots, shoots.handle_batch, dead_letter, settings.batch_size),
        "waking": consumer("waking", queues.unblocking, unblocking.handle_batch, silent, UNBLOCKING_BATCH),
    }


async def _serve(context: ServiceContext[SchedulerSettings], connections: Connections, cache: SchedulingCache) -> None:
    """Serve the requests to explain shoots and seeds of this scheduler name."""
    scheduler_name, subjects = context.settings.configuration.scheduler_name, connections.subjects
    handlers = {
        subjects.explain_of(scheduler_name): ShootExplainHandler(
            store=connections.store, bus=connections.bus, subjects=subjects, cache=cache, scheduler_name=scheduler_name
        ),
        subjects.explain_seed(scheduler_name, "*"): SeedExplainHandler(
            store=connections.store, cache=cache, scheduler_name=scheduler_name
        ),
    }
    name = f"scheduler-{scheduler_name}"
    about = {"schedulerName": scheduler_name, "answers": "JSON", "described-in": "docs/reference/asyncapi.yaml"}
    await context.wait_for("nats", lambda: connections.bus.serve(name, "1.0.0", handlers, metadata=about))


async def build(context: ServiceContext[SchedulerSettings]) -> None:
    """Connect and start; raises SettingsInvalid when a user's filter cannot be loaded."""
    filters = load_filters()
    waits = Backoff(context.settings.backoff_base_seconds, context.settings.backoff_cap_seconds)
    await start_scheduler(
        context,
        await connect_all(context, reporter=REPORTER),
        backoff=lambda failures: waits.delay_seconds(failures, random.random()),
        filters=filters,
    )


async def _ended(task: Any) -> None:
    await task
