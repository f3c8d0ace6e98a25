import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.bus import Work
from gardenbus.scheduler.reconcilers.worker import Worker
from tests.support.clocks import FakeClock
from tests.support.scheduling import HandedWork


class Handing:
    """A queue that hands out these batches, one a fetch, and then asks the worker to stop."""

    depth = 0

    def __init__(
        self, stopping: asyncio.Event, busy: Callable[[], bool], *batches: Sequence[HandedWork] | Exception
    ) -> None:
        self.stopping = stopping
        self.busy = busy
        self.batches = list(batches)

    async def fetch(self, limit: int, wait_seconds: float) -> Sequence[HandedWork]:
        if not self.batches:
            while self.busy():
                await asyncio.sleep(0)
            self.stopping.set()
            return []
        batch = self.batches.pop(0)
        if isinstance(batch, Exception):
            raise batch
        return batch

    async def ack_many(self, works: Sequence[Any]) -> None:
        raise AssertionError("a worker leaves acknowledgements to those who settle")


async def run(*batches: Sequence[HandedWork] | Exception, failures: int = 0) -> list[list[str]]:
    """What was settled together, and (after a `!`) what was rejected."""
    told: list[list[str]] = []
    left = failures

    async def settle(works: Sequence[Work]) -> None:
        nonlocal left
        told.append([work.message.subject for work in works])
        if left:
            left -= 1
            raise Unavailable("away")

    async def reject(work: Work) -> None:
        told.append(["!" + work.message.subject])

    stopping = asyncio.Event()
    queue = Handing(stopping, lambda: left > 0, *batches)
    worker = Worker(queue=queue, settle=settle, reject=reject, clock=FakeClock(), stopping=stopping, batch_size=10)
    await worker.run()
    return told


async def test_a_batch_is_settled_together() -> None:
    assert await run([HandedWork("a"), HandedWork("b")], [HandedWork("c")]) == [["a", "b"], ["c"]]


async def test_what_may_have_killed_a_process_is_settled_alone_and_rejected_in_the_end() -> None:
    works = [HandedWork(name, deliveries=deliveries) for name, deliveries in (("a", 1), ("b", 4), ("c", 6), ("d", 3))]
    assert await run(works) == [["a", "d"], ["b"], ["!c"]]


async def test_an_outage_is_sat_out_with_the_work_in_hand() -> None:
    work = HandedWork("a")
    assert await run([work], failures=2) == [["a"], ["a"], ["a"]]
    assert work.held == 2


async def test_a_queue_out_of_reach_is_asked_again() -> None:
    assert await run(Unavailable("away"), [HandedWork("a")]) == [["a"]]


async def test_the_next_batch_is_fetched_while_one_is_settled() -> None:
    stopping, fetched = asyncio.Event(), asyncio.Event()

    class Eager(Handing):
        async def fetch(self, limit: int, wait_seconds: float) -> Sequence[HandedWork]:
            if len(self.batches) == 1:
                fetched.set()
            return await super().fetch(limit, wait_seconds)

    settled: list[str] = []

    async def settle(works: Sequence[Work]) -> None:
        if not settled:
            await asyncio.wait_for(fetched.wait(), 5)
        settled.extend(work.message.subject for work in works)

    async def reject(work: Work) -> None:
        raise AssertionError(work.message.subject)

    queue = Eager(stopping, lambda: False, [HandedWork("a")], [HandedWork("b")])
    worker = Worker(queue=queue, settle=settle, reject=reject, clock=FakeClock(), stopping=stopping, batch_size=10)
    await worker.run()
    assert settled == ["a", "b"]
