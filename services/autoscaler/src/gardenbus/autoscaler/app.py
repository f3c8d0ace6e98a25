"""Composition root of the autoscaler: informer, landscape caches, and the controller of SeedAutoscalers."""

import msgspec

from gardenbus.autoscaler.controllers.seed_autoscaler import KIND, REPORTER, SeedAutoscalerReconciler
from gardenbus.autoscaler.scale_client import ScaleClient
from gardenbus.autoscaler.settings import AutoscalerSettings
from gardenbus.autoscaler.watch.enqueuer import KINDS as WATCHED_KINDS
from gardenbus.autoscaler.watch.enqueuer import seed_autoscaler_enqueuer
from gardenbus.autoscaler.watch.pending_shoots import PendingShootCounter
from gardenbus.common.api.garden.scheduling_profiles import SchedulingProfile
from gardenbus.common.controller.enqueuer import Enqueuer
from gardenbus.common.controller.informer import Informer, log_unreadable
from gardenbus.common.controller.wait import forever
from gardenbus.common.ports.connections import Connections
from gardenbus.common.runtime.configuration_file import read_profiles
from gardenbus.common.runtime.connections import connect_all
from gardenbus.common.runtime.controllers import start_controller, start_informers
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.scheduling.cache import KINDS as LANDSCAPE_KINDS
from gardenbus.scheduling.cache import SchedulingCache
from gardenbus.scheduling.installed_filters import load_filters

CONTROLLER = "autoscaler"
"""Name of the work queue and of its durable consumer."""

RESYNC_PERIODS = 4
"""Sync periods between two resyncs of all autoscalers, in case the bus has lost their timers."""


async def build(context: ServiceContext[AutoscalerSettings]) -> None:
    """Connect to the servers, as soon as they are reachable, and start."""
    await start_autoscaler(context, await connect_all(context, reporter=REPORTER))


async def start_autoscaler(context: ServiceContext[AutoscalerSettings], connections: Connections) -> None:
    """Start all loops on the context's tasks; returns once the landscape is cached and work is consumed.

    Raises SettingsInvalid when a user's filter cannot be loaded, or a scheduler's configuration not be read.
    """
    store, bus, subjects = connections.store, connections.bus, connections.subjects
    configuration, clock = context.settings.configuration, context.clock
    informer = Informer(store, bus, subjects, tuple(dict.fromkeys((*WATCHED_KINDS, *LANDSCAPE_KINDS))))
    filters = load_filters()
    strategy = context.settings.candidate_determination_strategy
    profiles = {each.scheduler_name: each for each in read_profiles(context.settings.scheduler_configurations)}
    landscapes = {
        scheduler: SchedulingCache(
            informer,
            scheduler.strategy or strategy,
            filters,
            log_unreadable,
            [_with_strategy(profiles[name], scheduler.strategy)]
            if (name := scheduler.scheduler_name) in profiles
            else (),
        )
        for scheduler in configuration.schedulers
    }
    enqueuer = Enqueuer(bus, subjects, CONTROLLER)
    for landscape in landscapes.values():
        informer.subscribe(landscape.changed, LANDSCAPE_KINDS)
    informer.subscribe(seed_autoscaler_enqueuer(informer, enqueuer.enqueue).changed)
    await start_informers(context, informer, unready="the landscape is not cached yet")
    reconciler = SeedAutoscalerReconciler(
        store=store,
        scale=ScaleClient(bus, subjects),
        pending_shoots=PendingShootCounter(store, landscapes),
        clock=clock,
        configuration=configuration,
    )
    await start_controller(
        context,
        CONTROLLER,
        reconciler.reconcile,
        connections,
        workers=configuration.concurrent_syncs,
        reporter=REPORTER,
        consequence="The autoscaler is not reconciled until something changes",
    )
    context.spawn("enqueuer", enqueuer.run())
    resync, period = lambda: enqueuer.enqueue_all(informer.objects(KIND)), configuration.sync_period * RESYNC_PERIODS
    resyncing = forever(resync, period_seconds=period.total_seconds(), sleep=clock.sleep, is_immediate=False)
    context.spawn("resync", resyncing)


def _with_strategy(profile: SchedulingProfile, strategy: str) -> SchedulingProfile:
    """A profile with the strategy that the autoscaler's own configuration names, if any."""
    return msgspec.structs.replace(profile, strategy=strategy or profile.strategy)
