"""Wires a scheduler: informer, queues, reconcilers, explain handlers."""

import random
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

import structlog

from gardenbus.common.api.garden.scheduling_order import HIGH, LOW, NORMAL
from gardenbus.common.api.garden.scheduling_profiles import (
    FILLED_BY_NAME,
    PROFILE_PLUGINS,
    PROFILE_WARNING,
    SchedulingProfile,
    is_filled_by_name,
    limits_of,
)
from gardenbus.common.api.keys import ObjectKey, queued_shoot
from gardenbus.common.api.queues import QUEUES
from gardenbus.common.controller.backoff import Backoff
from gardenbus.common.controller.batch_consumer import BatchConsumer, BatchSettings
from gardenbus.common.controller.dead_letter import DeadLetter
from gardenbus.common.controller.informer import Informer, log_unreadable
from gardenbus.common.controller.isolation import Handle
from gardenbus.common.controller.process_counts import CountReporter
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
from gardenbus.scheduler.housekeeping import Housekeeping
from gardenbus.scheduler.metrics import SchedulerMetrics
from gardenbus.scheduler.requests.explain_drains import DrainExplainHandler
from gardenbus.scheduler.requests.explain_seeds import SeedExplainHandler
from gardenbus.scheduler.requests.explain_shoots import ShootExplainHandler
from gardenbus.scheduler.settings import SchedulerSettings
from gardenbus.scheduler.watch.banded_queue import BandedQueue
from gardenbus.scheduler.watch.installed_plugins import SeedPlugin, load_plugins
from gardenbus.scheduler.watch.plugins import Plugins
from gardenbus.scheduling.cache import KINDS, SchedulingCache
from gardenbus.scheduling.installed_filters import load_filters
from gardenbus.scheduling.user_filters import SeedFilter

_log = structlog.stdlib.get_logger()

REPORTER = "shoot-scheduler"
SCHEDULING, UNBLOCKING = QUEUES["scheduling"], QUEUES["waking"]
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
    installed: Mapping[str, SeedPlugin] = {},
    metrics: SchedulerMetrics | None = None,
) -> SchedulingCache:
    """Start all loops on the context's tasks; returns once the cache is filled and queues are consumed."""
    store, subjects = connections.store, connections.subjects
    configuration = context.settings.configuration
    if configuration.ignored:
        _log.info("configuration.ignored", fields=configuration.ignored)
    metrics = metrics or SchedulerMetrics()
    informer = Informer(store, connections.bus, subjects, KINDS)
    profiles = configuration.served
    _log_limits(profiles)
    cache = SchedulingCache(informer, configuration.strategy, filters, log_unreadable, profiles)
    informer.subscribe(cache.changed)
    await start_informers(context, informer, unready="the landscape is not cached yet")
    housekeeping = Housekeeping(store=store, cache=cache, clock=context.clock, stopping=context.stopping)
    await context.wait_for("store", housekeeping.refresh_usage)
    cache.expire_annotations(context.clock.now())
    plugins = _plugins(context, connections, cache, metrics, installed)
    queues = {each.scheduler_name: await _opened(context, connections, each.scheduler_name) for each in profiles}
    _measure_depth(metrics, queues)
    for name, opened in queues.items():
        parts = _Shared(
            store=store,
            cache=cache,
            timers=Timers(connections.bus, subjects),
            clock=context.clock,
            metrics=metrics,
            scheduler_name=name,
        )
        takes_turns = bool(configuration.profiles)
        shoots = ShootSchedulingReconciler(
            queue=opened.shoots, backoff=backoff, takes_turns=takes_turns, plugins=plugins.get(name), **parts
        )
        context.stack.push_async_callback(shoots.close)
        unblocking = UnblockingReconciler(queue=opened.unblocking, **parts)
        await _start_profile(context, connections, opened, shoots, unblocking)
    counts = CountReporter(connections.bus, subjects, f"scheduler-{context.instance}", metrics.placed_shoots)
    context.spawn("counts", counts.run(context.clock))
    context.spawn("housekeeping", housekeeping.run(context.settings.usage_poll_seconds))
    for each in profiles:
        await _serve(context, connections, cache, each, plugins.get(each.scheduler_name))
    return cache


def _plugins(
    context: ServiceContext[SchedulerSettings],
    connections: Connections,
    cache: SchedulingCache,
    metrics: SchedulerMetrics,
    installed: Mapping[str, SeedPlugin],
) -> Mapping[str, Plugins]:
    """The plug-ins of the profiles that have some, by scheduler name."""
    found = {
        each.scheduler_name: Plugins(
            each,
            bus=connections.bus,
            subjects=connections.subjects,
            clock=context.clock,
            metrics=metrics,
            replies=cache.replies_to(each.scheduler_name),
            installed=installed,
        )
        for each in context.settings.configuration.served
        if each.plugins
    }
    for plugins in found.values():
        context.stack.push_async_callback(plugins.close)
    return found


def _log_limits(profiles: Sequence[SchedulingProfile]) -> None:
    for profile in profiles:
        for limit in limits_of(profile):
            _log.warning("profile.limited", profile=profile.scheduler_name, reason=limit)


def _measure_depth(metrics: SchedulerMetrics, queues: Mapping[str, _Queues]) -> None:
    for name, opened in queues.items():
        metrics.depth.labels("shoots", name).set_function(lambda opened=opened: opened.shoots.depth)
        metrics.depth.labels("waking", name).set_function(lambda opened=opened: opened.unblocking.depth)


async def _start_profile(
    context: ServiceContext[SchedulerSettings],
    connections: Connections,
    queues: _Queues,
    shoots: ShootSchedulingReconciler,
    unblocking: UnblockingReconciler,
) -> None:
    """Consume the queues of one profile, and follow its hints; tasks of all but the first have its name."""
    name = shoots.scheduler_name
    suffix = "" if name == context.settings.configuration.served[0].scheduler_name else f"@{name}"
    for queue, consumer in _batch_consumers(context, connections, queues, shoots, unblocking).items():
        task = context.spawn(f"{queue}{suffix}", consumer.run())
        context.on_stop(f"{queue}{suffix}", lambda task=task: _ended(task))
    hints = HintReceiver(shoots.bind_early, connections.subjects, context.clock, name)
    await context.wait_for("nats", lambda: hints.subscribe(connections.bus))
    context.spawn(f"hints{suffix}", hints.run())


async def _opened(context: ServiceContext[SchedulerSettings], connections: Connections, scheduler_name: str) -> _Queues:
    stream = connections.subjects.stream("QUEUES")

    async def opened(consumer: str, subject: str) -> WorkQueue:
        return await context.wait_for("nats", lambda: connections.bus.work_queue(stream, consumer, subject))

    bands = {
        band: await opened(
            SCHEDULING.consumer_of(scheduler_name, band), connections.subjects.scheduling_band(scheduler_name, band)
        )
        for band in (NORMAL, HIGH, LOW)  # the middle one first: its consumer had all of them in earlier versions
    }
    shoots = BandedQueue(bands)
    context.on_stop(f"bands of {scheduler_name}", shoots.close)
    return _Queues(
        shoots=shoots,
        unblocking=await opened(
            UNBLOCKING.consumer_of(scheduler_name), connections.subjects.queue(UNBLOCKING.name, "", scheduler_name)
        ),
    )


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
        object_of=_queued_object,
        event_reason="SchedulingRejected",
        consequence="The shoot is not scheduled until it changes",
    )

    def consumer(name: str, queue: WorkQueue, handle: Handle, dead_letter: DeadLetter, batch: int) -> BatchConsumer:
        ahead = settings.takes("fetching-ahead")
        limits = BatchSettings(batch=batch, isolate_from=ISOLATE_FROM, fetches_ahead=ahead)
        reject, clock, stopping = dead_letter.reject_poison, context.clock, context.stopping
        return BatchConsumer(name, queue, handle, reject=reject, clock=clock, settings=limits, stopping=stopping)

    silent = DeadLetter(connections, reporter=REPORTER)
    return {
        "shoots": consumer("shoots", queues.shoots, shoots.handle_batch, dead_letter, settings.batch_size),
        "waking": consumer("waking", queues.unblocking, unblocking.handle_batch, silent, UNBLOCKING_BATCH),
    }


async def _serve(
    context: ServiceContext[SchedulerSettings],
    connections: Connections,
    cache: SchedulingCache,
    profile: SchedulingProfile,
    plugins: Plugins | None,
) -> None:
    """Serve the requests to explain shoots, seeds and drains of one profile."""
    scheduler_name, subjects = profile.scheduler_name, connections.subjects
    handlers = {
        subjects.explain_of(scheduler_name): ShootExplainHandler(
            store=connections.store,
            bus=connections.bus,
            subjects=subjects,
            cache=cache,
            scheduler_name=scheduler_name,
            plugins=plugins,
        ),
        subjects.explain_seed(scheduler_name, "*"): SeedExplainHandler(
            store=connections.store, cache=cache, scheduler_name=scheduler_name
        ),
        subjects.explain_drain(scheduler_name, "*"): DrainExplainHandler(
            store=connections.store, cache=cache, scheduler_name=scheduler_name
        ),
    }
    name = f"scheduler-{scheduler_name}"
    about = {"schedulerName": scheduler_name, "answers": "JSON", "described-in": "docs/reference/asyncapi.yaml"}
    if is_filled_by_name(profile):
        about[PROFILE_WARNING] = FILLED_BY_NAME
    if profile.remote:
        about[PROFILE_PLUGINS] = " ".join(map(subjects.plugin, profile.remote))
    if plugins is not None:
        plugins.describe_in(about)
    await context.wait_for("nats", lambda: connections.bus.serve(name, "1.0.0", handlers, metadata=about))


async def build(context: ServiceContext[SchedulerSettings]) -> None:
    """Connect and start; raises SettingsInvalid when a user's filter or plug-in cannot be loaded."""
    filters, installed = load_filters(), load_plugins(context.settings.configuration.served)
    waits = Backoff(context.settings.backoff_base_seconds, context.settings.backoff_cap_seconds)
    await start_scheduler(
        context,
        await connect_all(context, reporter=REPORTER),
        backoff=lambda failures: waits.delay_seconds(failures, random.random()),
        filters=filters,
        installed=installed,
    )


def _queued_object(subject: str) -> ObjectKey | None:
    queued = queued_shoot(subject)
    return queued.key if queued is not None else None


async def _ended(task: Any) -> None:
    await task
