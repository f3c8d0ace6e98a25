"""Puts an autoscaler together: the informer, the queue of SeedAutoscalers, and the reconciler that looks at them."""

from collections.abc import Callable, Collection

from gardenbus.autoscaler.reconcilers.autoscalers import REPORTER, AutoscalerReconciler
from gardenbus.autoscaler.reconcilers.demand import Demand
from gardenbus.autoscaler.reconcilers.rejecting import Rejections
from gardenbus.autoscaler.reconcilers.scale import Scale
from gardenbus.autoscaler.reconcilers.watching import KINDS as WATCHED_KINDS
from gardenbus.autoscaler.reconcilers.watching import Watch
from gardenbus.autoscaler.settings import AutoscalerSettings
from gardenbus.common.machinery.controller import Controller, ControllerSettings
from gardenbus.common.machinery.informer import Informer
from gardenbus.common.machinery.nudges import Nudges
from gardenbus.common.machinery.timers import Timers
from gardenbus.common.ports.bus import Bus
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import Store
from gardenbus.common.resources.document import StoredObject
from gardenbus.common.resources.keys import ObjectKey, Subjects
from gardenbus.common.runtime.connections import connect_all
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.scheduling.current import KINDS as LANDSCAPE_KINDS
from gardenbus.scheduling.current import CurrentLandscape
from gardenbus.scheduling.installed_filters import load_filters

CONTROLLER = "autoscaler"
"""The queue's word, and the durable consumer's name."""

ROUND_SYNCS = 4
"""So many sync periods after the last round all autoscalers are looked at, should the bus have lost their timers."""

Callback = Callable[[ObjectKey, StoredObject | None, StoredObject | None], None]


async def build(context: ServiceContext[AutoscalerSettings]) -> None:
    """Connect to the servers, as soon as they are there, and start."""
    connections = await connect_all(context, reporter=REPORTER)
    await start_autoscaler(context, store=connections.store, bus=connections.bus, subjects=connections.subjects)


async def start_autoscaler(
    context: ServiceContext[AutoscalerSettings], *, store: Store, bus: Bus, subjects: Subjects
) -> None:
    """Start all loops on the context's tasks; returns once the landscape is known and work is taken.

    Raises SettingsInvalid when a user's filter cannot be loaded.
    """
    configuration, clock = context.settings.configuration, context.clock
    informer = Informer(store, bus, subjects, tuple(dict.fromkeys((*WATCHED_KINDS, *LANDSCAPE_KINDS))))
    filters = load_filters()
    strategy = context.settings.candidate_determination_strategy
    landscapes = {
        choice: CurrentLandscape(informer, choice.strategy or strategy, filters) for choice in configuration.schedulers
    }
    nudges = Nudges(bus, subjects, CONTROLLER)
    for landscape in landscapes.values():
        informer.subscribe(_only(LANDSCAPE_KINDS, landscape.changed))
    informer.subscribe(_only(WATCHED_KINDS, Watch(informer, nudges.nudge).changed))
    await informer.start()
    context.stack.push_async_callback(informer.stop)
    reconciler = AutoscalerReconciler(
        store=store,
        scale=Scale(bus, subjects),
        demand=Demand(store, landscapes),
        clock=clock,
        configuration=configuration,
    )
    stream, place = subjects.stream("QUEUES"), subjects.queue_of(CONTROLLER)
    controller = Controller(
        CONTROLLER,
        await context.wait_for("nats", lambda: bus.work_queue(stream, CONTROLLER, place)),
        reconciler.reconcile,
        timers=Timers(bus, subjects),
        clock=clock,
        rejected=Rejections(store=store, bus=bus, subjects=subjects),
        settings=ControllerSettings(workers=configuration.concurrent_syncs),
    )
    context.spawn("nudges", nudges.run())
    context.spawn("rounds", _rounds(informer, nudges, clock, configuration.sync_period.total_seconds() * ROUND_SYNCS))
    context.spawn(CONTROLLER, controller.run())
    context.on_stop(CONTROLLER, controller.stop)
    context.health.add_readiness("informer", lambda: None if informer.synced else "the landscape is not known yet")


def _only(kinds: Collection[str], callback: Callback) -> Callback:
    def changed(key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        if key.kind in kinds:
            callback(key, old, new)

    return changed


async def _rounds(informer: Informer, nudges: Nudges, clock: Clock, seconds: float) -> None:
    while True:
        await clock.sleep(seconds)
        for key in tuple(informer.objects("seedautoscaler")):
            nudges.nudge(key)
