"""The history, on both adapters: points with their changes whole or not at all, each with a life of its own."""

from datetime import timedelta

import pytest

from gardenbus.common.errors import Conflict
from gardenbus.common.ports.bus import Message
from tests.support.buses import BusUnderTest, until_true


def point(under_test: BusUnderTest, body: bytes) -> list[Message]:
    subjects = under_test.subjects
    return [Message(subjects.history_change, b"change"), Message(subjects.history_point, body, ttl=timedelta(hours=6))]


async def test_of_two_writers_that_saw_the_same_end_one_stores_its_point_with_all_its_changes(
    under_test: BusUnderTest,
) -> None:
    bus, stream = under_test.bus, under_test.stream("HISTORY")
    end = (await bus.position(stream)).sequence
    stored = await bus.publish_batch(stream, point(under_test, b"first"), expected_last_sequence=end, whole=True)
    assert stored == end + 2
    with pytest.raises(Conflict):
        await bus.publish_batch(stream, point(under_test, b"second"), expected_last_sequence=end, whole=True)
    with pytest.raises(Conflict):
        await bus.publish_batch(stream, point(under_test, b"third")[1:], expected_last_sequence=end)
    assert await bus.subjects(stream, ">") == dict.fromkeys(
        (under_test.subjects.history_change, under_test.subjects.history_point), 1
    )
    last = await bus.last(stream, under_test.subjects.history_point)
    assert last is not None
    assert last.body == b"first"


async def test_a_point_ends_by_its_own_life(jetstream: BusUnderTest) -> None:
    bus, stream, subjects = jetstream.bus, jetstream.stream("HISTORY"), jetstream.subjects
    end = (await bus.position(stream)).sequence
    short = Message(subjects.history_point, b"short", ttl=timedelta(seconds=1))
    await bus.publish_batch(stream, [short], expected_last_sequence=end)

    async def is_gone() -> bool:
        return not await bus.subjects(stream, ">")

    await until_true(is_gone)
