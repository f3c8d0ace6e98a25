"""Wiring of a process of member agents."""

from pathlib import Path

from gardenbus.agent.host import spawn_host
from gardenbus.common.api.keys import Subjects
from gardenbus.common.ports.bus import Bus
from gardenbus.common.runtime.bus_connection import connect_bus
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.memberagent import metrics
from gardenbus.memberagent.backend.open_files import allow_open_files
from gardenbus.memberagent.host import MemberAgentHost
from gardenbus.memberagent.settings import MemberAgentSettings

STREAMS = ("OBJECTS", "REPORTS")
"""Streams without which no member agent can work; apiserver, relay and others bring them about."""

OTHER_FILES = 64
"""Sockets, libraries, and files being written."""


async def build(context: ServiceContext[MemberAgentSettings]) -> None:
    """Connect to the bus and start the agents."""
    bus, subjects = await connect_bus(context, manages_streams=False, awaited_streams=STREAMS)
    start_agents(context, bus=bus, subjects=subjects)


def start_agents(context: ServiceContext[MemberAgentSettings], *, bus: Bus, subjects: Subjects) -> MemberAgentHost:
    """Start all agents on the context's tasks."""
    settings = context.settings
    allow_open_files(OTHER_FILES + sum(len(each.clusters) for each in settings.configurations))
    host = MemberAgentHost(
        settings.configurations,
        bus=bus,
        subjects=subjects,
        clock=context.clock,
        state_directory=Path(settings.state_dir),
    )
    metrics.CLUSTERS.set_function(lambda: sum(agent.is_active for agent in host.agents.values()))
    metrics.WORKS.set_function(lambda: sum(len(agent.cache.works) for agent in host.agents.values()))
    context.health.add_readiness(
        "told", lambda: None if host.is_synced else "what the stream holds has not been told yet"
    )
    spawn_host(context, "agents", host)
    return host
