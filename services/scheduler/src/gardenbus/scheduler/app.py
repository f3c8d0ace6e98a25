"""Puts a scheduler together: informer, queues, reconcilers."""

import random
from collections.abc import Sequence
from typing import Any

import structlog

from gardenbus.common.machinery.backoff import Backoff
from gardenbus.common.machinery.informer import Informer
from gardenbus.common.ports.bus import Bus
from gardenbus.common.ports.store import Store
from gardenbus.common.resources.keys import Subjects
from gardenbus.common.runtime.connections import connect_all
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.scheduler.reconcilers.counters import Counters
from gardenbus.scheduler.reconcilers.explaining import Explainer
from gardenbus.scheduler.reconcilers.explaining_seeds import SeedExplainer
from gardenbus.scheduler.reconcilers.shoots import ShootReconciler
from gardenbus.scheduler.reconcilers.timers import Timers, Waits
from gardenbus.scheduler.reconcilers.upkeep import Upkeep
from gardenbus.scheduler.reconcilers.waking import WakingReconciler
from gardenbus.scheduler.reconcilers.worker import Rejection, Worker
from gardenbus.scheduler.settings import SchedulerSettings
from gardenbus.scheduling.current import KINDS, CurrentLandscape
from gardenbus.scheduling.installed_filters import load_filters
from gardenbus.scheduling.user_filters import SeedFilter

_log = structlog.stdlib.get_logger()

REPORTER = "shoot-scheduler"
WAKING_BATCH = 100


async def start_scheduler(  # noqa: PLR0913  the ports that a scheduler runs on
    context: ServiceContext[SchedulerSettings],
    *,
    store: Store,
    bus: Bus,
    subjects: Subjects,
    backoff: Waits,
    filters: Sequence[SeedFilter] = (),
    counters: Counters | None = None,
) -> CurrentLandscape:
    """Start all loops on the context's tasks; returns once the landscape is known and work is taken."""
    settings, clock, stopping = context.settings, context.clock, context.stopping
    scheduler_name = settings.configuration.scheduler_name
    if settings.configuration.ignored:
        _log.info("configuration.ignored", fields=settings.configuration.ignored)
    counters = counters or Counters()
    informer = Informer(store, bus, subjects, KINDS)
    current = CurrentLandscape(informer, settings.configuration.strategy, filters)
    informer.subscribe(current.changed)
    await informer.start()
    context.stack.push_async_callback(informer.stop)
    upkeep = Upkeep(store=store, current=current, clock=clock, stopping=stopping)
    await context.wait_for("store", upkeep.ask_usage)
    timers = Timers(bus, subjects, backoff)
    stream = subjects.stream("QUEUES")
    pending_filter = subjects.queue_of(f"scheduling.{scheduler_name}")
    gains_filter = subjects.queue("waking", "", scheduler_name)
    pending = await context.wait_for(
        "nats", lambda: bus.work_queue(stream, f"scheduling-{scheduler_name}", pending_filter)
    )
    gains = await context.wait_for("nats", lambda: bus.work_queue(stream, f"waking-{scheduler_name}", gains_filter))
    counters.depth.labels("shoots").set_function(lambda: pending.depth)
    counters.depth.labels("waking").set_function(lambda: gains.depth)
    shoots = ShootReconciler(
        store=store,
        queue=pending,
        current=current,
        timers=timers,
        clock=clock,
        counters=counters,
        scheduler_name=scheduler_name,
    )
    waking = WakingReconciler(
        store=store,
        queue=gains,
        current=current,
        timers=timers,
        clock=clock,
        counters=counters,
        scheduler_name=scheduler_name,
    )
    rejection = Rejection(bus=bus, store=store, subjects=subjects, queue=pending)
    workers = {
        "shoots": Worker(
            queue=pending,
            settle=shoots.settle,
            reject=rejection,
            clock=clock,
            stopping=stopping,
            batch_size=settings.batch_size,
        ),
        "waking": Worker(
            queue=gains,
            settle=waking.settle,
            reject=lambda work: gains.ack_many([work]),
            clock=clock,
            stopping=stopping,
            batch_size=WAKING_BATCH,
        ),
    }
    for name, worker in workers.items():
        task = context.spawn(name, worker.run())
        context.on_stop(name, lambda task=task: _ended(task))
    context.spawn("upkeep", upkeep.run(settings.usage_poll_seconds))
    answers = {
        subjects.explain_of(scheduler_name): Explainer(
            store=store, bus=bus, subjects=subjects, current=current, scheduler_name=scheduler_name
        ),
        subjects.explain_seed(scheduler_name, "*"): SeedExplainer(
            store=store, current=current, scheduler_name=scheduler_name
        ),
    }
    about = {"schedulerName": scheduler_name, "answers": "JSON", "described-in": "docs/reference/asyncapi.yaml"}
    await context.wait_for("nats", lambda: bus.serve(f"scheduler-{scheduler_name}", "1.0.0", answers, metadata=about))
    context.health.add_readiness("informer", lambda: None if informer.synced else "the landscape is not known yet")
    return current


async def build(context: ServiceContext[SchedulerSettings]) -> None:
    """Connect and start; raises SettingsInvalid when a user's filter cannot be loaded."""
    filters = load_filters()
    waits = Backoff(context.settings.backoff_base_seconds, context.settings.backoff_cap_seconds)
    connections = await connect_all(context, reporter=REPORTER)
    await start_scheduler(
        context,
        store=connections.store,
        bus=connections.bus,
        subjects=connections.subjects,
        backoff=lambda failures: waits.delay_seconds(failures, random.random()),
        filters=filters,
    )


async def _ended(task: Any) -> None:
    await task
