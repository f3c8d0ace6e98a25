"""One server of a NATS cluster whose disk fills and is freed: the others go on, and it is started anew."""

import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.aio.client import Client
from nats.js.errors import NoStreamResponseError

from gardenbus.cli.local.directory import LandscapeDirectory
from gardenbus.embedded.clusters import cluster_plan, cluster_servers
from gardenbus.embedded.durability import Durability
from gardenbus.embedded.processes import ManagedProcess
from gardenbus.embedded.redis_users import redis_users
from gardenbus.embedded.servers import NATS, REDIS, find_server
from tests.support.disks import SmallDisk, small_disk
from tests.support.eventually import HANG_SECONDS, eventually

NAMES = ("nats-1", "nats-2", "nats-3")
BODY = b"x" * 50_000


@pytest.fixture
def place(tmp_path: Path) -> LandscapeDirectory:
    directory = LandscapeDirectory(tmp_path / "landscape")
    directory.prepare()
    return directory


@pytest.fixture
def disk(place: LandscapeDirectory) -> Iterator[SmallDisk]:
    with small_disk(place.nats / "nats-1", megabytes=24) as mounted:
        yield mounted


class SupervisedCluster:
    """Three servers of NATS, each under a supervisor."""

    def __init__(self, place: LandscapeDirectory) -> None:
        self.reported: list[str] = []
        plan = cluster_plan(place, Durability.PROCESS, {}, set())
        servers = cluster_servers(
            plan,
            nats=find_server(NATS),
            redis=find_server(REDIS),
            authorization="",
            users=redis_users(place, "garden"),
        )
        self.urls = [f"nats://127.0.0.1:{plan.ports[name]}" for name in NAMES]
        self.processes = {
            spec.name: ManagedProcess(spec, place, notify=self.reported.append, changed=lambda: None)
            for spec in servers.specs
            if spec.name in NAMES
        }

    async def until_ready(self) -> None:
        async def ready() -> None:
            states = {name: (process.state, process.trouble) for name, process in self.processes.items()}
            assert all(state == "ready" for state, _ in states.values()), (states, self.reported)

        await eventually(ready)


@pytest.fixture
async def cluster(place: LandscapeDirectory, disk: SmallDisk) -> AsyncIterator[SupervisedCluster]:
    del disk  # it is there before the server is
    supervised = SupervisedCluster(place)
    for process in supervised.processes.values():
        process.start()
    await supervised.until_ready()
    yield supervised
    for process in supervised.processes.values():
        await process.stop()


@pytest.fixture
async def client(cluster: SupervisedCluster) -> AsyncIterator[Client]:
    connected = await nats.connect(cluster.urls[1:])  # pyright: ignore[reportUnknownMemberType]
    yield connected
    await connected.close()


async def stream(client: Client) -> dict[str, Any]:
    response = await client.request("$JS.API.STREAM.INFO.JOBS", b"", timeout=HANG_SECONDS)
    return json.loads(response.data)


async def until_copied(client: Client, *, least: int) -> None:
    async def copied() -> None:
        info = await stream(client)
        assert info["state"]["messages"] >= least
        replicas = info["cluster"]["replicas"]
        assert len(replicas) == 2
        assert all(each["current"] and not each.get("offline") for each in replicas), replicas

    await eventually(copied, every=0.2)


@pytest.mark.parametrize(
    "leave",
    [pytest.param(200_000, id="a stream has a write error"), pytest.param(0, id="JetStream is ended")],
)
async def test_a_server_that_cannot_write_is_started_anew_when_its_disk_has_room_again(
    cluster: SupervisedCluster, client: Client, disk: SmallDisk, leave: int
) -> None:
    jetstream = client.jetstream()  # pyright: ignore[reportUnknownMemberType]
    await jetstream.add_stream(name="JOBS", subjects=["jobs"], num_replicas=3)  # pyright: ignore[reportUnknownMemberType]
    filled, acknowledged = cluster.processes["nats-1"], 0
    disk.fill(leave=leave)

    async def is_noticed() -> None:
        nonlocal acknowledged
        with contextlib.suppress(TimeoutError, NoStreamResponseError):  # the one whose disk is full leads, or nobody
            await jetstream.publish("jobs", BODY, timeout=1)
            acknowledged += 1
        assert "is full; make room" in str(filled.entry().note), (filled.entry(), filled.trouble)

    await eventually(is_noticed, every=0.01)
    assert filled.restarts == 0
    disk.free()

    async def is_started_anew() -> None:
        assert filled.restarts == 1
        assert filled.state == "ready", filled.trouble

    await eventually(is_started_anew)
    await jetstream.publish("jobs", BODY)
    await until_copied(client, least=acknowledged + 1)
    assert [process.restarts for process in cluster.processes.values()] == [1, 0, 0]
    announced = " | ".join(cluster.reported)
    assert "has room again: it is restarted" in announced
    assert "nats-1 can write again" in announced
