"""What a work queue promises: each message until it is acknowledged, to one at a time, the newest per subject."""

import asyncio
import contextlib
import time
from datetime import timedelta

import pytest

from gardenbus.common.adapters.nats import work_queue
from gardenbus.common.ports.bus import Message, WorkQueue
from tests.support.buses import BusUnderTest, fetch_until, names, until_true
from tests.support.eventually import HANG_SECONDS
from tests.support.memory import streams

ACK_WAIT_SECONDS = 4.0
"""In the test that waits for it."""


async def enqueue(under_test: BusUnderTest, *tails: str, body: bytes = b"") -> None:
    await under_test.bus.publish_many([Message(under_test.work(name), body) for name in tails])


async def test_work_comes_in_order_with_what_was_sent(under_test: BusUnderTest):
    queue = await under_test.queue()
    await under_test.bus.publish(Message(under_test.work("a"), b"body", {"Gardenbus-Attempt": "3"}))
    await enqueue(under_test, "b", "c")

    works = await queue.fetch(10, HANG_SECONDS)

    assert names(works) == ["a", "b", "c"]
    assert works[0].message.body == b"body"
    assert works[0].message.headers == {"Gardenbus-Attempt": "3"}
    assert [work.deliveries for work in works] == [1, 1, 1]
    assert works[0].queued_ms >= 0


async def test_an_empty_queue_is_waited_for_only_so_long(under_test: BusUnderTest):
    queue = await under_test.queue()
    began_at = time.monotonic()

    assert await queue.fetch(10, 0.3) == []

    assert time.monotonic() - began_at > 0.25
    assert await queue.fetch(10, 0) == []


async def test_a_fetch_returns_with_the_first_message_and_waits_for_no_other(under_test: BusUnderTest):
    queue = await under_test.queue()
    waiting = asyncio.create_task(queue.fetch(100, 1e6))
    await asyncio.sleep(0.1)

    await enqueue(under_test, "a")

    assert names(await waiting) == ["a"]


async def test_a_fetch_takes_at_most_what_was_asked_and_tells_how_much_is_left(under_test: BusUnderTest):
    queue = await under_test.queue()
    await enqueue(under_test, *(f"s{number}" for number in range(10)))
    await under_test.counted(10)

    works = await queue.fetch(3, HANG_SECONDS)

    assert names(works) == ["s0", "s1", "s2"]
    assert queue.depth == 7
    assert len(await queue.fetch(100, HANG_SECONDS)) == 7
    assert queue.depth == 0


async def test_work_in_hand_is_given_to_nobody_else_and_ended_work_never_again(under_test: BusUnderTest):
    queue = await under_test.queue()
    other = await under_test.queue(bus=under_test.another)
    await enqueue(under_test, "a", "b")

    (mine,) = await queue.fetch(1, HANG_SECONDS)
    theirs = await other.fetch(10, HANG_SECONDS)
    assert names([mine, *theirs]) == ["a", "b"]
    assert await other.fetch(10, 0.2) == []

    await mine.ack()
    await mine.ack()
    await other.ack_many(theirs)

    async def empty() -> bool:
        return not await under_test.bus.subjects(under_test.stream("QUEUES"), ">")

    await until_true(empty)


async def test_released_work_comes_again_at_once_to_anybody(under_test: BusUnderTest):
    queue = await under_test.queue()
    other = await under_test.queue(bus=under_test.another)
    await enqueue(under_test, "a")
    (work,) = await queue.fetch(1, HANG_SECONDS)

    await work.release()

    (again,) = await fetch_until(other, 1)
    assert again.deliveries == 2
    assert again.message.sequence == work.message.sequence


async def test_a_newer_message_replaces_the_waiting_one(under_test: BusUnderTest):
    queue = await under_test.queue()
    await enqueue(under_test, "a", body=b"old")
    await enqueue(under_test, "a", body=b"new")

    works = await queue.fetch(10, HANG_SECONDS)

    assert [work.message.body for work in works] == [b"new"]


async def test_a_newer_message_comes_while_the_older_is_in_hand_and_the_older_ends_in_silence(
    under_test: BusUnderTest,
):
    queue = await under_test.queue()
    await enqueue(under_test, "a", body=b"old")
    (old,) = await queue.fetch(1, HANG_SECONDS)

    await enqueue(under_test, "a", body=b"new")
    (new,) = await fetch_until(queue, 1)
    await old.in_progress()
    await old.ack()

    assert new.message.body == b"new"
    assert list(await under_test.bus.subjects(under_test.stream("QUEUES"), ">")) == [under_test.work("a")]
    await new.ack()


@pytest.mark.parametrize("ending", ["ack", "release", "in_progress"])
async def test_what_ends_work_of_a_stream_that_was_deleted_ends_no_work_of_the_one_in_its_place(
    under_test: BusUnderTest, ending: str
):
    """Nobody loses the connection: somebody removes a stream, or restores it, through JetStream's API."""
    queue = await under_test.queue()
    await enqueue(under_test, "old")
    (old,) = await fetch_until(queue, 1)

    await under_test.recreate("QUEUES")
    await under_test.queue(bus=under_test.another)
    await enqueue(under_test, "new")
    (new,) = await fetch_until(queue, 1)
    assert new.message.sequence == old.message.sequence
    assert old.is_held_over
    await getattr(old, ending)()

    await under_test.is_in_hand_alone(queue, new)


async def test_each_controller_sees_its_own_work_alone(under_test: BusUnderTest):
    first, second = await under_test.queue("one"), await under_test.queue("two")
    await under_test.bus.publish(Message(under_test.work("a", "one")))
    await under_test.bus.publish(Message(under_test.work("b", "two")))

    assert names(await first.fetch(10, HANG_SECONDS)) == ["a"]
    assert names(await second.fetch(10, HANG_SECONDS)) == ["b"]


async def test_work_that_came_before_the_consumer_is_there(under_test: BusUnderTest):
    await enqueue(under_test, "early")

    queue = await under_test.queue()

    assert names(await queue.fetch(10, HANG_SECONDS)) == ["early"]


async def test_a_cancelled_fetch_loses_nothing(under_test: BusUnderTest):
    queue = await under_test.queue()
    waiting = asyncio.create_task(queue.fetch(10, 5.0))
    await asyncio.sleep(0.1)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    await enqueue(under_test, "a")

    assert names(await fetch_until(queue, 1)) == ["a"]


async def test_what_was_on_its_way_to_a_cancelled_fetch_comes_back_at_once(under_test: BusUnderTest):
    queue = await under_test.queue()
    for turns in range(40):
        waiting = asyncio.create_task(queue.fetch(10, 5.0))
        await asyncio.sleep(0.005)
        publishing = asyncio.create_task(enqueue(under_test, "a"))
        for _ in range(turns % 8):
            await asyncio.sleep(0)
        waiting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            for each in await waiting:
                await each.release()
        await publishing

        (work,) = await fetch_until(queue, 1)
        await work.ack()


async def test_fetches_may_run_side_by_side(under_test: BusUnderTest):
    queue = await under_test.queue()
    waiting = [asyncio.create_task(queue.fetch(1, HANG_SECONDS)) for _ in range(3)]
    await asyncio.sleep(0.1)

    await enqueue(under_test, "a", "b", "c")

    fetched = [names(works) for works in await asyncio.gather(*waiting)]
    assert sorted(name for works in fetched for name in works) == ["a", "b", "c"]


async def test_the_floor_rises_with_what_is_acknowledged(under_test: BusUnderTest):
    stream, subjects = under_test.stream("REQUESTS"), under_test.subjects
    queue = await under_test.bus.work_queue(stream, "apiserver", f"{subjects.prefix}.>")
    for _ in range(3):
        await under_test.bus.publish(Message(subjects.apply, b"{}"))
    works = await queue.fetch(10, HANG_SECONDS)

    await works[0].ack()
    await works[2].ack()

    async def risen(sequence: int) -> bool:
        return (await under_test.bus.acknowledged_floor(stream, "apiserver")).sequence == sequence

    await until_true(lambda: risen(1))
    await works[1].ack()
    await until_true(lambda: risen(3))
    position = await under_test.bus.position(stream)
    assert (await under_test.bus.acknowledged_floor(stream, "apiserver")).created == position.created


async def test_work_of_one_who_died_comes_again_and_work_in_progress_does_not(
    under_test: BusUnderTest, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(work_queue, "ACK_WAIT_SECONDS", ACK_WAIT_SECONDS)
    monkeypatch.setattr(streams, "ACK_WAIT", timedelta(seconds=ACK_WAIT_SECONDS))
    queue = await under_test.queue()
    await enqueue(under_test, "dead", "slow")
    dead, slow = await fetch_until(queue, 2)
    again: list[str] = []

    while not again:
        await slow.in_progress()
        again += names(await queue.fetch(10, 0.2 * ACK_WAIT_SECONDS))

    assert again == ["dead"]
    assert dead.deliveries == 1


async def bounded_queue(under_test: BusUnderTest, fetch_bytes: int) -> WorkQueue:
    stream, subjects = under_test.stream("QUEUES"), under_test.subjects
    return await under_test.bus.work_queue(stream, "bounded", subjects.queue_of("bounded"), fetch_bytes=fetch_bytes)


async def enqueue_bounded(under_test: BusUnderTest, **sizes: int) -> None:
    subject = under_test.subjects.queue_of("bounded").removesuffix(">")
    await under_test.bus.publish_many([Message(f"{subject}dev.{name}", b"x" * size) for name, size in sizes.items()])


async def test_a_fetch_has_no_more_bytes_than_its_limit_and_leaves_nothing_out(under_test: BusUnderTest):
    queue = await bounded_queue(under_test, 10_000)
    await enqueue_bounded(under_test, a=3000, b=3000, c=3000, d=3000, e=3000)
    assert names(await queue.fetch(10, HANG_SECONDS)) == ["a", "b", "c"]
    assert names(await queue.fetch(10, HANG_SECONDS)) == ["d", "e"]
    assert await queue.fetch(10, 0.1) == []


async def test_a_message_larger_than_the_limit_comes_alone(under_test: BusUnderTest):
    queue = await bounded_queue(under_test, 10_000)
    await enqueue_bounded(under_test, a=100, b=50_000, c=100)
    assert [names(await queue.fetch(10, HANG_SECONDS)) for _ in range(3)] == [["a"], ["b"], ["c"]]


async def test_messages_of_exactly_the_limit_end_a_fetch_and_none_is_lost(under_test: BusUnderTest):
    """The server says nothing more then: a fetch that waited for its last word would raise."""
    for fetch_bytes in range(2050, 2350):
        queue = await bounded_queue(under_test, fetch_bytes)
        await enqueue_bounded(under_test, a=1000, b=1000, c=1000)
        found: list[str] = []
        while len(found) < 3:
            works = await queue.fetch(10, HANG_SECONDS)
            found += names(works)
            await queue.ack_many(works)
        assert found == ["a", "b", "c"]
