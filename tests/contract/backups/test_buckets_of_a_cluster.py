"""Backups in an object store of a NATS cluster: its copies, and the death of the server that leads it."""

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.js import JetStreamContext

from gardenbus.common.backups.destinations import destination_of
from tests.support.commands import gardenbus_program
from tests.support.eventually import eventually
from tests.support.landscape import ended
from tests.support.nats_cluster import NatsCluster, start_nats_cluster

LARGE = 40_000_000


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsCluster]:
    with ExitStack() as stack:
        yield start_nats_cluster(stack, tmp_path_factory.mktemp("nats"))


@contextlib.asynccontextmanager
async def jetstream(cluster: NatsCluster) -> AsyncGenerator[JetStreamContext]:
    client = await nats.connect(cluster.url.split(","))  # pyright: ignore[reportUnknownMemberType]
    try:
        yield client.jetstream()  # pyright: ignore[reportUnknownMemberType]
    finally:
        await client.close()


async def copies_of(cluster: NatsCluster, bucket: str) -> int | None:
    async with jetstream(cluster) as stream:
        return (await stream.stream_info(f"OBJ_{bucket}")).config.num_replicas


def a_file(directory: Path, size: int = 1) -> Path:
    path = directory / "source"
    path.write_bytes(os.urandom(size))
    return path


@pytest.mark.parametrize(("copies", "found"), [(None, 3), (0, 3), (3, 3), (1, 1)])
async def test_a_new_bucket_has_the_copies_of_streams(
    cluster: NatsCluster, copies: int | None, found: int, tmp_path: Path
) -> None:
    place = destination_of(f"{cluster.url}/copies-{copies}", copies)
    await place.put("a", a_file(tmp_path))
    await place.close()
    assert await copies_of(cluster, f"copies-{copies}") == found


async def test_a_bucket_that_exists_gets_the_copies_that_are_set_and_keeps_its_own_otherwise(
    cluster: NatsCluster, tmp_path: Path
) -> None:
    for copies, found in ((1, 1), (None, 1), (3, 3)):
        place = destination_of(f"{cluster.url}/older", copies)
        await place.put("a", a_file(tmp_path))
        await place.close()
        assert await copies_of(cluster, "older") == found


async def test_a_backup_is_whole_though_the_leader_dies_while_it_is_written(
    cluster: NatsCluster, tmp_path: Path
) -> None:
    hosts = cluster.url.replace("nats://", "")
    address = f"nats://{hosts}/written"
    place, file = destination_of(address), a_file(tmp_path, LARGE)
    assert place.place == address
    await place.put("first", tmp_path / "source")
    writing = asyncio.create_task(place.put("second", file))

    async def is_under_way() -> None:
        async with jetstream(cluster) as stream:
            state: Any = (await stream.stream_info("OBJ_written")).state
        assert state.bytes > LARGE * 1.2

    await eventually(is_under_way, every=0.02)
    assert not writing.done()
    leader = await asyncio.to_thread(cluster.leader_of, "OBJ_written")
    leader.kill()
    try:
        await writing
        assert [(each.name, each.size) for each in await place.list()] == [("first", LARGE), ("second", LARGE)]
        (tmp_path / "fetched").mkdir()
        fetched = await place.fetch("second", tmp_path / "fetched")
        assert fetched.read_bytes() == file.read_bytes()
        ls = await asyncio.create_subprocess_exec(
            *(str(gardenbus_program()), "backup", "ls", "-d", address),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert (await ended(ls)).code == 0
    finally:
        await place.close()
        leader.start()
