"""Puts the placement service together: an informer that nudges, and a queue for each sort of look."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta

import structlog

from gardenbus.common.machinery.controller import Controller, ControllerSettings, Reconcile, WorkRequest
from gardenbus.common.machinery.informer import Informer
from gardenbus.common.machinery.nudges import Nudges
from gardenbus.common.machinery.timers import Timers
from gardenbus.common.ports.bus import Bus, Message
from gardenbus.common.ports.store import Store
from gardenbus.common.resources.keys import Header, Subjects
from gardenbus.common.runtime.connections import connect_all
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.placement.reconcilers.evictions import EvictionReconciler
from gardenbus.placement.reconcilers.knowledge import WATCHED, Knowledge
from gardenbus.placement.reconcilers.rollout import RolloutReconciler
from gardenbus.placement.reconcilers.scheduling import SchedulingReconciler
from gardenbus.placement.reconcilers.selection import Selection
from gardenbus.placement.reconcilers.snapshots import SnapshotReconciler
from gardenbus.placement.reconcilers.statuses import StatusReconciler
from gardenbus.placement.reconcilers.watching import EVICTION, WORK, Queues, Watch
from gardenbus.placement.reconcilers.works import WorkReconciler
from gardenbus.placement.settings import PlacementSettings

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

REPORTER = "placement"

SNAPSHOTS = "placement"
SCHEDULING = "placementscheduling"
STATUS = "placementstatus"
ROLLOUT = "placementrollout"
EVICTIONS = "placementeviction"
WORKS = "placementwork"
CONTROLLERS = (SNAPSHOTS, SCHEDULING, STATUS, ROLLOUT, EVICTIONS, WORKS)
"""The queues' words, the durable consumers' names and the metrics' labels."""

GATHERED = {STATUS: 0.2, ROLLOUT: 0.1}
"""So long (in seconds) looks are gathered that each binding of a placement asks for."""


async def build(context: ServiceContext[PlacementSettings]) -> None:
    """Connect to the servers, as soon as they are there, and start."""
    connections = await connect_all(context, reporter=REPORTER)
    await start_placement(context, store=connections.store, bus=connections.bus, subjects=connections.subjects)


async def start_placement(
    context: ServiceContext[PlacementSettings], *, store: Store, bus: Bus, subjects: Subjects
) -> None:
    """Start everything on the context's tasks; returns once the fleet is known and work is taken."""
    settings, clock = context.settings, context.clock
    informer = Informer(store, bus, subjects, (*WATCHED, WORK, EVICTION))
    knowledge = Knowledge(clock)
    nudges = {name: Nudges(bus, subjects, name, gather_seconds=GATHERED.get(name, 0.0)) for name in CONTROLLERS}
    watch = Watch(knowledge, _queues(nudges), clock)
    selection = Selection(bus, subjects, knowledge.placements(), nudges[SNAPSHOTS].nudge)
    for callback in (knowledge.changed, watch.changed, selection.changed):
        informer.subscribe(callback)
    await informer.start()
    watch.is_settled = True
    context.stack.push_async_callback(informer.stop)
    reconcilers: Mapping[str, Reconcile] = {
        SNAPSHOTS: SnapshotReconciler(
            store,
            clock,
            knowledge,
            collection=timedelta(seconds=settings.resource_collection_seconds),
            interval=timedelta(seconds=settings.resource_interval_seconds),
        ).reconcile,
        SCHEDULING: SchedulingReconciler(store, clock, knowledge, informer.foresee).reconcile,
        STATUS: StatusReconciler(store, clock).reconcile,
        ROLLOUT: RolloutReconciler(store, clock, knowledge).reconcile,
        EVICTIONS: EvictionReconciler(store, clock, knowledge).reconcile,
        WORKS: WorkReconciler(store, clock, knowledge).reconcile,
    }
    for name, reconcile in reconcilers.items():
        await _run(context, name, reconcile, bus=bus, subjects=subjects)
    for name, each in nudges.items():
        context.spawn(f"{name}-nudges", each.run())
    context.spawn("selection", selection.run())
    context.spawn("ticks", _ticks(watch, settings.tick_seconds))
    context.spawn("rounds", _rounds(knowledge, nudges, settings.resync_seconds))
    context.health.add_readiness("informer", lambda: None if informer.synced else "the fleet is not known yet")


async def _run(
    context: ServiceContext[PlacementSettings], name: str, reconcile: Reconcile, *, bus: Bus, subjects: Subjects
) -> None:
    """Take work from one queue."""

    async def rejected(request: WorkRequest, reason: str) -> None:
        log.error("work.rejected", controller=name, object=request.tail, reason=reason)
        headers = {Header.REASON: reason, Header.SUBJECT: request.subject}
        await bus.publish(Message(subjects.rejected, headers=headers))

    stream, place = subjects.stream("QUEUES"), subjects.queue_of(name)
    settings = context.settings
    controller = Controller(
        name,
        await context.wait_for("nats", lambda: bus.work_queue(stream, name, place)),
        reconcile,
        timers=Timers(bus, subjects),
        clock=context.clock,
        rejected=rejected,
        settings=ControllerSettings(workers=settings.scheduling_workers if name == SCHEDULING else settings.workers),
    )
    context.spawn(name, controller.run())
    context.on_stop(name, controller.stop)


def _queues(nudges: Mapping[str, Nudges]) -> Queues:
    return Queues(
        snapshots=nudges[SNAPSHOTS].nudge,
        scheduling=nudges[SCHEDULING].nudge,
        status=nudges[STATUS].nudge,
        rollout=nudges[ROLLOUT].nudge,
        eviction=nudges[EVICTIONS].nudge,
        work=nudges[WORKS].nudge,
    )


async def _ticks(watch: Watch, seconds: float) -> None:
    while True:
        await asyncio.sleep(seconds)
        watch.tick()


async def _rounds(knowledge: Knowledge, nudges: Mapping[str, Nudges], seconds: float) -> None:
    """Ask for a look of each sort at every placement."""
    while True:
        await asyncio.sleep(seconds)
        for key in tuple(knowledge.placements()):
            for name in (SNAPSHOTS, SCHEDULING, STATUS, ROLLOUT):
                nudges[name].nudge(key)
