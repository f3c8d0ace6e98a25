"""What goes wrong on the way to a landscape is said in a line, with the exit code for it."""

import asyncio
import os
import socket
from pathlib import Path

import pytest
from nats.errors import Error as NatsError
from typer.testing import CliRunner

from gardenbus.cli.local.directory import LandscapeDirectory, LandscapeFile, LandscapeInUse, directory_option
from gardenbus.cli.main import app
from gardenbus.cli.manifests.files import SortedManifests
from gardenbus.common.adapters.nats import jetstream
from gardenbus.common.errors import Unavailable
from gardenbus.embedded.external import probe_servers
from gardenbus.embedded.landscape import EmbeddedLandscape, UpOptions
from tests.support.eventually import HANG_SECONDS

runner = CliRunner()
NOTHING_GIVEN = SortedManifests(schedulers=(), controller_manager=None, gardenlets=(), manifests=())


@pytest.mark.parametrize("url", ["garbage::", "nats://", "nats://h:x", "http://h:1", "nats://a:1,b:y"])
@pytest.mark.parametrize("command", [["get", "shoots"], ["up"]])
def test_what_is_no_address_is_a_usage_error(tmp_path: Path, command: list[str], url: str):
    result = runner.invoke(app, [*command, "--dir", str(tmp_path / "state"), "--nats-url", url])

    assert result.exit_code == 2
    assert "is no NATS address: write nats://host:port" in result.stderr
    assert not (tmp_path / "state").exists()


def test_what_is_no_address_of_redis_is_a_usage_error(tmp_path: Path):
    result = runner.invoke(app, ["up", "--dir", str(tmp_path), "--redis-url", "redis://h:x"])

    assert result.exit_code == 2
    assert "is no Redis address" in result.stderr


def test_a_landscape_that_is_stopped_is_told_from_none(tmp_path: Path):
    LandscapeDirectory(tmp_path).write(LandscapeFile(nats_url="nats://h:1", redis_url="", state="stopped"))

    result = runner.invoke(app, ["get", "shoots", "--dir", str(tmp_path)])

    assert result.exit_code == 3
    assert result.stderr.startswith(f"gardenbus: landscape {tmp_path} is stopped: `gardenbus up --dir {tmp_path}`")


def test_down_without_a_landscape_is_an_error(tmp_path: Path):
    result = runner.invoke(app, ["down", "--dir", str(tmp_path / "typo")])

    assert result.exit_code == 1
    assert result.stderr == f"gardenbus: no landscape in {tmp_path / 'typo'}: there was nothing to stop\n"
    assert not (tmp_path / "typo").exists()


def test_down_of_a_stopped_landscape_is_none(tmp_path: Path):
    LandscapeDirectory(tmp_path).write(LandscapeFile(nats_url="nats://h:1", redis_url="", state="stopped"))

    assert runner.invoke(app, ["down", "--dir", str(tmp_path)]).exit_code == 0


def test_a_landscape_that_was_never_up_is_none(tmp_path: Path):
    LandscapeDirectory(tmp_path).write(LandscapeFile(nats_url="", redis_url=""))

    result = runner.invoke(app, ["get", "shoots", "--dir", str(tmp_path)])

    assert result.exit_code == 3
    assert result.stderr.startswith(f"gardenbus: no landscape in {tmp_path}: ")
    assert f"gardenbus up --dir {tmp_path}" in result.stderr


async def test_the_bus_tells_of_a_bad_address_and_not_of_its_own_closing():
    with pytest.raises(NatsError, match="invalid connect url"):
        async with jetstream.connect("nats://garbage:x", "test"):
            pass


@pytest.mark.parametrize("arguments", [[], ["--detach"]])
def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path, arguments: list[str]):
    (tmp_path / "file").write_text("")
    place = tmp_path / "file" / "state"

    result = runner.invoke(app, ["up", "--dir", str(place), *arguments])

    assert result.exit_code == 1
    assert f"gardenbus: cannot write {place}: Not a directory" in result.output.replace("\n", "")


async def test_a_start_that_failed_keeps_the_ports_of_last_time_and_says_that_nothing_is_up(tmp_path: Path):
    directory = LandscapeDirectory(tmp_path)
    directory.write(LandscapeFile(nats_url="nats://h:1", redis_url="redis://h:2", state="ready", ports={"nats": 1}))
    landscape = EmbeddedLandscape(UpOptions(tmp_path, NOTHING_GIVEN, {}, nats_url="nats://127.0.0.1:1"), notify=print)

    with pytest.raises(Unavailable, match=r"no NATS at nats://127\.0\.0\.1:1"):
        await landscape.start(os.getpid())
    await landscape.stop()

    left = directory.read()
    assert left is not None
    assert (left.state, left.ports, left.supervisor_pid) == ("stopped", {"nats": 1}, None)


async def test_stopping_goes_on_where_nothing_can_be_written(tmp_path: Path):
    reported: list[str] = []
    options = UpOptions(tmp_path / "state", NOTHING_GIVEN, {})
    landscape = EmbeddedLandscape(options, notify=reported.append)
    starting = asyncio.create_task(landscape.start(os.getpid()))
    async with asyncio.timeout(HANG_SECONDS):
        while not any(process.pid for process in landscape.processes):
            await asyncio.sleep(0.02)
    starting.cancel()
    await asyncio.wait({starting})
    (tmp_path / "state").rename(tmp_path / "away")
    (tmp_path / "state").write_text("in the way")

    await landscape.stop()

    assert all(process.pid is None for process in landscape.processes)
    assert any("cannot write" in each for each in reported)


async def test_servers_that_are_not_there_are_named_at_once():
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        with pytest.raises(Unavailable, match=r"no Redis at redis://127\.0\.0\.1:1/0: Connection refused"):
            await probe_servers(None, "redis://me:secret@127.0.0.1:1/0")
        with pytest.raises(Unavailable, match=r"no NATS at nats://127.*: no response within"):
            await probe_servers(f"nats://127.0.0.1:{mute.getsockname()[1]}", None)


def test_hints_name_the_directory_unless_it_is_the_default(tmp_path: Path):
    assert directory_option(Path(".gardenbus")) == ""
    assert directory_option(tmp_path / "a b") == f" --dir '{tmp_path / 'a b'}'"
    assert str(LandscapeInUse(tmp_path, 7)).endswith(f"gardenbus down --dir {tmp_path}")


def test_a_start_in_the_background_that_failed_says_why_and_nothing_else(tmp_path: Path):
    result = runner.invoke(app, ["up", "--dir", str(tmp_path / "d"), "--nats-url", "nats://127.0.0.1:1", "--detach"])

    assert result.exit_code == 3
    assert result.stderr.startswith("gardenbus: no NATS at nats://127.0.0.1:1: port 1 refuses connections: ")
    assert len(result.stderr.splitlines()) == 1
