"""Commands of the backend `exec` by themselves, on both event loops: services run on uvloop, most tests do not."""

import asyncio
import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from gardenbus.gardenlet.backend.exec.command import CommandEnded, CommandLimits, run_command

NewLoop = Callable[[], asyncio.AbstractEventLoop]

on_both_loops = pytest.mark.parametrize(
    "new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)


async def run(text: str, timeout_seconds: float = 20.0) -> CommandEnded:
    limits = CommandLimits(timeout_seconds, kill_after_seconds=0.2)
    command, given = ["/bin/sh", "-c", text], b"x" * 1_000_000
    return await run_command(command, given, environment=os.environ, limits=limits, log_line=lambda _: None)


def open_pipes() -> set[str]:
    """Pipes and socket pairs of this process, by their names in /proc."""
    names: set[str] = set()
    for each in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            names.add(str(each.readlink()))
    return {name for name in names if name.startswith(("pipe:", "socket:"))}


@on_both_loops
def test_a_command_need_not_read_what_it_is_given(new_loop: NewLoop) -> None:
    with asyncio.Runner(loop_factory=new_loop) as runner:
        for _ in range(5):
            assert runner.run(run("echo {}")) == CommandEnded(0, b"{}\n", "")


@on_both_loops
def test_pipes_are_closed_when_a_command_has_ended_and_when_others_hold_them_open(new_loop: NewLoop) -> None:
    async def pipes_left_by(text: str) -> set[str]:
        before = open_pipes()
        try:
            await run(text, timeout_seconds=0.5)
        except TimeoutError:
            return open_pipes() - before
        return {"the command has ended by itself"}

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(run("true"))  # an event loop has pipes of its own from then on
        assert runner.run(pipes_left_by("setsid sleep 2 & exit 0")) == set()
        assert runner.run(pipes_left_by("setsid sleep 2 & trap '' TERM; sleep 2")) == set()
