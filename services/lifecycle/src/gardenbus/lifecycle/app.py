"""Composition root of lifecycle: the gardenlet lifecycle of Seeds, and the controller of shoot migrations."""

import structlog

from gardenbus.common.adapters.nats.streams import StreamSettings
from gardenbus.common.controller.enqueuer import Enqueuer
from gardenbus.common.controller.informer import Informer
from gardenbus.common.controller.process_counts import ReceivedCounts
from gardenbus.common.controller.wait import InterruptibleSleep, forever
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.connections import Connections
from gardenbus.common.runtime.connections import connect_all
from gardenbus.common.runtime.controllers import start_controller, start_informers
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.lifecycle.controllers.gardenlet_lifecycle import REPORTER, GardenletLifecycleReconciler
from gardenbus.lifecycle.controllers.migration import CONTROLLER, MigrationReconciler
from gardenbus.lifecycle.controllers.unknown_objects import UnknownObjectsReconciler
from gardenbus.lifecycle.domain.outage import is_probe_lost
from gardenbus.lifecycle.history_writer import HistoryWriter
from gardenbus.lifecycle.settings import LifecycleSettings
from gardenbus.lifecycle.watch.history_sources import HistorySources
from gardenbus.lifecycle.watch.leases import LeaseWatcher
from gardenbus.lifecycle.watch.seed_gauges import SeedGauges

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

KINDS = ("seed",)


async def build(context: ServiceContext[LifecycleSettings]) -> None:
    """Connect and start watching. The server ends a Lease after the monitor period, which lifecycle alone sets."""
    streams = StreamSettings(lease_seconds=context.settings.configuration.monitor_period.total_seconds())
    await start_lifecycle(context, await connect_all(context, reporter=REPORTER, streams=streams))


async def start_lifecycle(
    context: ServiceContext[LifecycleSettings], connections: Connections
) -> GardenletLifecycleReconciler:
    """Start all loops on the context's tasks; returns once the Seeds are cached."""
    store, bus, subjects = connections.store, connections.bus, connections.subjects
    configuration, clock = context.settings.configuration, context.clock
    if configuration.ignored:
        log.info("configuration.ignored", fields=configuration.ignored)
    seeds_sleep, resync_sleep = InterruptibleSleep(clock), InterruptibleSleep(clock)
    leases = LeaseWatcher(bus, subjects, clock, configuration, holder=context.instance, on_change=seeds_sleep.interrupt)
    seeds = GardenletLifecycleReconciler(store, leases, clock, configuration)
    informer = Informer(store, bus, subjects, KINDS)
    informer.subscribe(seeds.watch)
    period_seconds, is_per_seed = configuration.monitor_period.total_seconds(), context.settings.per_seed_metrics
    gauges = SeedGauges(
        store, leases.records, seeds.seeds, clock, late_after_seconds=period_seconds / 2, is_per_seed=is_per_seed
    )
    informer.subscribe(gauges.watch)
    await _start_migrations(context, informer, connections)
    await start_informers(context, informer, unready="the Seeds are not cached yet")
    await _start_history(context, connections, gauges)

    async def on_reconnect() -> None:
        leases.on_disconnect()
        resync_sleep.interrupt()

    bus.on_reconnect(on_reconnect)
    context.spawn("leases", leases.follow())
    context.spawn("probe", leases.renew_probe())
    context.spawn("seeds", seeds.run(seeds_sleep))
    context.spawn("unknown", UnknownObjectsReconciler(store, seeds.seeds, clock).run(period_seconds))
    context.spawn("gauges", gauges.run(context.settings.fleet_metrics_seconds))
    context.spawn("resync", _resync_forever(leases, seeds, resync_sleep, period_seconds))
    health = context.health
    health.add_readiness("leases", lambda: None if leases.caught_up.is_set() else "the Leases are not cached yet")
    health.add_readiness("probe", lambda: _probe_problem(leases, clock, period_seconds))
    return seeds


async def _start_migrations(
    context: ServiceContext[LifecycleSettings], informer: Informer, connections: Connections
) -> None:
    enqueuer = Enqueuer(connections.bus, connections.subjects, CONTROLLER)
    migrations = MigrationReconciler(connections.store, context.clock, enqueuer.enqueue)
    informer.subscribe(migrations.watch)

    await start_controller(
        context,
        CONTROLLER,
        migrations.reconcile,
        connections,
        workers=context.settings.configuration.concurrent_migrations,
        reporter=REPORTER,
        event_reason="MigrationRejected",
        consequence="The migration is not tracked",
    )
    context.spawn("enqueuer", enqueuer.run())


async def _start_history(
    context: ServiceContext[LifecycleSettings], connections: Connections, gauges: SeedGauges
) -> None:
    """Write the landscape's history; nothing else waits for it."""
    bus, subjects = connections.bus, connections.subjects
    sizes = HistorySources()
    informer = Informer(connections.store, bus, subjects, HistorySources.KINDS)
    informer.subscribe(sizes.watch)
    context.stack.push_async_callback(informer.stop)
    counts = ReceivedCounts()
    writer = HistoryWriter(connections, context.clock, seeds=gauges, sources=sizes, counts=counts)

    async def run() -> None:
        await informer.start()
        await context.wait_for("nats", lambda: counts.subscribe(bus, subjects, context.instance))
        await writer.run()

    context.spawn("history", run())


async def _resync_forever(
    leases: LeaseWatcher, seeds: GardenletLifecycleReconciler, resync_sleep: InterruptibleSleep, period_seconds: float
) -> None:
    """Compare the Seeds with the living Leases at the start, after each reconnect and once a period."""
    await leases.caught_up.wait()
    await forever(
        lambda: leases.resync(frozenset(seeds.seeds)),
        period_seconds=period_seconds,
        sleep=resync_sleep.pause,
        interrupted=lambda error: log.warning("resync.interrupted", reason=error.message),
    )


def _probe_problem(leases: LeaseWatcher, clock: Clock, period_seconds: float) -> str | None:
    lost = is_probe_lost(leases.probe, clock.monotonic(), period_seconds)
    return "the probe Lease does not arrive: no gardenlet is declared silent" if lost else None
