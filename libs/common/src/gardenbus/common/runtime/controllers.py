"""Starts informers and controllers on a service's tasks."""

from typing import Any

from gardenbus.common.api.queues import QUEUES
from gardenbus.common.controller.controller import Controller, ControllerSettings, Reconcile
from gardenbus.common.controller.dead_letter import DeadLetter, no_object, queue_object
from gardenbus.common.controller.informer import Informer
from gardenbus.common.controller.timers import Timers
from gardenbus.common.ports.connections import Connections
from gardenbus.common.runtime.service import ServiceContext


async def start_informers(context: ServiceContext[Any], *informers: Informer, unready: str) -> None:
    """Fill the caches of informers, which stop with the service; `unready` is the problem while one is not in step."""
    for informer in informers:
        context.stack.push_async_callback(informer.stop)
        await informer.start()
    context.health.add_readiness("informer", lambda: None if all(each.synced for each in informers) else unready)


async def start_controller(  # noqa: PLR0913  everything that differs between controllers
    context: ServiceContext[Any],
    name: str,
    reconcile: Reconcile,
    connections: Connections,
    *,
    reporter: str,
    workers: int = ControllerSettings().workers,
    event_reason: str = "ReconcileRejected",
    consequence: str = "",
) -> None:
    """Run a reconciler against the queue of its name, which has a row in the table, until the stop.

    Poison messages go to the dead letter; `reporter`, `event_reason` and `consequence` are its Event's.
    """
    bus, subjects, row = connections.bus, connections.subjects, QUEUES[name]
    stream, subject = subjects.stream("QUEUES"), subjects.queue_of(name)
    dead_letter = DeadLetter(
        connections,
        reporter=reporter,
        object_of=queue_object(subjects, name, row.kind_in) if row.kind else no_object,
        event_reason=event_reason,
        consequence=consequence,
    )
    controller = Controller(
        name,
        await context.wait_for("nats", lambda: bus.work_queue(stream, name, subject)),
        reconcile,
        timers=Timers(bus, subjects),
        clock=context.clock,
        reject=dead_letter.reject_poison,
        settings=ControllerSettings(workers=workers),
    )
    context.spawn(name, controller.run())
    context.on_stop(name, controller.stop)
