"""Puts a process of member agents together."""

import asyncio
import contextlib
from pathlib import Path

from gardenbus.common.ports.bus import Bus
from gardenbus.common.resources.keys import Subjects
from gardenbus.common.runtime.bus_connection import connect_bus
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.memberagent.host import Host
from gardenbus.memberagent.open_files import allow_open_files
from gardenbus.memberagent.reconcilers import counters
from gardenbus.memberagent.settings import MemberAgentSettings

OTHER_FILES = 64
"""Sockets, libraries, and files that are written at the moment."""


async def build(context: ServiceContext[MemberAgentSettings]) -> None:
    """Connect to the bus, and start the agents."""
    bus, subjects = await connect_bus(context, manages_streams=False)
    start_agents(context, bus=bus, subjects=subjects)


def start_agents(context: ServiceContext[MemberAgentSettings], *, bus: Bus, subjects: Subjects) -> Host:
    """Start all agents on the context's tasks."""
    settings = context.settings
    allow_open_files(OTHER_FILES + sum(len(each.clusters) for each in settings.configurations))
    host = Host(
        settings.configurations,
        bus=bus,
        subjects=subjects,
        clock=context.clock,
        state_directory=Path(settings.state_dir),
    )
    counters.CLUSTERS.set_function(lambda: sum(agent.is_active for agent in host.agents.values()))
    counters.WORKS.set_function(lambda: sum(len(agent.told.works) for agent in host.agents.values()))
    context.health.add_readiness(
        "told", lambda: None if host.is_told else "what the stream holds has not been told yet"
    )
    task = context.spawn("agents", host.run())

    async def stop() -> None:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    context.on_stop("agents", stop)
    return host
