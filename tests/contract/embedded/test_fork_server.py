"""A forked service is what a started one is; without a fork server it is started."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gardenbus.cli.local.directory import LandscapeDirectory
from gardenbus.embedded.forking import ForkedProcess, ForkServer
from gardenbus.embedded.process_specs import ProcessSpec
from gardenbus.embedded.processes import LANDSCAPE_VARIABLE, ManagedProcess, landscape_environ
from tests.support.eventually import eventually

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere services are started")

PROBE = """
import json, os, pathlib, sys
import prometheus_client
seen = {
    "pid": os.getpid(),
    "parent": os.getppid(),
    "session": os.getsid(0),
    "arguments": sys.argv[1:],
    "directory": os.getcwd(),
    "environ": dict(os.environ),
    "command": pathlib.Path("/proc/self/cmdline").read_text(),
    "name": pathlib.Path("/proc/self/comm").read_text(),
    "descriptors": sorted(os.readlink(f"/proc/self/fd/{fd}") for fd in (0, 1, 2)),
    "sockets": sum(os.readlink(entry).startswith("socket:") for entry in pathlib.Path("/proc/self/fd").iterdir()
                   if entry.exists()),
    "metrics": sorted(metric.name for metric in prometheus_client.REGISTRY.collect()),
    "main": __name__,
}
print(json.dumps(seen), flush=True)
if sys.argv[1:] == ["sleep"]:
    import time
    time.sleep(60)
sys.exit(7)
"""
COMMAND = [sys.executable, "-m", "probe", "--word", "two words", "ü"]
SLEEPING = [sys.executable, "-m", "probe", "sleep"]


@pytest.fixture
def directory(tmp_path: Path) -> LandscapeDirectory:
    (tmp_path / "probe.py").write_text(PROBE)
    directory = LandscapeDirectory(tmp_path)
    directory.prepare()
    return directory


@pytest.fixture
async def fork_server(directory: LandscapeDirectory) -> AsyncIterator[ForkServer]:
    server = ForkServer()
    await server.start(directory.path, landscape_environ(directory))
    yield server
    await server.close()


async def forked(server: ForkServer, command: list[str], log: Path, **environ: str) -> ForkedProcess:
    with log.open("ab") as file:
        process = await server.fork(command, {**os.environ, **environ}, log=file)
    assert process is not None
    return process


async def started(command: list[str], directory: Path, log: Path, **environ: str) -> asyncio.subprocess.Process:
    with log.open("ab") as file:
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            env={**os.environ, **environ},
            cwd=directory,
            start_new_session=True,
        )


async def test_a_forked_process_is_as_one_that_was_started(
    fork_server: ForkServer, directory: LandscapeDirectory
) -> None:
    first, second = directory.path / "first.log", directory.path / "second.log"
    fork = await forked(fork_server, COMMAND, first, OWN="yes")
    start = await started(COMMAND, directory.path, second, OWN="yes")

    assert await fork.wait() == await start.wait() == fork.returncode == 7
    seen = msgspec.json.decode(first.read_bytes(), type=dict[str, Any])
    expected = msgspec.json.decode(second.read_bytes(), type=dict[str, Any])
    assert seen.pop("command").rstrip("\0") == expected.pop("command").rstrip("\0")
    assert seen.pop("name") == "probe\n"
    assert expected.pop("name")
    assert seen.pop("pid") == seen.pop("session") == fork.pid
    assert expected.pop("pid") == expected.pop("session") == start.pid
    assert str(first) in str(seen.pop("descriptors"))
    assert str(second) in str(expected.pop("descriptors"))
    # Every service tells its version; nothing else may be counted of what the service itself does not import.
    assert seen.pop("metrics") == sorted([*expected.pop("metrics"), "gardenbus_build_info"])
    assert seen == expected


async def test_signals_end_it_and_it_outlives_the_fork_server(
    fork_server: ForkServer, directory: LandscapeDirectory
) -> None:
    log = directory.path / "probe.log"
    requested, killed = [await forked(fork_server, SLEEPING, log) for _ in range(2)]

    async def running() -> None:
        assert len(log.read_text().splitlines()) == 2

    await eventually(running)
    await fork_server.close()
    assert requested.returncode is None
    requested.terminate()
    killed.kill()
    assert [await requested.wait(), await killed.wait()] == [-signal.SIGTERM, -signal.SIGKILL]
    requested.kill()


async def test_what_ends_is_started_again_and_what_cannot_be_forked_is_started(directory: LandscapeDirectory) -> None:
    server = ForkServer()
    await server.start(directory.path, landscape_environ(directory))
    spec = ProcessSpec("probe", "probe", [sys.executable, "-m", "probe"], {"OWN": "yes"})
    process = ManagedProcess(spec, directory, notify=print, changed=lambda: None, fork_server=server)
    process.start()

    async def lived(times: int) -> None:
        lives = process.log_file.read_text().splitlines() if process.log_file.exists() else []
        assert len(lives) >= times
        for life in lives:
            environ = msgspec.json.decode(life)["environ"]
            assert (environ["OWN"], environ[LANDSCAPE_VARIABLE]) == ("yes", str(directory.path))

    await eventually(lambda: lived(2))
    assert process.last_exit == 7
    await server.close()
    await eventually(lambda: lived(3))
    await process.stop()
    assert process.restarts >= 2
