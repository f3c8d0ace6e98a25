"""A host that is stopped: its agents' tasks end first, and the drain's own end is not taken for theirs."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

from gardenbus.agent.host import AgentHost, HostPorts, spawn_host
from gardenbus.common.api.keys import Subjects
from tests.support.cancelling import assert_cancellable
from tests.support.manual_clock import ManualClock
from tests.support.memory.bus import MemoryBus


class Stopped(AgentHost):
    """A host with one agent, whose end takes a moment."""

    def __init__(self) -> None:
        clock = ManualClock()
        super().__init__(HostPorts(MemoryBus(clock), Subjects(), clock, Path()))
        self.is_stopped = False

    def _start_agents(self) -> None:
        self._spawn("agent", self._work())

    async def _work(self) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)

    async def stop(self) -> None:
        self.is_stopped = True


class Context:
    """The part of a service's context that a host needs."""

    def __init__(self) -> None:
        self.drains: list[Callable[[], Awaitable[None]]] = []

    def spawn(self, name: str, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        return asyncio.create_task(work, name=name)

    def on_stop(self, _name: str, drain: Callable[[], Awaitable[None]]) -> None:
        self.drains.append(drain)


async def test_a_drain_whose_time_is_over_ends() -> None:
    async def drained() -> None:
        context, host = Context(), Stopped()
        spawn_host(context, "agents", host)  # pyright: ignore[reportArgumentType]
        await context.drains[0]()
        assert host.is_stopped

    assert await assert_cancellable(drained) > 0


async def test_agents_that_crashed_are_shut_down_too() -> None:
    context, host = Context(), Stopped()
    host._start_agents = lambda: 1 / 0  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]
    spawn_host(context, "agents", host)  # pyright: ignore[reportArgumentType]
    await asyncio.sleep(0)
    await context.drains[0]()
    assert host.is_stopped
