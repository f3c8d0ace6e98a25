"""Puts managedseedset together: an informer that nudges, the landscape that drains are planned on, and the queue."""

import structlog

from gardenbus.common.machinery.controller import Controller, ControllerSettings
from gardenbus.common.machinery.informer import Informer
from gardenbus.common.machinery.nudges import Nudges
from gardenbus.common.machinery.timers import Timers
from gardenbus.common.ports.bus import Bus
from gardenbus.common.ports.store import Store
from gardenbus.common.resources.document import StoredObject
from gardenbus.common.resources.keys import ObjectKey, Subjects
from gardenbus.common.runtime.connections import connect_all
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.managedseedset.reconcilers.garden import Garden
from gardenbus.managedseedset.reconcilers.sets import REPORTER, SetReconciler
from gardenbus.managedseedset.reconcilers.surveying import Surveyor
from gardenbus.managedseedset.reconcilers.watching import KINDS, NAMESPACES, Watch
from gardenbus.managedseedset.settings import SetSettings
from gardenbus.scheduling import current
from gardenbus.scheduling.current import CurrentLandscape
from gardenbus.scheduling.installed_filters import load_filters

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

CONTROLLER = "managedseedset"
"""The queue's word, the durable consumer's name and the metrics' label."""


async def build(context: ServiceContext[SetSettings]) -> None:
    """Connect to the servers, as soon as they are there, and start."""
    connections = await connect_all(context, reporter=REPORTER)
    await start_sets(context, store=connections.store, bus=connections.bus, subjects=connections.subjects)


async def start_sets(context: ServiceContext[SetSettings], *, store: Store, bus: Bus, subjects: Subjects) -> None:
    """Start everything on the context's tasks; returns once sets are looked at.

    Raises SettingsInvalid when a user's filter cannot be loaded.
    """
    settings, clock = context.settings, context.clock
    if settings.configuration.ignored:
        log.info("configuration.ignored", fields=settings.configuration.ignored)
    informer = Informer(store, bus, subjects, (*KINDS, *current.KINDS), NAMESPACES)
    landscape = CurrentLandscape(informer, settings.candidate_determination_strategy, load_filters())

    def on_change(key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        if key.kind in current.KINDS:
            landscape.changed(key, old, new)

    nudges = Nudges(bus, subjects, CONTROLLER)
    informer.subscribe(on_change)
    informer.subscribe(Watch(informer, nudges).changed)
    reconciler = SetReconciler(
        store, Garden(bus, subjects), Surveyor(store, informer, landscape, clock), clock, settings.actuator
    )
    queue = await context.wait_for(
        "nats",
        lambda: bus.work_queue(subjects.stream("QUEUES"), CONTROLLER, subjects.queue_of(CONTROLLER)),
    )
    await informer.start()
    context.stack.push_async_callback(informer.stop)
    controller = Controller(
        CONTROLLER,
        queue,
        reconciler.reconcile,
        timers=Timers(bus, subjects),
        clock=clock,
        rejected=reconciler.rejected,
        settings=ControllerSettings(workers=settings.configuration.concurrent_syncs),
    )
    context.spawn("nudges", nudges.run())
    context.spawn(CONTROLLER, controller.run())
    context.on_stop(CONTROLLER, controller.stop)
    context.health.add_readiness("informer", lambda: None if informer.synced else "the sets are not known yet")
