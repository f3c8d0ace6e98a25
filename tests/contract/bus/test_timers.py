"""Work that comes back later, and work that overtakes its timer."""

import time

from gardenbus.common.api.keys import Header
from gardenbus.common.controller.timers import Timer, Timers
from tests.support.buses import BusUnderTest, fetch_until, names
from tests.support.eventually import HANG_SECONDS


async def test_parked_work_comes_back_when_it_is_due_with_its_headers(under_test: BusUnderTest):
    timers, queue = Timers(under_test.bus, under_test.subjects), await under_test.queue()
    began_at = time.monotonic()

    await timers.enqueue_after(under_test.work("a"), 1.5, 3, {Header.RECONCILE_ID: "abc"})

    (work,) = await fetch_until(queue, 1)
    assert time.monotonic() - began_at > 1.2
    assert work.message.headers[Header.ATTEMPT] == "3"
    assert work.message.headers[Header.RECONCILE_ID] == "abc"


async def test_parked_work_holds_no_place_in_its_queue(under_test: BusUnderTest):
    timers, queue = Timers(under_test.bus, under_test.subjects), await under_test.queue()
    await timers.enqueue_many_after([Timer(under_test.work(f"s{number}"), 60) for number in range(500)])

    await under_test.bus.publish(timers.enqueue_message(under_test.work("fresh")))

    assert names(await queue.fetch(10, HANG_SECONDS)) == ["fresh"]
    assert (
        len(await under_test.bus.subjects(under_test.stream("QUEUES"), f"{under_test.subjects.prefix}.later.>")) == 500
    )


async def test_even_a_timer_of_no_time_takes_a_second(under_test: BusUnderTest):
    timers, queue = Timers(under_test.bus, under_test.subjects), await under_test.queue()
    began_at = time.monotonic()

    await timers.enqueue_after(under_test.work("a"), 0)

    await fetch_until(queue, 1)
    assert time.monotonic() - began_at > 0.7


async def test_parking_again_replaces_the_timer(under_test: BusUnderTest):
    timers, queue = Timers(under_test.bus, under_test.subjects), await under_test.queue()
    await timers.enqueue_after(under_test.work("a"), 1, 1)
    await timers.enqueue_after(under_test.work("a"), 2, 2)

    (work,) = await fetch_until(queue, 1)
    await work.ack()

    assert work.message.headers[Header.ATTEMPT] == "2"
    assert await queue.fetch(10, 1.0) == []


async def test_work_enqueued_at_once_removes_its_timer(under_test: BusUnderTest):
    timers, queue = Timers(under_test.bus, under_test.subjects), await under_test.queue()
    await timers.enqueue_after(under_test.work("a"), 1)

    await under_test.bus.publish_many([timers.enqueue_message(under_test.work("a"))])

    (work,) = await fetch_until(queue, 1)
    await work.ack()
    assert await queue.fetch(10, 2.0) == []
    assert not await under_test.bus.subjects(under_test.stream("QUEUES"), ">")


async def test_a_timer_that_fires_replaces_work_that_waits(under_test: BusUnderTest):
    timers, queue = Timers(under_test.bus, under_test.subjects), await under_test.queue()
    await timers.enqueue_after(under_test.work("a"), 1, 7)
    await under_test.bus.publish(timers.enqueue_message(under_test.work("a"), purge_timer=False))

    async def fired() -> list[str | None]:
        (work,) = await fetch_until(queue, 1)
        return [work.message.headers.get(Header.ATTEMPT)]

    first = await fired()
    second = await fired()
    assert [first, second] == [[None], ["7"]]


async def test_the_same_headers_on_two_subjects_drop_no_work(under_test: BusUnderTest):
    timers, queue = Timers(under_test.bus, under_test.subjects), await under_test.queue()
    messages = [timers.enqueue_message(under_test.work(name)) for name in "abcdef"]

    await under_test.bus.publish_many(messages)

    assert all("Nats-Msg-Id" not in message.headers for message in messages)
    assert names(await fetch_until(queue, 6)) == list("abcdef")
