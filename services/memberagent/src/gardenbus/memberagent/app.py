"""Wiring of a process of member agents."""

from pathlib import Path

from gardenbus.agent.connections import connect_agents
from gardenbus.agent.host import HostPorts, spawn_host
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.keys import Subjects
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
    settings = context.settings
    agents = {
        Principal("member-agent", cluster.name): Path(settings.state_dir) / cluster.name
        for each in settings.configurations
        for cluster in each.clusters
    }
    enrols = any(each.enrol_seeds for each in settings.configurations)
    bus, connections = await connect_agents(context, agents, needs_shared=enrols, awaited_streams=STREAMS)
    allow_open_files(OTHER_FILES + sum(len(each.clusters) for each in settings.configurations))
    ports = HostPorts(bus, Subjects(settings.prefix), context.clock, Path(settings.state_dir), connections)
    host = MemberAgentHost(settings.configurations, ports)
    context.stack.push_async_callback(host.close)
    context.health.add_readiness("connections", lambda: host.connection_problem)
    metrics.CLUSTERS.set_function(lambda: sum(agent.is_active for agent in host.agents.values()))
    metrics.WORKS.set_function(lambda: sum(len(agent.cache.works) for agent in host.agents.values()))
    context.health.add_readiness(
        "objects", lambda: None if host.is_synced else "the stream OBJECTS is not replayed yet"
    )
    spawn_host(context, "agents", host)
