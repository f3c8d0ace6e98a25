"""What publishers see while NATS cannot write, and what `doctor` says of it and of Redis."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from gardenbus.cli.client.targets import LandscapeTarget
from gardenbus.cli.commands.doctor import examined
from gardenbus.common.adapters.nats import publisher, write_breaker
from gardenbus.common.adapters.nats.jetstream import JetStreamBus
from gardenbus.common.adapters.redis.connection import RedisConnection
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.bus import Message, ServiceIdentity
from gardenbus.relay.adapters.redis_stats import store_stats
from tests.support.buses import BusUnderTest, on_jetstream
from tests.support.disks import SmallDisk, small_disk
from tests.support.eventually import eventually
from tests.support.servers import Server, start_nats, start_redis


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", megabytes=24) as mounted:
        yield mounted


@pytest.fixture
def nats(disk: SmallDisk) -> Iterator[Server]:
    server = start_nats(disk.path / "nats")
    yield server
    server.stop()


@pytest.fixture
def redis(disk: SmallDisk) -> Iterator[Server]:
    server = start_redis(disk.path / "redis", appendfsync="no")
    yield server
    server.stop()


@pytest.fixture
async def bus(nats: Server, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[BusUnderTest]:
    monkeypatch.setattr(publisher, "PUBLISH_TIMEOUT_SECONDS", 1.0)
    bus = await on_jetstream(nats.url)
    yield bus
    await bus.stack.aclose()


async def fill(bus: BusUnderTest, disk: SmallDisk) -> tuple[int, Unavailable]:
    """Publish until it is refused; returns how many were acknowledged, and the refusal."""
    disk.fill(leave=100_000)
    for number in range(1000):
        try:
            await bus.bus.publish(Message(bus.work(f"job-{number}"), b"x" * 10_000))
        except Unavailable as error:
            return number, error
    raise AssertionError("the disk did not fill")


async def test_what_nats_cannot_write_is_refused_at_once_with_the_reason_until_it_was_restarted(
    bus: BusUnderTest, disk: SmallDisk, nats: Server
) -> None:
    acknowledged, rejection = await fill(bus, disk)
    assert "cannot write QUEUES: its disk is full, or was" in rejection.message
    probe = asyncio.create_task(bus.bus.publish(Message(bus.work("probe"), b"")))
    await asyncio.sleep(0)
    rejected = await asyncio.gather(
        *(bus.bus.publish(Message(bus.work(f"more-{number}"), b"")) for number in range(50)), return_exceptions=True
    )
    assert all("cannot write" in str(each) for each in rejected), rejected[:3]
    with pytest.raises(Unavailable):
        await probe
    disk.free()
    with pytest.raises(Unavailable, match="cannot write"):
        await bus.bus.publish(Message(bus.work("freed"), b""))
    await asyncio.to_thread(nats.restart)

    async def stored() -> None:
        try:
            await bus.bus.publish(Message(bus.work("restarted"), b""))
        except Unavailable as error:
            raise AssertionError(error.message) from error

    await eventually(stored)
    assert len(await bus.bus.subjects(bus.stream("QUEUES"), ">")) >= acknowledged + 1


async def test_a_server_that_hangs_is_not_taken_for_one_that_cannot_write(bus: BusUnderTest, nats: Server) -> None:
    nats.pause()
    try:
        with pytest.raises(Unavailable) as rejected:
            await bus.bus.publish(Message(bus.work("waits"), b""))
    finally:
        nats.resume()
    assert "cannot write" not in rejected.value.message


async def test_doctor_and_statistics_name_nats_that_cannot_write(
    bus: BusUnderTest, disk: SmallDisk, nats: Server
) -> None:
    await bus.bus.register(ServiceIdentity("relay", "1.0.0"))
    assert isinstance(bus.bus, JetStreamBus)
    assert not (await bus.bus.stats()).cannot_write
    await fill(bus, disk)
    assert (await bus.bus.stats()).cannot_write
    found = {each.check: each for each in await examined(LandscapeTarget(nats.url, bus.subjects.prefix), None)}
    assert found["nats writes"].state == "failed"
    assert "QUEUES" in found["nats writes"].found
    assert "restart nats-server" in found["nats writes"].suggestion


async def test_doctor_and_statistics_name_redis_that_cannot_write(
    disk: SmallDisk, redis: Server, shared_nats_server: Server
) -> None:
    connection = RedisConnection(redis.url)
    await connection.ensure_library()
    assert not (await store_stats(connection)).cannot_write
    disk.fill()
    await connection.command("SET", "first", b"x" * 100_000)  # Redis has carried it out before it fails to write it
    with pytest.raises(Unavailable, match="MISCONF"):
        await connection.command("SET", "second", b"x")
    assert (await store_stats(connection)).cannot_write
    found = {each.check: each for each in await examined(LandscapeTarget(shared_nats_server.url, "none"), redis.url)}
    assert found["redis persistence"].state == "failed"
    assert str(disk.path / "redis") in found["redis persistence"].suggestion
    disk.free()

    async def writes_again() -> None:
        try:
            await connection.command("SET", "key", b"x")
        except Unavailable as error:
            raise AssertionError(error.message) from error

    await eventually(writes_again)
    await connection.close()


async def test_what_is_found_of_a_stream_is_forgotten_where_nobody_publishes_any_more(
    bus: BusUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_breaker, "FORGOTTEN_AFTER_SECONDS", 0.5)
    stream = bus.stream("QUEUES")
    response = json.loads(await bus.bus.request(f"$JS.API.STREAM.INFO.{stream}", b""))
    silent = json.dumps({**response["config"], "no_ack": True}).encode()
    await bus.bus.request(f"$JS.API.STREAM.UPDATE.{stream}", silent)
    with pytest.raises(Unavailable, match="cannot write QUEUES"):
        await bus.bus.publish(Message(bus.work("unanswered"), b""))
    assert isinstance(bus.bus, JetStreamBus)
    jetstream = bus.bus
    assert (await jetstream.stats()).cannot_write

    async def forgotten() -> None:
        assert not (await jetstream.stats()).cannot_write

    await eventually(forgotten)
