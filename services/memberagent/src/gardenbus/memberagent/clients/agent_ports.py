"""Surroundings of one agent: its cluster, and its ways to the landscape."""

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from gardenbus.agent.reporter import Reporter
from gardenbus.common.ports.clock import Clock
from gardenbus.memberagent.backend.port import ClusterBackend
from gardenbus.memberagent.backend.records import ClusterRecords
from gardenbus.memberagent.clients.object_reader import ReadObject
from gardenbus.memberagent.domain.cluster_sources import ClusterSource
from gardenbus.memberagent.watch.cluster_cache import ClusterCache


class AgentPorts(NamedTuple):
    """See the module."""

    source: ClusterSource
    cache: ClusterCache
    backend: ClusterBackend
    records: ClusterRecords
    reporter: Reporter
    read: ReadObject
    landscape: Callable[[], str]
    """Name of the landscape."""
    clock: Clock
    certificate_expires_at: Callable[[], datetime | None] = lambda: None
    """The end of the agent's client certificate; None without one."""
