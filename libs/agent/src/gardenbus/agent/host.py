"""Host: one process that runs many agents, on one connection with shared followers, or each on its own connection."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gardenbus.agent.connections import AgentConnections, OwnConnection
from gardenbus.common.api.configuration.gardenlet import DEFAULT_CERTIFICATE, CertificateSettings
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.keys import Subjects
from gardenbus.common.ports.bus import Bus
from gardenbus.common.ports.clock import Clock
from gardenbus.common.runtime.service import ServiceContext

AGENTS_A_FOLLOWER = 100
"""Agents that share one consumer."""


class HostPorts(NamedTuple):
    """Ports of a host. `connections` are those of agents with credentials of their own, which share `bus` otherwise."""

    bus: Bus
    subjects: Subjects
    clock: Clock
    state_directory: Path
    connections: AgentConnections | None = None


class AgentHost(ABC):
    """All agents of one process, which come and go while it runs."""

    def __init__(self, ports: HostPorts) -> None:
        self._bus, self._subjects, self._clock, self._directory, self._connections = ports
        self._tasks: asyncio.TaskGroup | None = None

    async def run(self) -> None:
        """Run all agents until cancelled."""
        async with asyncio.TaskGroup() as self._tasks:
            self._start_agents()

    async def stop(self) -> None:  # noqa: B027 - not every agent has something to release
        """Shut all agents down gracefully. `run` must have ended."""

    @abstractmethod
    def _start_agents(self) -> None:
        """Spawn the tasks of the agents that exist at the start."""

    def _own_connection(
        self, principal: Principal, directory: Path, certificate: CertificateSettings = DEFAULT_CERTIFICATE
    ) -> OwnConnection | None:
        """The connection of an agent with credentials of its own, None for the process's. Raises SettingsInvalid."""
        if self._connections is None:
            return None
        own = self._connections.own(principal, directory, certificate)
        if own is None:
            self._connections.need_shared()
        return own

    @property
    def _is_running(self) -> bool:
        return self._tasks is not None

    def _spawn(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        assert self._tasks is not None
        return self._tasks.create_task(work, name=name)


def connect(connection: OwnConnection | None) -> None:
    """Begin to connect an agent that has a connection of its own."""
    if connection is not None:
        connection.start()


def in_chunks(names: Sequence[str]) -> Iterator[Sequence[str]]:
    """Split the agents of a host by their followers."""
    return (names[start : start + AGENTS_A_FOLLOWER] for start in range(0, len(names), AGENTS_A_FOLLOWER))


def spawn_host(context: ServiceContext[Any], name: str, host: AgentHost) -> None:
    """Run a host as a task of the service; stopping cancels it, then shuts its agents down."""
    task = context.spawn(name, host.run())

    async def stop() -> None:
        task.cancel()
        await asyncio.wait((task,))  # unlike `await task` it takes no end of the drain for the task's
        await host.stop()

    context.on_stop(name, stop)
