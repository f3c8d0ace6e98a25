"""Puts lifecycle together: who judges Seeds by their Leases, and who accompanies shoots from seed to seed."""

import structlog

from gardenbus.common.adapters.jetstream_streams import StreamSettings
from gardenbus.common.errors import Transient
from gardenbus.common.machinery.controller import Controller, ControllerSettings, WorkRequest
from gardenbus.common.machinery.informer import Informer
from gardenbus.common.machinery.nudges import Nudges
from gardenbus.common.machinery.rejected_metrics import HANDLER_FAILED, REJECTED
from gardenbus.common.machinery.timers import Timers
from gardenbus.common.ports.bus import Bus, Message
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import EventRecord, Store
from gardenbus.common.resources.keys import Header, ObjectKey, Subjects
from gardenbus.common.runtime.connections import connect_all
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.lifecycle.decide.outage import is_deaf
from gardenbus.lifecycle.reconcilers.alarm import Alarm
from gardenbus.lifecycle.reconcilers.fleet import FleetFigures
from gardenbus.lifecycle.reconcilers.leases import LeaseWatch
from gardenbus.lifecycle.reconcilers.migrations import CONTROLLER, MigrationReconciler
from gardenbus.lifecycle.reconcilers.seeds import REPORTER, SeedReconciler
from gardenbus.lifecycle.settings import LifecycleSettings

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

KINDS = ("seed",)


async def build(context: ServiceContext[LifecycleSettings]) -> None:
    """Connect and start watching. The server ends a Lease after the monitor period: lifecycle alone says how long."""
    streams = StreamSettings(lease_seconds=context.settings.configuration.monitor_period.total_seconds())
    connections = await connect_all(context, reporter=REPORTER, streams=streams)
    await start_lifecycle(context, store=connections.store, bus=connections.bus, subjects=connections.subjects)


async def start_lifecycle(
    context: ServiceContext[LifecycleSettings], *, store: Store, bus: Bus, subjects: Subjects
) -> SeedReconciler:
    """Start all loops on the context's tasks; returns once the Seeds are known."""
    configuration, clock = context.settings.configuration, context.clock
    if configuration.ignored:
        log.info("configuration.ignored", fields=configuration.ignored)
    alarm, comparison = Alarm(clock), Alarm(clock)
    leases = LeaseWatch(bus, subjects, clock, configuration, holder=context.instance, nudge=alarm.ring)
    seeds = SeedReconciler(store, leases, clock, configuration)
    informer = Informer(store, bus, subjects, KINDS)
    informer.subscribe(seeds.watch)
    figures = FleetFigures(
        store,
        leases.records,
        seeds.seeds,
        clock,
        late_after_seconds=configuration.monitor_period.total_seconds() / 2,
        is_per_seed=context.settings.per_seed_metrics,
    )
    informer.subscribe(figures.watch)
    await _start_migrations(context, informer, store=store, bus=bus, subjects=subjects)
    await informer.start()
    context.stack.push_async_callback(informer.stop)

    async def on_reconnect() -> None:
        leases.on_cut()
        comparison.ring()

    bus.on_reconnect(on_reconnect)
    context.spawn("leases", leases.follow())
    context.spawn("canary", leases.sing())
    context.spawn("seeds", seeds.run(alarm))
    context.spawn("figures", figures.run(context.settings.fleet_metrics_seconds))
    context.spawn(
        "comparison",
        _compare_for_ever(leases, seeds, comparison, configuration.monitor_period.total_seconds()),
    )
    health = context.health
    health.add_readiness("informer", lambda: None if informer.synced else "the Seeds are not known yet")
    health.add_readiness("leases", lambda: None if leases.caught_up.is_set() else "the Leases are not known yet")
    health.add_readiness("canary", lambda: _hears(leases, clock, configuration.monitor_period.total_seconds()))
    return seeds


async def _start_migrations(
    context: ServiceContext[LifecycleSettings], informer: Informer, *, store: Store, bus: Bus, subjects: Subjects
) -> None:
    nudges = Nudges(bus, subjects, CONTROLLER)
    migrations = MigrationReconciler(store, context.clock, nudges.nudge)
    informer.subscribe(migrations.watch)

    async def rejected(request: WorkRequest, reason: str) -> None:
        headers = {Header.REASON: reason, Header.SUBJECT: request.subject}
        await bus.publish(Message(subjects.rejected, headers=headers))
        REJECTED.labels(HANDLER_FAILED).inc()
        shoot = await store.get(ObjectKey("shoot", request.namespace, request.name))
        if shoot is not None:
            message = f"The migration is not looked after: {reason}"
            await store.record_event(
                EventRecord(
                    about=shoot.key,
                    uid=shoot.uid,
                    type="Warning",
                    reason="MigrationRejected",
                    message=message,
                    reporter=REPORTER,
                )
            )

    controller = Controller(
        CONTROLLER,
        await bus.work_queue(subjects.stream("QUEUES"), CONTROLLER, subjects.queue_of(CONTROLLER)),
        migrations.reconcile,
        timers=Timers(bus, subjects),
        clock=context.clock,
        rejected=rejected,
        settings=ControllerSettings(workers=context.settings.configuration.concurrent_migrations),
    )
    context.spawn("nudges", nudges.run())
    context.spawn(CONTROLLER, controller.run())
    context.on_stop(CONTROLLER, controller.stop)


async def _compare_for_ever(leases: LeaseWatch, seeds: SeedReconciler, alarm: Alarm, period_seconds: float) -> None:
    """Compare the Seeds with the living Leases at the start, after each reconnect and once a period."""
    await leases.caught_up.wait()
    while True:
        try:
            await leases.compare(frozenset(seeds.seeds))
        except Transient as error:
            log.warning("comparison.interrupted", reason=error.message)
        await alarm.pause(period_seconds)


def _hears(leases: LeaseWatch, clock: Clock, period_seconds: float) -> str | None:
    deaf = is_deaf(leases.hearing, clock.monotonic(), period_seconds)
    return "the canary is not heard: no silence is believed" if deaf else None
