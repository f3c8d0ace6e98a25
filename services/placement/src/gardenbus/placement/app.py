"""Wires the placement service: an informer with event handlers, and a work queue with its controller for each task."""

import asyncio
import functools
from collections.abc import Mapping
from datetime import timedelta

from gardenbus.common.controller.controller import Reconcile
from gardenbus.common.controller.enqueuer import Enqueuer
from gardenbus.common.controller.informer import Informer
from gardenbus.common.controller.wait import forever
from gardenbus.common.ports.connections import Connections
from gardenbus.common.ports.store import Store
from gardenbus.common.runtime.connections import connect_all
from gardenbus.common.runtime.controllers import start_controller, start_informers
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.placement.controllers.eviction import EvictionReconciler
from gardenbus.placement.controllers.override import OverrideReconciler
from gardenbus.placement.controllers.rollout import RolloutReconciler
from gardenbus.placement.controllers.scheduling import SchedulingReconciler
from gardenbus.placement.controllers.snapshot import SnapshotReconciler
from gardenbus.placement.controllers.status import StatusReconciler
from gardenbus.placement.controllers.work import WorkGeneratorReconciler
from gardenbus.placement.settings import PlacementSettings
from gardenbus.placement.watch.change_detector import ChangeDetector
from gardenbus.placement.watch.event_handler import EVICTION, WORK, PlacementEventHandler, PlacementQueues
from gardenbus.placement.watch.placement_cache import WATCHED, PlacementCache

REPORTER = "placement"

SNAPSHOTS = "placement"
SCHEDULING = "placementscheduling"
STATUS = "placementstatus"
ROLLOUT = "placementrollout"
EVICTIONS = "placementeviction"
WORKS = "placementwork"
OVERRIDES = "placementoverride"
CONTROLLERS = (SNAPSHOTS, SCHEDULING, STATUS, ROLLOUT, EVICTIONS, WORKS, OVERRIDES)
"""Names of the queues, of the durable consumers and of the metrics' label; in the order of PlacementQueues."""

DEBOUNCE_SECONDS = {STATUS: 0.2, ROLLOUT: 0.1}
"""Period (in seconds) in which enqueued keys are gathered, for controllers that every binding enqueues."""


async def build(context: ServiceContext[PlacementSettings]) -> None:
    """Connect to the servers, as soon as they are there, and start."""
    await start_placement(context, await connect_all(context, reporter=REPORTER))


async def start_placement(context: ServiceContext[PlacementSettings], connections: Connections) -> None:
    """Start everything on the context's tasks; returns once the cache has synced and the controllers run."""
    store, bus, subjects = connections.store, connections.bus, connections.subjects
    settings, clock = context.settings, context.clock
    informer = Informer(store, bus, subjects, (*WATCHED, WORK, EVICTION))
    cache = PlacementCache(clock)
    enqueuers = {
        name: Enqueuer(bus, subjects, name, gather_seconds=DEBOUNCE_SECONDS.get(name, 0.0)) for name in CONTROLLERS
    }
    event_handler = PlacementEventHandler(
        cache, PlacementQueues(*(enqueuers[name].enqueue for name in CONTROLLERS)), clock
    )
    change_detector = ChangeDetector(bus, subjects, cache.placements(), enqueuers[SNAPSHOTS].enqueue)
    for callback in (cache.changed, event_handler.changed, change_detector.changed):
        informer.subscribe(callback)
    await start_informers(context, informer, unready="the cache has not synced yet")
    event_handler.has_synced = True
    for name, reconcile in _reconcilers(context, store, cache, informer).items():
        await start_controller(
            context,
            name,
            reconcile,
            connections,
            workers=settings.scheduling_workers if name == SCHEDULING else settings.workers,
            reporter=REPORTER,
        )
    for name, each in enqueuers.items():
        context.spawn(f"{name}-enqueuer", each.run())
    context.spawn("change-detector", change_detector.run())

    async def resync() -> None:
        """Queue every placement: the queues may have gone back."""
        _resync(cache, enqueuers)

    later = functools.partial(forever, sleep=asyncio.sleep, is_immediate=False)
    context.spawn("ticks", later(event_handler.tick, period_seconds=settings.tick_seconds))
    context.spawn("resyncs", later(resync, period_seconds=settings.resync_seconds))
    connections.bus.on_reconnect(resync)


def _reconcilers(
    context: ServiceContext[PlacementSettings], store: Store, cache: PlacementCache, informer: Informer
) -> Mapping[str, Reconcile]:
    settings, clock = context.settings, context.clock
    return {
        SNAPSHOTS: SnapshotReconciler(
            store,
            clock,
            cache,
            collection=timedelta(seconds=settings.resource_collection_seconds),
            interval=timedelta(seconds=settings.resource_interval_seconds),
        ).reconcile,
        SCHEDULING: SchedulingReconciler(store, clock, cache, informer.assume).reconcile,
        STATUS: StatusReconciler(store, clock).reconcile,
        ROLLOUT: RolloutReconciler(store, clock, cache).reconcile,
        EVICTIONS: EvictionReconciler(store, clock).reconcile,
        WORKS: WorkGeneratorReconciler(store, clock).reconcile,
        OVERRIDES: OverrideReconciler(store).reconcile,
    }


def _resync(cache: PlacementCache, enqueuers: Mapping[str, Enqueuer]) -> None:
    """Enqueue every placement for each controller."""
    for name in (SNAPSHOTS, SCHEDULING, STATUS, ROLLOUT):
        enqueuers[name].enqueue_all(cache.placements())
