"""A start that is cancelled while a service is forked leaves no process behind."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gardenbus.cli.local.directory import LandscapeDirectory
from gardenbus.embedded import forking
from gardenbus.embedded.forking import ForkServer
from gardenbus.embedded.processes import landscape_environ
from tests.support.cancelling import assert_cancellable, closed_sockets, sockets
from tests.support.eventually import eventually
from tests.support.landscape_processes import processes_of, zombies

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere services are started")

SLEEPING = [sys.executable, "-m", "sleeper"]


@pytest.fixture
def directory(tmp_path: Path) -> LandscapeDirectory:
    (tmp_path / "sleeper.py").write_text("import time\ntime.sleep(60)\n")
    directory = LandscapeDirectory(tmp_path)
    directory.prepare()
    return directory


async def nothing_is_left(directory: LandscapeDirectory, zombies_before: set[int]) -> None:
    async def check() -> None:
        assert processes_of(directory.path) == {}
        assert zombies() <= zombies_before

    await eventually(check)


@pytest.fixture
async def marked(directory: LandscapeDirectory) -> AsyncIterator[LandscapeDirectory]:
    yield directory
    for pid in processes_of(directory.path):
        os.kill(pid, signal.SIGKILL)


async def test_a_fork_that_is_cancelled(marked: LandscapeDirectory) -> None:
    before, zombies_before = sockets(), zombies()

    async def start_and_fork() -> None:
        server = ForkServer()
        try:
            await server.start(marked.path, landscape_environ(marked))
            with (marked.path / "log").open("ab") as log:
                forked = await server.fork(SLEEPING, landscape_environ(marked), log=log)
            if forked is not None:
                forked.kill()
                await forked.wait()
        finally:
            await server.close()

    assert await assert_cancellable(start_and_fork) > 2
    await nothing_is_left(marked, zombies_before)
    await closed_sockets(before)


async def test_a_fork_that_nobody_waits_for_long_enough_is_waited_for_all_the_same(
    marked: LandscapeDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forking, "GIVE_UP_SECONDS", 0.0)
    before, zombies_before = sockets(), zombies()
    server = ForkServer()
    await server.start(marked.path, landscape_environ(marked))
    with (marked.path / "log").open("ab") as log:
        fork = asyncio.create_task(server.fork(SLEEPING, landscape_environ(marked), log=log))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        fork.cancel()
        await asyncio.gather(fork, return_exceptions=True)
    await server.close()

    await nothing_is_left(marked, zombies_before)
    await closed_sockets(before)
