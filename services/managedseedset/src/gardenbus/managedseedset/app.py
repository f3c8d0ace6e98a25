"""Composition root of managedseedset: informer, landscape cache for drain forecasts, and the controller of sets."""

import structlog

from gardenbus.common.controller.enqueuer import Enqueuer
from gardenbus.common.controller.informer import Informer, log_unreadable
from gardenbus.common.ports.connections import Connections
from gardenbus.common.runtime.configuration_file import read_profiles
from gardenbus.common.runtime.connections import connect_all
from gardenbus.common.runtime.controllers import start_controller, start_informers
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.managedseedset.controllers.managed_seed_set import REPORTER, ManagedSeedSetReconciler
from gardenbus.managedseedset.garden_client import GardenClient
from gardenbus.managedseedset.settings import ManagedSeedSetSettings
from gardenbus.managedseedset.watch.enqueuer import KINDS, NAMESPACES, managed_seed_set_enqueuer
from gardenbus.managedseedset.watch.state_collector import StateCollector
from gardenbus.scheduling import cache
from gardenbus.scheduling.cache import SchedulingCache
from gardenbus.scheduling.installed_filters import load_filters

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

CONTROLLER = "managedseedset"
"""Name of the work queue and of its durable consumer, and the metrics' label."""


async def build(context: ServiceContext[ManagedSeedSetSettings]) -> None:
    """Connect to the servers, as soon as they are reachable, and start."""
    await start_managedseedset(context, await connect_all(context, reporter=REPORTER))


async def start_managedseedset(context: ServiceContext[ManagedSeedSetSettings], connections: Connections) -> None:
    """Start all loops on the context's tasks; returns once sets are reconciled.

    Raises SettingsInvalid when a user's filter cannot be loaded, or a scheduler's configuration not be read.
    """
    store, bus, subjects = connections.store, connections.bus, connections.subjects
    settings, clock = context.settings, context.clock
    if settings.configuration.ignored:
        log.info("configuration.ignored", fields=settings.configuration.ignored)
    informer = Informer(store, bus, subjects, (*KINDS, *cache.KINDS), NAMESPACES)
    landscape = SchedulingCache(
        informer,
        settings.candidate_determination_strategy,
        load_filters(),
        log_unreadable,
        read_profiles(settings.scheduler_configurations),
    )

    enqueuer = Enqueuer(bus, subjects, CONTROLLER)
    informer.subscribe(landscape.changed, cache.KINDS)
    informer.subscribe(managed_seed_set_enqueuer(informer, enqueuer.enqueue).changed)
    reconciler = ManagedSeedSetReconciler(
        store, GardenClient(bus, subjects), StateCollector(store, informer, landscape, clock), clock, settings.actuator
    )

    async def enqueue_all() -> None:
        """Queue every set: the queue, with its timers, may have gone back."""
        for key in tuple(informer.objects("managedseedset")):
            enqueuer.enqueue(key)

    bus.on_reconnect(enqueue_all)
    await start_informers(context, informer, unready="the sets are not cached yet")
    await start_controller(
        context,
        CONTROLLER,
        reconciler.reconcile,
        connections,
        workers=settings.configuration.concurrent_syncs,
        reporter=REPORTER,
        event_reason="ReconcileError",
    )
    context.spawn("enqueuer", enqueuer.run())
