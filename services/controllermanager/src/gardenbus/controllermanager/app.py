"""Composition root of controllermanager: one informer, and a queue with its controller for each loop."""

from collections.abc import Sequence
from typing import NamedTuple

import structlog

from gardenbus.common.controller.api_client import ApiserverClient
from gardenbus.common.controller.enqueuer import Enqueuer
from gardenbus.common.controller.informer import Informer
from gardenbus.common.ports.connections import Connections
from gardenbus.common.runtime.connections import connect_all
from gardenbus.common.runtime.controllers import start_controller, start_informers
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.controllermanager.controllers import (
    bastion,
    controller_installation,
    controller_registration,
    credentials,
    extensions_check,
    gardener_info,
    plant,
    project,
    project_activity,
    protection,
    reference,
    seed_secrets,
    shoot_hibernation,
    shoot_maintenance,
    shoot_quota,
    shoot_retry,
    stale_project,
)
from gardenbus.controllermanager.housekeeping import EventExpiry
from gardenbus.controllermanager.settings import ControllerManagerSettings
from gardenbus.controllermanager.watch import project_namespaces
from gardenbus.controllermanager.watch.cached_bindings import REFERRING_KINDS, CachedBindings
from gardenbus.controllermanager.watch.loop import REPORTER, USER, BuiltLoop, Loop, LoopContext
from gardenbus.controllermanager.watch.project_namespaces import ProjectNamespaces

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

LOOPS: Sequence[Loop] = (
    project.LOOP,
    project_activity.LOOP,
    stale_project.LOOP,
    *protection.LOOPS,
    *credentials.LOOPS,
    shoot_hibernation.LOOP,
    shoot_maintenance.LOOP,
    shoot_quota.LOOP,
    shoot_retry.LOOP,
    *reference.LOOPS,
    bastion.LOOP,
    controller_registration.LOOP,
    controller_installation.LOOP,
    extensions_check.LOOP,
    seed_secrets.LOOP,
    plant.LOOP,
    gardener_info.LOOP,
)
"""All loops, in the order of their queues' rows (`common.api.queues`)."""


class _Indexes(NamedTuple):
    projects: ProjectNamespaces
    bindings: CachedBindings


async def build(context: ServiceContext[ControllerManagerSettings]) -> None:
    """Connect to the servers, as soon as they are reachable, and start."""
    await start_controllermanager(context, await connect_all(context, reporter=REPORTER))


async def start_controllermanager(
    context: ServiceContext[ControllerManagerSettings], connections: Connections, loops: Sequence[Loop] = LOOPS
) -> None:
    """Start loops on the context's tasks; returns once their objects are cached and reconciled."""
    configuration = context.settings.configuration
    if configuration.ignored:
        log.info("configuration.ignored", fields=configuration.ignored)
    kinds = sorted({project_namespaces.KIND, *(kind for loop in loops for kind in loop.follows)})
    informer = Informer(connections.store, connections.bus, connections.subjects, kinds)
    indexes = _indexes(informer, kinds)
    built = [_build(context, connections, informer, indexes, loop) for loop in loops]
    await start_informers(context, informer, unready="the objects are not cached yet")
    for loop, parts in zip(loops, built, strict=True):
        if parts.run is not None:
            context.spawn(f"{loop.name}-clock", parts.run())
        await start_controller(
            context,
            loop.name,
            parts.reconcile,
            connections,
            workers=loop.workers(configuration),
            reporter=REPORTER,
            event_reason="ReconcileError",
        )
    if configuration.event is not None:
        events = EventExpiry(
            connections.store,
            connections.bus,
            connections.subjects,
            context.clock,
            ttl_seconds=configuration.event.ttl_non_shoot_events.total_seconds(),
        )
        context.spawn("events", events.run())


def _indexes(informer: Informer, kinds: Sequence[str]) -> _Indexes:
    """Indexes that all loops share; subscribed before them, so that they find a change there."""
    projects, bindings = ProjectNamespaces(), CachedBindings()
    informer.subscribe(projects.changed, (project_namespaces.KIND,))
    informer.subscribe(bindings.changed, tuple(kind for kind in REFERRING_KINDS if kind in kinds))
    return _Indexes(projects, bindings)


def _build(
    context: ServiceContext[ControllerManagerSettings],
    connections: Connections,
    informer: Informer,
    indexes: _Indexes,
    loop: Loop,
) -> BuiltLoop:
    bus, subjects = connections.bus, connections.subjects
    enqueuer = Enqueuer(bus, subjects, loop.name)
    built = loop.build(
        LoopContext(
            store=connections.store,
            clock=context.clock,
            objects=informer,
            projects=indexes.projects,
            bindings=indexes.bindings,
            api=ApiserverClient(bus, subjects, user=USER),
            configuration=context.settings.configuration,
            enqueue=enqueuer.enqueue,
            cluster_identity=context.settings.cluster_identity,
            root_ca=context.settings.root_ca or context.settings.nats_ca,
        )
    )
    informer.subscribe(built.changed, loop.follows)

    async def enqueue_all() -> None:
        """Queue objects as after the first list: the queue, with its timers, may have gone back."""
        for key, stored in tuple(informer.objects(loop.kind).items()):
            built.changed(key, None, stored)

    bus.on_reconnect(enqueue_all)
    context.spawn(f"{loop.name}-enqueuer", enqueuer.run())
    return built
