import asyncio
from collections.abc import AsyncIterator

import pytest
from structlog.contextvars import get_contextvars

from gardenbus.common.controller.delaying_queue import DelayingQueue
from gardenbus.common.errors import Unavailable
from gardenbus.common.runtime.clock import SystemClock
from tests.support.clocks import FakeClock
from tests.support.eventually import HANG_SECONDS


class Reconciler:
    """Records what it is called with; each call returns (or raises) the next of its results, in the end None."""

    def __init__(self, *results: float | Exception | None) -> None:
        self.results = list(results)
        self.keys: list[str] = []
        self.reconcile_ids: list[str] = []
        self.at_once = self.most_at_once = 0
        self.may_finish = asyncio.Event()
        self.may_finish.set()

    async def __call__(self, key: str) -> float | None:
        self.keys.append(key)
        self.reconcile_ids.append(get_contextvars()["reconcile_id"])
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await self.may_finish.wait()
        finally:
            self.at_once -= 1
        result = self.results.pop(0) if self.results else None
        if isinstance(result, Exception):
            raise result
        return result


class Bench:
    def __init__(self) -> None:
        self.running: list[asyncio.Task[None]] = []

    def start(self, reconciler: Reconciler, *, limit: int = 2) -> DelayingQueue[str]:
        queue = DelayingQueue(reconciler, clock=SystemClock(), limit=limit, controller="test", retry_seconds=0.01)
        self.running.append(asyncio.create_task(queue.run()))
        return queue


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    bench = Bench()
    yield bench
    for task in bench.running:
        task.cancel()
    await asyncio.gather(*bench.running, return_exceptions=True)


async def until(reconciler: Reconciler, *keys: str) -> None:
    async with asyncio.timeout(HANG_SECONDS):
        while len(reconciler.keys) < len(keys) or reconciler.at_once:
            await asyncio.sleep(0.001)
    assert reconciler.keys == list(keys)


async def test_what_is_added_is_reconciled_once_its_time_has_come(bench: Bench) -> None:
    reconciler = Reconciler()
    queue = bench.start(reconciler)
    queue.add("late", 0.02)
    queue.add("now")
    await until(reconciler, "now", "late")


async def test_added_while_it_waits_it_is_reconciled_once_at_the_earliest_time(bench: Bench) -> None:
    reconciler = Reconciler()
    queue = bench.start(reconciler)
    queue.add("a", 3600)
    queue.add("a", 0.01)
    queue.add("a", 60)
    await until(reconciler, "a")
    await asyncio.sleep(0.03)
    assert reconciler.keys == ["a"]


async def test_added_while_it_is_reconciled_it_is_reconciled_once_more(bench: Bench) -> None:
    reconciler = Reconciler()
    reconciler.may_finish.clear()
    queue = bench.start(reconciler)
    queue.add("a")
    await asyncio.sleep(0.01)
    queue.add("a")
    queue.add("a")
    assert (queue.in_flight, reconciler.keys) == (1, ["a"])
    reconciler.may_finish.set()
    await until(reconciler, "a", "a")
    assert reconciler.most_at_once == 1


async def test_what_is_due_is_reconciled_by_its_times_or_in_the_order_of_its_keys() -> None:
    for is_sorted, expected in ((False, ["b", "c", "a"]), (True, ["a", "b", "c"])):
        reconciler, clock = Reconciler(), FakeClock()
        queue = DelayingQueue(reconciler, clock=clock, controller="test", is_sorted=is_sorted)
        for key, seconds in (("a", 3), ("b", 1), ("c", 2), ("d", 4)):
            queue.add(key, seconds)
        clock.advance(3)
        working = asyncio.create_task(queue.run())
        await until(reconciler, *expected)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


async def test_step_by_step_what_is_due_is_reconciled_once_and_what_failed_is_left() -> None:
    reconciler, clock = Reconciler(Unavailable("away"), None, 60.0, 0.0), FakeClock()
    queue = DelayingQueue(reconciler, clock=clock, controller="test", retry_seconds=1)
    queue.add("a")
    queue.add("b")
    assert not await queue.reconcile_due()
    clock.advance(1)
    assert await queue.reconcile_due()
    assert reconciler.keys == ["a", "b", "a"]
    clock.advance(60)
    assert not await queue.reconcile_due()
    assert await queue.reconcile_due()
    assert reconciler.keys == ["a", "b", "a", "a", "a"]


async def test_no_more_than_the_limit_are_reconciled_at_once(bench: Bench) -> None:
    reconciler = Reconciler()
    reconciler.may_finish.clear()
    queue = bench.start(reconciler)
    for key in "abcd":
        queue.add(key)
    await asyncio.sleep(0.01)
    assert queue.in_flight == 2
    reconciler.may_finish.set()
    await until(reconciler, *"abcd")
    assert reconciler.most_at_once == 2


@pytest.mark.parametrize("first", [0.01, Unavailable("away"), KeyError("bug")])
async def test_it_comes_back_when_it_asks_for_that_or_has_failed(bench: Bench, first: float | Exception) -> None:
    reconciler = Reconciler(first)
    queue = bench.start(reconciler)
    queue.add("a")
    await until(reconciler, "a", "a")


async def test_each_reconcile_has_an_id_of_its_own_in_the_log_context(bench: Bench) -> None:
    reconciler = Reconciler()
    queue = bench.start(reconciler)
    queue.add("a")
    queue.add("b")
    await until(reconciler, "a", "b")
    assert len(set(reconciler.reconcile_ids)) == 2
    assert "reconcile_id" not in get_contextvars()


async def test_clearing_drops_what_is_due_and_cancels_what_is_in_flight(bench: Bench) -> None:
    reconciler = Reconciler()
    reconciler.may_finish.clear()
    queue = bench.start(reconciler, limit=1)
    queue.add("a")
    queue.add("b")
    await asyncio.sleep(0.01)
    await queue.clear()
    assert queue.in_flight == 0
    await asyncio.sleep(0.02)
    assert reconciler.keys == ["a"]
