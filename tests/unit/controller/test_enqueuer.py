"""Looks that callbacks ask for."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.controller.enqueuer import BATCH, Enqueuer
from gardenbus.common.controller.timers import Timers
from gardenbus.common.ports.bus import WorkQueue
from gardenbus.common.runtime.clock import SystemClock
from tests.support.buses import fetch_until, names
from tests.support.memory.bus import MemoryBus, MemoryServer

SUBJECTS = Subjects()


def a_set(name: str) -> ObjectKey:
    return ObjectKey("managedseedset", "garden", name)


@pytest.fixture
def bus() -> MemoryBus:
    clock = SystemClock()
    return MemoryBus(clock, server=MemoryServer(clock))


@pytest.fixture
async def queue(bus: MemoryBus) -> WorkQueue:
    return await bus.work_queue(SUBJECTS.stream("QUEUES"), "sets", SUBJECTS.queue_of("sets"))


@pytest.fixture
async def enqueuer(bus: MemoryBus) -> AsyncIterator[Enqueuer]:
    enqueuer = Enqueuer(bus, SUBJECTS, "sets", retry_seconds=0.01)
    running = asyncio.create_task(enqueuer.run())
    yield enqueuer
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_nudge_becomes_work_in_the_controllers_queue(enqueuer: Enqueuer, queue: WorkQueue):
    enqueuer.enqueue(a_set("one"))

    (work,) = await fetch_until(queue, 1)

    assert work.message.subject == "garden.queue.sets.garden.one"
    assert enqueuer.pending == 0


async def test_many_nudges_of_one_object_are_one_look(enqueuer: Enqueuer, queue: WorkQueue):
    for name in ("one", "two", "one", "one"):
        enqueuer.enqueue(a_set(name))

    assert sorted(names(await fetch_until(queue, 2))) == ["one", "two"]
    assert await queue.fetch(1, 0.05) == []


async def test_what_is_asked_for_while_gathering_is_one_look(bus: MemoryBus, queue: WorkQueue):
    gathering = Enqueuer(bus, SUBJECTS, "sets", gather_seconds=0.2)
    running = asyncio.create_task(gathering.run())
    for _ in range(5):
        gathering.enqueue(a_set("one"))
        await asyncio.sleep(0.01)
    assert gathering.pending == 1
    assert names(await fetch_until(queue, 1)) == ["one"]
    assert await queue.fetch(1, 0.05) == []
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_nudge_takes_the_timer_of_its_object_with_it(bus: MemoryBus, enqueuer: Enqueuer, queue: WorkQueue):
    timers = Timers(bus, SUBJECTS)
    await timers.enqueue_after(SUBJECTS.queue("sets", "garden", "one"), 1.0)

    enqueuer.enqueue(a_set("one"))

    (work,) = await fetch_until(queue, 1)
    await work.ack()
    assert await queue.fetch(1, 1.5) == []


async def test_nudges_wait_for_a_bus_that_is_away(bus: MemoryBus, enqueuer: Enqueuer, queue: WorkQueue):
    bus.cut()
    enqueuer.enqueue(a_set("one"))
    await asyncio.sleep(0.05)
    enqueuer.enqueue(a_set("two"))
    assert enqueuer.pending >= 1

    await bus.mend()

    assert sorted(names(await fetch_until(queue, 2))) == ["one", "two"]


async def test_a_burst_is_published_in_parts(enqueuer: Enqueuer, queue: WorkQueue):
    for number in range(BATCH + 3):
        enqueuer.enqueue(a_set(f"set-{number}"))

    assert len(await fetch_until(queue, BATCH + 3)) == BATCH + 3
