"""Puts a gardenlet process together."""

import asyncio
import contextlib
from pathlib import Path

import msgspec

from gardenbus.common.ports.bus import Bus
from gardenbus.common.resources.keys import Subjects
from gardenbus.common.runtime.bus_connection import connect_bus
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.gardenlet.host import Host
from gardenbus.gardenlet.reconcilers import counters
from gardenbus.gardenlet.settings import GardenletSettings


async def build(context: ServiceContext[GardenletSettings]) -> None:
    """Connect to the bus, and start the gardenlets."""
    bus, subjects = await connect_bus(context, manages_streams=False)
    await start_gardenlets(context, bus=bus, subjects=subjects)


async def start_gardenlets(context: ServiceContext[GardenletSettings], *, bus: Bus, subjects: Subjects) -> Host:
    """Start all gardenlets on the context's tasks."""
    settings = context.settings
    host = Host(
        settings.configurations,
        bus=bus,
        subjects=subjects,
        clock=context.clock,
        state_directory=Path(settings.state_dir),
    )
    context.stack.push_async_callback(host.close)
    await host.start()
    gardenlets = host.gardenlets.values()  # those that are there at the moment: they come and go
    counters.ACTIVE.set_function(lambda: sum(each.is_active for each in gardenlets))
    counters.IN_WORK.set_function(lambda: sum(each.agenda.in_work for each in gardenlets))
    context.health.add_page("/healthz", lambda: _healthz(host))
    context.health.add_page("/seeds", lambda: (200, msgspec.json.encode(host.endpoints()).decode() + "\n"))
    context.health.add_readiness("heartbeats", lambda: ", ".join(host.unhealthy()) or None)
    task = context.spawn("gardenlets", host.run())

    async def stop() -> None:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await host.stop()

    context.on_stop("gardenlets", stop)
    return host


def _healthz(host: Host) -> tuple[int, str]:
    """200 while every gardenlet's rounds succeed, 500 with the names of the others."""
    unhealthy = host.unhealthy()
    return (500, f"no renewal for too long: {', '.join(unhealthy)}\n") if unhealthy else (200, "ok\n")
