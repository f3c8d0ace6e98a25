"""A scheduler's queue in three bands: shares of a batch, what comes meanwhile, and consumers of earlier versions."""

import asyncio

from gardenbus.common.api.garden.scheduling_order import BANDS, HIGH, LOW, NORMAL
from gardenbus.common.api.keys import queued_shoot
from gardenbus.common.ports.bus import Message, QueueMessage
from gardenbus.scheduler.watch.banded_queue import BandedQueue
from tests.support.buses import BusUnderTest
from tests.support.eventually import HANG_SECONDS


def subject(under_test: BusUnderTest, band: str, name: str) -> str:
    token = f"{band}." if band else ""
    return f"{under_test.subjects.prefix}.queue.scheduling.mine.{token}garden-dev.{name}"


async def banded(under_test: BusUnderTest) -> BandedQueue:
    stream, subjects = under_test.stream("QUEUES"), under_test.subjects
    bands = {
        band: await under_test.bus.work_queue(stream, f"scheduling{band}-mine", subjects.scheduling_band("mine", band))
        for band in (NORMAL, HIGH, LOW)
    }
    queue = BandedQueue(bands)
    under_test.stack.push_async_callback(queue.close)
    return queue


async def enqueue(under_test: BusUnderTest, band: str, *names: str) -> None:
    await under_test.bus.publish_many([Message(subject(under_test, band, name)) for name in names])


async def fetched(queue: BandedQueue, count: int, limit: int = 100) -> list[QueueMessage]:
    """Batches until there are so many messages."""
    found: list[QueueMessage] = []
    async with asyncio.timeout(HANG_SECONDS):
        while len(found) < count:
            batch = await queue.fetch(limit, 0.2)
            found += batch
            await queue.ack_many(batch)
    return found


def bands_of(messages: list[QueueMessage]) -> dict[str, int]:
    found: dict[str, int] = dict.fromkeys(BANDS, 0)
    for message in messages:
        queued = queued_shoot(message.message.subject)
        assert queued is not None
        assert queued.scheduler == "mine"
        found[queued.band] += 1
    return found


async def test_each_message_comes_once_from_whatever_band(under_test: BusUnderTest) -> None:
    queue = await banded(under_test)
    for band in BANDS:
        await enqueue(under_test, band, *(f"s{number}" for number in range(30)))
    assert bands_of(await fetched(queue, 90)) == {HIGH: 30, NORMAL: 30, LOW: 30}
    assert await queue.fetch(100, 0.1) == []


async def test_what_comes_first_while_all_wait_is_fetched_at_once(under_test: BusUnderTest) -> None:
    queue = await banded(under_test)
    assert await queue.fetch(100, 0.1) == []
    for band in BANDS:
        waiting = asyncio.create_task(fetched(queue, 1))
        await asyncio.sleep(0)
        await enqueue(under_test, band, "apollo")
        assert [message.message.subject for message in await waiting] == [subject(under_test, band, "apollo")]


async def test_many_of_high_priority_leave_the_others_their_share(under_test: BusUnderTest) -> None:
    queue = await banded(under_test)
    for band in BANDS:
        await enqueue(under_test, band, *(f"s{number}" for number in range(400)))
    found = bands_of(await fetched(queue, 600))
    assert found[HIGH] == 400
    assert found[NORMAL] >= 60
    assert found[LOW] >= 20


async def test_what_a_closed_queue_has_fetched_comes_again(under_test: BusUnderTest) -> None:
    queue = await banded(under_test)
    assert await queue.fetch(100, 0.1) == []
    await enqueue(under_test, HIGH, "apollo")
    await asyncio.sleep(0.1)
    await queue.close()
    again = await banded(under_test)
    assert bands_of(await fetched(again, 1)) == {HIGH: 1, NORMAL: 0, LOW: 0}


async def test_a_consumer_of_all_bands_by_an_earlier_version_is_narrowed(under_test: BusUnderTest) -> None:
    stream, subjects = under_test.stream("QUEUES"), under_test.subjects
    older = await under_test.bus.work_queue(stream, "scheduling-mine", subjects.queue_of("scheduling.mine"))
    await enqueue(under_test, NORMAL, "before")
    (held,) = await older.fetch(10, HANG_SECONDS)
    queue = await banded(under_test)
    await enqueue(under_test, HIGH, "after")
    await held.release()
    assert bands_of(await fetched(queue, 2)) == {HIGH: 1, NORMAL: 1, LOW: 0}
    assert await older.fetch(10, 0.1) == []
