"""Limits of bytes: what is beyond them is rejected, what a stream holds stays, and a small server has a part."""

from pathlib import Path

import pytest

from gardenbus.common.adapters.nats import jetstream, streams
from gardenbus.common.errors import TooManyRequests
from gardenbus.common.ports.bus import Message
from tests.contract.bus.test_streams import change, configuration
from tests.support.buses import BusUnderTest
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.servers import start_nats

SIZE = 64 * 1024
LIMIT = 4 * SIZE
REPORTS = "report.aws.shoot.garden-dev"


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in streams.MAX_BYTES:
        monkeypatch.setitem(streams.MAX_BYTES, name, LIMIT)  # pyright: ignore[reportArgumentType]


def report(jetstream: BusUnderTest, number: int) -> Message:
    return Message(f"{jetstream.subjects.prefix}.{REPORTS}.z{number}", bytes(SIZE))


async def test_a_report_beyond_the_limit_is_rejected_and_none_is_dropped(jetstream: BusUnderTest) -> None:
    await jetstream.bus.ensure_streams()
    for number in range(3):
        await jetstream.bus.publish(report(jetstream, number))
    with pytest.raises(TooManyRequests, match="REPORTS holds as many bytes as it may: send this again later"):
        await jetstream.bus.publish(report(jetstream, 3))
    queue = await jetstream.bus.work_queue(jetstream.stream("REPORTS"), "apiserver", ">")
    taken = await queue.fetch(10, HANG_SECONDS)
    assert [each.message.subject[-2:] for each in taken] == ["z0", "z1", "z2"]
    await queue.ack_many(taken)

    async def has_room() -> None:
        try:
            await jetstream.bus.publish(report(jetstream, 4))
        except TooManyRequests as error:
            raise AssertionError from error

    await eventually(has_room)


async def test_a_stream_that_holds_more_loses_nothing_and_gets_the_limit_when_it_holds_less(
    jetstream: BusUnderTest,
) -> None:
    await change(jetstream, "REPORTS", max_bytes=-1, discard="old")
    for number in range(6):
        await jetstream.bus.publish(report(jetstream, number))
    await jetstream.bus.ensure_streams()
    assert (await configuration(jetstream, "REPORTS"))["max_bytes"] == -1
    queue = await jetstream.bus.work_queue(jetstream.stream("REPORTS"), "apiserver", ">")
    taken = await queue.fetch(10, HANG_SECONDS)
    assert len(taken) == 6
    await queue.ack_many(taken)

    async def limited() -> None:
        await jetstream.bus.ensure_streams()
        found = await configuration(jetstream, "REPORTS")
        assert (found["max_bytes"], found["discard"]) == (LIMIT, "new")

    await eventually(limited)


@pytest.mark.parametrize("size", ["600KB", "1KB"])
async def test_a_server_with_little_room_has_all_streams(tmp_path: Path, size: str) -> None:
    server = start_nats(tmp_path / "nats", max_file_store=size)
    try:
        async with jetstream.connect(server.url, "relay") as bus:
            for name in streams.DESCRIPTIONS:
                assert await bus.position(name)
    finally:
        server.stop()
