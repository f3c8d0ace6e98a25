"""Nothing acknowledged is lost when the disk of Redis is full and Redis is killed, whatever syncs its file."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Unavailable
from tests.support.builders import a_project, merged
from tests.support.disks import SmallDisk, small_disk
from tests.support.eventually import eventually
from tests.support.servers import Server, start_redis
from tests.support.stores import StoreUnderTest, on_redis


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", megabytes=16) as mounted:
        yield mounted


@pytest.fixture(params=["no", "always"])
def redis(request: pytest.FixtureRequest, disk: SmallDisk) -> Iterator[Server]:
    server = start_redis(disk.path / "redis", appendfsync=request.param)
    yield server
    server.stop()


async def write_until_rejected(kit: StoreUnderTest, writer: int, acknowledged: dict[ObjectKey, StoredObject]) -> None:
    for number in range(10_000):
        try:
            project = await kit.created(merged(a_project(f"p{writer}-{number}"), {"spec": {"x": "y" * 2000}}))
        except Unavailable:
            return
        acknowledged[project.key] = project


async def test_what_was_acknowledged_while_the_disk_filled_survives_a_kill(redis: Server, disk: SmallDisk) -> None:
    kit = on_redis(redis.url)
    await kit.open()
    disk.fill(leave=1_000_000)
    acknowledged: dict[ObjectKey, StoredObject] = {}
    await asyncio.gather(*(write_until_rejected(kit, writer, acknowledged) for writer in range(60)))
    assert len(acknowledged) > 60
    await asyncio.to_thread(redis.kill)
    disk.free()
    await asyncio.to_thread(redis.start)

    async def opened() -> None:
        try:
            await kit.open()
        except Unavailable as error:
            raise AssertionError(error.message) from error

    await eventually(opened)
    found = await kit.store.get_many(sorted(acknowledged))
    lost = [key for key, project in zip(sorted(acknowledged), found, strict=True) if project is None]
    assert not lost, f"{len(lost)} of {len(acknowledged)} acknowledged writes are lost"
    await kit.store.close()
