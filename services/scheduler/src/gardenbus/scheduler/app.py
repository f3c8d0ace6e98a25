"""Puts a scheduler together: informer, queues, reconcilers."""

import random
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

import structlog

from gardenbus.common.machinery.backoff import Backoff
from gardenbus.common.machinery.informer import Informer
from gardenbus.common.ports.bus import Bus, WorkQueue
from gardenbus.common.ports.clock import Clock
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


class _Ports(NamedTuple):
    """What a scheduler stands on."""

    store: Store
    bus: Bus
    subjects: Subjects


class _Shared(TypedDict):
    """What both reconcilers are put together from."""

    store: Store
    current: CurrentLandscape
    timers: Timers
    clock: Clock
    counters: Counters
    scheduler_name: str


class _Queues(NamedTuple):
    """Where its work comes from."""

    shoots: WorkQueue
    waking: WorkQueue


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
    ports = _Ports(store, bus, subjects)
    configuration = context.settings.configuration
    if configuration.ignored:
        _log.info("configuration.ignored", fields=configuration.ignored)
    counters = counters or Counters()
    informer = Informer(store, bus, subjects, KINDS)
    current = CurrentLandscape(informer, configuration.strategy, filters)
    informer.subscribe(current.changed)
    await informer.start()
    context.stack.push_async_callback(informer.stop)
    upkeep = Upkeep(store=store, current=current, clock=context.clock, stopping=context.stopping)
    await context.wait_for("store", upkeep.ask_usage)
    queues = await _opened(context, ports)
    counters.depth.labels("shoots").set_function(lambda: queues.shoots.depth)
    counters.depth.labels("waking").set_function(lambda: queues.waking.depth)
    for name, worker in _workers(context, ports, queues, current, Timers(bus, subjects, backoff), counters).items():
        task = context.spawn(name, worker.run())
        context.on_stop(name, lambda task=task: _ended(task))
    context.spawn("upkeep", upkeep.run(context.settings.usage_poll_seconds))
    await _answer(context, ports, current)
    context.health.add_readiness("informer", lambda: None if informer.synced else "the landscape is not known yet")
    return current


async def _opened(context: ServiceContext[SchedulerSettings], ports: _Ports) -> _Queues:
    scheduler_name = context.settings.configuration.scheduler_name
    stream = ports.subjects.stream("QUEUES")

    async def opened(name: str, subject: str) -> WorkQueue:
        return await context.wait_for("nats", lambda: ports.bus.work_queue(stream, f"{name}-{scheduler_name}", subject))

    return _Queues(
        shoots=await opened("scheduling", ports.subjects.queue_of(f"scheduling.{scheduler_name}")),
        waking=await opened("waking", ports.subjects.queue("waking", "", scheduler_name)),
    )


def _workers(
    context: ServiceContext[SchedulerSettings],
    ports: _Ports,
    queues: _Queues,
    current: CurrentLandscape,
    timers: Timers,
    counters: Counters,
) -> Mapping[str, Worker]:
    """Those who take work from the queues, by what it is about."""
    settings, store = context.settings, ports.store
    parts = _Shared(
        store=store,
        current=current,
        timers=timers,
        clock=context.clock,
        counters=counters,
        scheduler_name=settings.configuration.scheduler_name,
    )
    shoots = ShootReconciler(queue=queues.shoots, **parts)
    waking = WakingReconciler(queue=queues.waking, **parts)
    return {
        "shoots": Worker(
            queue=queues.shoots,
            settle=shoots.settle,
            reject=Rejection(bus=ports.bus, store=store, subjects=ports.subjects, queue=queues.shoots),
            clock=context.clock,
            stopping=context.stopping,
            batch_size=settings.batch_size,
        ),
        "waking": Worker(
            queue=queues.waking,
            settle=waking.settle,
            reject=lambda work: queues.waking.ack_many([work]),
            clock=context.clock,
            stopping=context.stopping,
            batch_size=WAKING_BATCH,
        ),
    }


async def _answer(context: ServiceContext[SchedulerSettings], ports: _Ports, current: CurrentLandscape) -> None:
    """Serve what is asked of the schedulers of this name."""
    scheduler_name, subjects = context.settings.configuration.scheduler_name, ports.subjects
    answers = {
        subjects.explain_of(scheduler_name): Explainer(
            store=ports.store, bus=ports.bus, subjects=subjects, current=current, scheduler_name=scheduler_name
        ),
        subjects.explain_seed(scheduler_name, "*"): SeedExplainer(
            store=ports.store, current=current, scheduler_name=scheduler_name
        ),
    }
    name = f"scheduler-{scheduler_name}"
    about = {"schedulerName": scheduler_name, "answers": "JSON", "described-in": "docs/reference/asyncapi.yaml"}
    await context.wait_for("nats", lambda: ports.bus.serve(name, "1.0.0", answers, metadata=about))


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
