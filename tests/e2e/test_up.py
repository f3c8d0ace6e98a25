"""`gardenbus up`, `down` and `status`, and the commands that speak to what is up."""

import asyncio
import itertools
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.builders import a_cloudprofile, a_gardenlet_configuration, a_project, a_shoot
from tests.support.commands import gardenbus_program
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.files import open_to_others
from tests.support.landscape_processes import processes_of
from tests.support.servers import Server

pytestmark = pytest.mark.slow


class Ended(NamedTuple):
    code: int
    stdout: str
    stderr: str


async def gardenbus(*arguments: str, within: float = HANG_SECONDS) -> Ended:
    process = await asyncio.create_subprocess_exec(
        str(gardenbus_program()),
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    stdout, stderr = await asyncio.wait_for(process.communicate(), within)
    assert process.returncode is not None
    return Ended(process.returncode, stdout.decode(), stderr.decode())


def described(directory: Path) -> dict[str, Any]:
    return json.loads((directory / "landscape.json").read_text())


def pid_of(directory: Path, name: str) -> int | None:
    return next(service["pid"] for service in described(directory)["services"] if service["name"] == name)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def a_landscape_file(directory: Path, *documents: dict[str, Any]) -> Path:
    file = directory / "landscape.yaml"
    standard = [a_gardenlet_configuration(), a_project(), a_cloudprofile()]
    file.write_text("\n---\n".join(json.dumps(document) for document in [*standard, *documents]))
    return file


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Path]:
    directory = tmp_path / "state"
    yield directory
    await gardenbus("down", "--dir", str(directory))


async def test_a_landscape_settles_and_goes_on_where_it_was(place: Path, tmp_path: Path):
    shoots = [a_shoot("apollo"), a_shoot("artemis"), a_shoot("icarus"), a_shoot("far", spec={"region": "moon-1"})]
    file = a_landscape_file(tmp_path, *shoots)

    first = await gardenbus("up", "--dir", str(place), "-f", str(file), "--exit-when-settled")

    assert first.code == 0, first
    assert "2 shoots without a seed" in first.stdout
    assert "garden-dev/far: " in first.stdout
    ports = described(place)["ports"]
    assert described(place)["state"] == "stopped"
    assert all(service["pid"] is None for service in described(place)["services"])

    again = await gardenbus("up", "--dir", str(place), "--detach")

    assert again.code == 0, again
    assert described(place)["ports"] == ports
    assert open_to_others(place) == []
    listed = json.loads((await gardenbus("get", "shoots", "--dir", str(place), "-o", "json")).stdout)["items"]
    seeds = {shoot["metadata"]["name"]: shoot["spec"].get("seedName") for shoot in listed}
    assert seeds["far"] is None
    assert sorted(map(str, seeds.values())) == ["None", "None", "seed-a", "seed-a"]


async def interrupted(directory: Path, *arguments: str, once: Callable[[], bool], with_signal: signal.Signals) -> Ended:
    """What comes of an `up` that is told to end as soon as something is so."""
    process = await asyncio.create_subprocess_exec(
        *[str(gardenbus_program()), "up", "--dir", str(directory), *arguments],
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )

    async def check() -> None:
        assert once()

    await eventually(check, every=0.005)
    process.send_signal(with_signal)
    stdout, stderr = await asyncio.wait_for(process.communicate(), HANG_SECONDS)
    assert process.returncode is not None
    return Ended(process.returncode, stdout.decode(), stderr.decode())


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for in /proc")
@pytest.mark.long
async def test_a_start_that_is_stopped_leaves_nothing_behind(place: Path, tmp_path: Path):
    file = a_landscape_file(tmp_path, a_shoot("apollo"))
    signals = itertools.cycle((signal.SIGINT, signal.SIGTERM))
    for processes in (1, 2, 7):
        once = lambda processes=processes: len(processes_of(place)) >= processes  # noqa: E731
        stopped = await interrupted(place, "-f", str(file), once=once, with_signal=next(signals))

        assert stopped.code == 0, stopped
        assert processes_of(place) == {}
        assert described(place)["state"] == "stopped"

    for with_signal in (signal.SIGINT, signal.SIGTERM):
        detaching = await interrupted(
            place, "-f", str(file), "--detach", once=lambda: len(processes_of(place)) > 3, with_signal=with_signal
        )
        assert detaching.code == 128 + with_signal, detaching
        assert processes_of(place) == {}

    whole = await gardenbus("up", "--dir", str(place), "--exit-when-settled")
    assert whole.code == 0, whole
    assert processes_of(place) == {}


@pytest.mark.long
async def test_what_dies_is_started_again_and_landscape_json_says_so(place: Path, tmp_path: Path):
    up = await gardenbus(
        "up", "--dir", str(place), "-f", str(a_landscape_file(tmp_path)), "--detach", "--replicas", "scheduler=2"
    )
    assert up.code == 0, up
    names = [service["name"] for service in described(place)["services"]]
    assert names == [
        "nats",
        "redis",
        "relay",
        "identity",
        "apiserver",
        "scheduler-1",
        "scheduler-2",
        "lifecycle",
        "controllermanager",
        "managedseedset",
        "autoscaler",
        "placement",
        "gardenlet",
        "dashboard",
        "kubeapi",
    ]

    async def healthy() -> None:
        status = await gardenbus("status", "--dir", str(place), "-o", "json")
        assert status.code == 0, status
        assert {service["state"] for service in json.loads(status.stdout)["services"]} == {"ready"}

    await eventually(healthy, every=0.5)
    for name in ("scheduler-2", "nats", "redis"):
        victim = pid_of(place, name)
        assert victim is not None
        os.kill(victim, signal.SIGKILL)

        async def has_another(name: str = name, victim: int = victim) -> None:
            pid = pid_of(place, name)
            assert pid is not None
            assert pid != victim
            assert is_alive(pid)

        await eventually(has_another)

    await eventually(healthy, every=0.5)
    assert "scheduler-2 was killed by SIGKILL, starting it again" in (place / "logs/up.log").read_text()

    pids = [service["pid"] for service in described(place)["services"]]
    down = await gardenbus("down", "--dir", str(place))
    assert down.code == 0, down
    assert not any(map(is_alive, pids))
    assert (await gardenbus("status", "--dir", str(place))).code == 3


async def test_one_directory_has_one_supervisor_and_two_landscapes_do_not_disturb_each_other(
    host: Path, place: Path, tmp_path: Path
):
    file = str(a_landscape_file(tmp_path, a_shoot("neighbour")))
    assert (await gardenbus("up", "--dir", str(place), "--detach", "-f", file)).code == 0
    assert " manifests: " in (place / "logs/up.log").read_text(), "whoever waited for it finds what was in the files"

    second = await gardenbus("up", "--dir", str(place))
    assert second.code == 1
    assert "in use by another" in second.stderr

    assert not set(described(place)["ports"].values()) & set(described(host)["ports"].values())
    assert "neighbour" in (await gardenbus("get", "shoots", "--dir", str(place))).stdout
    assert "neighbour" not in (await gardenbus("get", "shoots", "--dir", str(host))).stdout


async def test_what_a_killed_supervisor_leaves_behind_is_ended_by_the_next_up(place: Path):
    assert (await gardenbus("up", "--dir", str(place), "--detach")).code == 0
    before = described(place)
    pids = [service["pid"] for service in before["services"]]
    os.kill(before["supervisor_pid"], signal.SIGKILL)

    again = await gardenbus("up", "--dir", str(place), "--detach")

    assert again.code == 0, again
    assert not any(map(is_alive, pids))
    assert described(place)["ports"] == before["ports"]


async def test_running_servers_are_used_under_a_prefix_of_their_own(
    shared_nats_server: Server, shared_redis_server: Server, host: Path, place: Path, tmp_path: Path
):
    file = str(a_landscape_file(tmp_path, a_shoot("visitor")))

    up = await gardenbus(
        "up", "--dir", str(place), "--detach", "--prefix", "guest", "-f", file,
        "--nats-url", shared_nats_server.url, "--redis-url", shared_redis_server.url,
    )  # fmt: skip

    assert up.code == 0, up
    assert [service["pid"] for service in described(place)["services"][:2]] == [None, None]
    assert described(place)["prefix"] == "guest"
    assert (
        "shoot.core.gardener.cloud/visitor"
        in (await gardenbus("get", "shoots", "--dir", str(place), "-o", "name")).stdout
    )
    assert "visitor" not in (await gardenbus("get", "shoots", "--dir", str(host))).stdout


async def test_ctrl_c_stops_everything(place: Path):
    process = await asyncio.create_subprocess_exec(
        str(gardenbus_program()),
        "up",
        "--dir",
        str(place),
        stdout=asyncio.subprocess.DEVNULL,
        stdin=asyncio.subprocess.DEVNULL,
    )

    async def ready() -> None:
        assert (place / "landscape.json").exists()
        assert described(place)["state"] == "ready"

    await eventually(ready)
    pids = [service["pid"] for service in described(place)["services"]]

    process.send_signal(signal.SIGINT)

    assert await asyncio.wait_for(process.wait(), HANG_SECONDS) == 0
    assert not any(map(is_alive, pids))


async def test_the_commands_do_what_they_say(host: Path, tmp_path: Path):
    at = ("--dir", str(host))
    shoots = tmp_path / "shoots.json"
    shoots.write_text(json.dumps({"kind": "List", "items": [a_shoot("apollo"), a_shoot("far", spec={"region": "x"})]}))

    applied = await gardenbus("apply", "-f", str(shoots), *at)
    assert applied.code == 0, applied
    assert applied.stdout.splitlines() == ["Shoot garden-dev/apollo created", "Shoot garden-dev/far created"]
    repeated = await gardenbus("apply", "-f", str(shoots), *at)
    assert "unchanged" in repeated.stdout

    async def placed() -> None:
        wide = await gardenbus("get", "shoot", "apollo", *at, "-o", "wide")
        assert "seed-a" in wide.stdout
        assert "100%" in wide.stdout

    await eventually(placed, every=0.5)
    assert (await gardenbus("get", "shoot/apollo", *at, "-o", "name")).stdout == "shoot.core.gardener.cloud/apollo\n"
    assert "seedName: seed-a" in (await gardenbus("get", "shoot", "apollo", *at, "-o", "yaml")).stdout
    assert "1/2" in (await gardenbus("get", "seeds", *at)).stdout
    assert "SchedulingSuccessful" in (await gardenbus("describe", "shoot", "apollo", *at)).stdout
    assert "SchedulingFailed" in (await gardenbus("events", "shoot", "far", *at)).stdout
    explained = await gardenbus("explain", "garden-dev/far", *at, "-o", "json")
    assert "seed-a" in {each["seed"] for each in json.loads(explained.stdout)["considered"]["rejections"]}
    assert "1/2" in (await gardenbus("top", *at)).stdout

    rejected = await gardenbus("delete", "shoot", "apollo", "-n", "garden-dev", *at)
    assert rejected.code == 1
    assert "confirmation" in rejected.stderr
    assert (await gardenbus("delete", "shoot", "apollo", "-n", "garden-dev", "--confirm", *at)).code == 0

    async def gone() -> None:
        missing = await gardenbus("get", "shoot", "apollo", "-n", "garden-dev", *at)
        assert missing.code == 1, missing
        assert "NotFound" in missing.stderr

    await eventually(gone, every=0.5)


async def test_a_bus_that_is_away_ends_with_3():
    ended = await gardenbus("get", "shoots", "--nats-url", "nats://127.0.0.1:1")

    assert ended.code == 3
    assert "nats://127.0.0.1:1" in ended.stderr
