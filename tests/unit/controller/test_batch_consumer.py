"""The batch loop: batches, isolation, outages, and what is prefetched meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from structlog.contextvars import get_contextvars

from gardenbus.common.api.keys import Subjects
from gardenbus.common.controller import batch_consumer
from gardenbus.common.controller.batch_consumer import BatchConsumer, BatchSettings, arrange
from gardenbus.common.controller.dead_letter import DeadLetter
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.bus import Message, QueueMessage, StreamMessage
from gardenbus.common.ports.connections import Connections
from tests.support.clocks import FakeClock
from tests.support.eventually import HANG_SECONDS
from tests.support.memory.store import MemoryStore
from tests.support.scheduling import FetchedWork

SETTINGS = BatchSettings(batch=10, wait_seconds=0.01)


class InFlight:
    """A message from a queue that remembers how it was ended."""

    def __init__(self, sequence: int, deliveries: int = 1) -> None:
        self.message = StreamMessage("garden.apply", b"{}", {}, sequence, datetime(2026, 1, 2, tzinfo=UTC))
        self.deliveries = deliveries
        self.is_held_over = False
        self.queued_ms = 1.0
        self.ended: list[str] = []

    async def ack(self) -> None:
        self.ended.append("ack")

    async def release(self) -> None:
        self.ended.append("release")

    async def in_progress(self) -> None:
        self.ended.append("in_progress")


class Kept:
    """The part of a bus that keeps what is rejected."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    async def publish(self, message: Message) -> int:
        self.messages.append(message)
        return len(self.messages)


class Consuming:
    """A consumer and what came of its messages."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.batches: list[list[int]] = []
        self.kept = Kept()
        self.meanwhile: Callable[[], Awaitable[None]] | None = None
        self.fetch: Callable[[int, float], Awaitable[Sequence[QueueMessage]]] | None = None
        clock = FakeClock()
        dead_letter = DeadLetter(Connections(MemoryStore(clock), self.kept, Subjects()), reporter="apiserver")  # pyright: ignore[reportArgumentType]
        self.consumer = BatchConsumer(
            "test",
            self,  # pyright: ignore[reportArgumentType]
            self.handle,
            reject=dead_letter.reject_poison,
            clock=clock,
            settings=SETTINGS,
        )

    async def handle(self, queued_messages: Sequence[QueueMessage]) -> None:
        self.batches.append([queued.message.sequence for queued in queued_messages])
        await asyncio.sleep(0)
        if self.meanwhile is not None:
            await self.meanwhile()
        if self.failures:
            raise self.failures.pop(0)
        for queued in queued_messages:
            await queued.ack()


async def test_new_messages_are_taken_together() -> None:
    fixture = Consuming()
    queued_messages = [InFlight(1), InFlight(2)]
    await fixture.consumer.process(queued_messages)

    assert fixture.batches == [[1, 2]]
    assert [queued.ended for queued in queued_messages] == [["ack"], ["ack"]]


async def test_a_message_that_comes_back_is_taken_alone() -> None:
    fixture = Consuming()
    await fixture.consumer.process([InFlight(1, 2), InFlight(2), InFlight(3, 3), InFlight(4)])

    assert fixture.batches == [[2, 4], [1], [3]]


@pytest.mark.parametrize("deliveries", [2, SETTINGS.max_deliveries])
async def test_messages_that_wait_for_their_turn_stay_in_hand(deliveries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_consumer, "EXTEND_SECONDS", 0.001)
    fixture = Consuming()
    queued_messages = [InFlight(sequence, deliveries) for sequence in (1, 2, 3)]

    async def all_are_extended() -> None:
        unfinished = [queued for queued in queued_messages if "ack" not in queued.ended]
        before = [len(queued.ended) for queued in unfinished]
        async with asyncio.timeout(HANG_SECONDS):
            while any(len(queued.ended) <= count for queued, count in zip(unfinished, before, strict=True)):
                await asyncio.sleep(0.001)

    fixture.meanwhile = all_are_extended
    await fixture.consumer.process(queued_messages)

    assert sorted(fixture.batches) == [[1], [2], [3]]
    assert [queued.ended[-1] for queued in queued_messages] == ["ack"] * 3


async def test_while_a_server_is_away_the_batch_stays_in_hand() -> None:
    fixture = Consuming(Unavailable("away"), Unavailable("away"))
    queued = InFlight(1)
    await fixture.consumer.process([queued])

    assert fixture.batches == [[1], [1], [1]]
    assert queued.ended[-1] == "ack"
    assert "release" not in queued.ended


async def test_an_unexpected_error_gives_the_batch_back() -> None:
    fixture = Consuming(KeyError("bug"))
    queued_messages = [InFlight(1), InFlight(2)]
    await fixture.consumer.process(queued_messages)

    assert [queued.ended for queued in queued_messages] == [["release"], ["release"]]


async def test_a_message_that_fails_five_times_is_rejected() -> None:
    fixture = Consuming()
    queued = InFlight(1, 6)
    await fixture.consumer.process([queued])

    assert fixture.batches == []
    assert queued.ended == ["ack"]
    assert fixture.kept.messages[0].subject == "garden.rejected.apply.anybody"
    assert "failed 5 times" in fixture.kept.messages[0].headers["Gardenbus-Reason"]


@pytest.mark.parametrize("killer", range(6))
def test_only_the_message_that_kills_is_left_at_the_end(killer: int) -> None:
    left = list(range(6))
    for delivery in range(1, 6):
        queued_messages = [InFlight(number, delivery) for number in left]
        _, alone = arrange(queued_messages, SETTINGS)  # pyright: ignore[reportArgumentType]
        for queued in alone:
            if queued.message.sequence == killer:
                break
            left.remove(queued.message.sequence)

    assert left == [killer]


def test_what_comes_back_out_of_order_is_handled_in_the_order_of_the_stream() -> None:
    queued_messages = [InFlight(number, 3) for number in (3, 1, 2)]

    _, alone = arrange(queued_messages, SETTINGS)  # pyright: ignore[reportArgumentType]

    assert [queued.message.sequence for queued in alone] == [1, 2, 3]


async def test_a_stop_waits_for_what_is_in_hand() -> None:
    fixture = Consuming()
    await fixture.consumer.stop()

    assert fixture.batches == []


async def test_a_stop_does_not_wait_for_a_fetch_that_waits() -> None:
    fixture = Consuming()
    fetching = asyncio.Event()

    async def fetch(limit: int, wait_seconds: float) -> Sequence[QueueMessage]:
        del limit, wait_seconds
        fetching.set()
        await asyncio.Event().wait()
        return ()

    fixture.fetch = fetch
    running = asyncio.create_task(fixture.consumer.run())
    await fetching.wait()

    async with asyncio.timeout(HANG_SECONDS):
        await fixture.consumer.stop()
        await running

    assert fixture.batches == []


class FetchingAhead:
    """A consumer of a queue that holds some batches; of each fetch, whether a batch was being handled meanwhile."""

    def __init__(self, *batches: list[InFlight], settings: BatchSettings = SETTINGS) -> None:
        self.queued = list(batches)
        self.handled: list[list[int]] = []
        self.fetched_ahead: list[bool] = []
        self.is_handling = False
        self.is_empty = asyncio.Event()
        dead_letter = DeadLetter(Connections(MemoryStore(FakeClock()), Kept(), Subjects()), reporter="apiserver")  # pyright: ignore[reportArgumentType]
        self.consumer = BatchConsumer(
            "test",
            self,  # pyright: ignore[reportArgumentType]
            self.handle,
            reject=dead_letter.reject_poison,
            clock=FakeClock(),
            settings=settings,
        )

    @property
    def depth(self) -> int:
        return len(self.queued)

    async def fetch(self, _limit: int, _wait_seconds: float) -> Sequence[InFlight]:
        if self.queued:
            self.fetched_ahead.append(self.is_handling)
            return self.queued.pop(0)
        self.is_empty.set()
        await asyncio.sleep(0.01)
        return ()

    async def handle(self, queued_messages: Sequence[QueueMessage]) -> None:
        self.is_handling = True
        self.handled.append([queued.message.sequence for queued in queued_messages])
        await asyncio.sleep(0.01)  # the store is at work
        self.is_handling = False

    async def run(self) -> None:
        running = asyncio.create_task(self.consumer.run())
        async with asyncio.timeout(HANG_SECONDS):
            await self.is_empty.wait()
            await self.consumer.stop()
            await running


async def test_the_next_batch_is_fetched_while_one_is_handled() -> None:
    fixture = FetchingAhead([InFlight(1)], [InFlight(2), InFlight(3)], [InFlight(4)])
    await fixture.run()

    assert fixture.handled == [[1], [2, 3], [4]]
    assert fixture.fetched_ahead == [False, True, True]


async def test_nothing_is_fetched_ahead_where_that_is_disabled() -> None:
    settings = BatchSettings(batch=10, wait_seconds=0.01, fetches_ahead=False)
    fixture = FetchingAhead([InFlight(1)], [InFlight(2)], settings=settings)
    await fixture.run()

    assert fixture.handled == [[1], [2]]
    assert fixture.fetched_ahead == [False, False]


async def test_nothing_is_fetched_beside_what_comes_back() -> None:
    fixture = FetchingAhead([InFlight(1)], [InFlight(2, 2), InFlight(3)], [InFlight(4)])
    await fixture.run()

    assert fixture.handled == [[1], [3], [2], [4]]
    assert fixture.fetched_ahead == [False, True, False]


async def test_all_lines_of_one_batch_carry_one_id() -> None:
    bound: list[str] = []

    async def handle(_messages: Sequence[QueueMessage]) -> None:
        bound.append(get_contextvars()["reconcile_id"])

    async def reject(message: QueueMessage) -> None:
        raise AssertionError(message.message.subject)

    consumer = BatchConsumer("test", Handing(asyncio.Event(), lambda: False), handle, reject=reject, clock=FakeClock())
    await consumer.process([FetchedWork("a"), FetchedWork("b"), FetchedWork("c", deliveries=2)])

    assert len(bound) == len(set(bound)) == 2
    assert "reconcile_id" not in get_contextvars()


class Handing:
    """A queue that hands out these batches, one a fetch, and then asks the consumer to stop."""

    depth = 0

    def __init__(
        self, stopping: asyncio.Event, busy: Callable[[], bool], *batches: Sequence[FetchedWork] | Exception
    ) -> None:
        self.stopping = stopping
        self.busy = busy
        self.batches = list(batches)

    async def fetch(self, limit: int, wait_seconds: float) -> Sequence[FetchedWork]:
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
        raise AssertionError("a consumer leaves acknowledgements to its handler")


async def run(*batches: Sequence[FetchedWork] | Exception, failures: int = 0) -> list[list[str]]:
    """Messages that were handled together, and (after a `!`) what was rejected."""
    calls: list[list[str]] = []
    left = failures

    async def handle(messages: Sequence[QueueMessage]) -> None:
        nonlocal left
        calls.append([work.message.subject for work in messages])
        if left:
            left -= 1
            raise Unavailable("away")

    async def reject(work: QueueMessage) -> None:
        calls.append(["!" + work.message.subject])

    stopping = asyncio.Event()
    queue = Handing(stopping, lambda: left > 0, *batches)
    settings = BatchSettings(batch=10, isolate_from=4)
    clock = FakeClock()
    await BatchConsumer("test", queue, handle, reject=reject, clock=clock, settings=settings, stopping=stopping).run()
    return calls


async def test_a_batch_is_settled_together() -> None:
    assert await run([FetchedWork("a"), FetchedWork("b")], [FetchedWork("c")]) == [["a", "b"], ["c"]]


async def test_what_may_have_killed_a_process_is_settled_alone_and_rejected_in_the_end() -> None:
    works = [FetchedWork(name, deliveries=deliveries) for name, deliveries in (("a", 1), ("b", 4), ("c", 6), ("d", 3))]
    assert await run(works) == [["a", "d"], ["b"], ["!c"]]


async def test_an_outage_is_sat_out_with_the_work_in_hand() -> None:
    work = FetchedWork("a")
    assert await run([work], failures=2) == [["a"], ["a"], ["a"]]
    assert work.held == 2


async def test_a_queue_out_of_reach_is_asked_again() -> None:
    assert await run(Unavailable("away"), [FetchedWork("a")]) == [["a"]]


async def test_nothing_is_fetched_while_a_batch_is_handled_if_nothing_waited_behind_it() -> None:
    """What comes meanwhile is then handled together, or by another replica."""
    stopping = asyncio.Event()
    steps: list[str] = []

    class Idle(Handing):
        async def fetch(self, limit: int, wait_seconds: float) -> Sequence[FetchedWork]:
            steps.append("fetch")
            return await super().fetch(limit, wait_seconds)

    async def handle(messages: Sequence[QueueMessage]) -> None:
        for _ in range(5):
            await asyncio.sleep(0)
        steps.extend(work.message.subject for work in messages)

    async def reject(work: QueueMessage) -> None:
        raise AssertionError(work.message.subject)

    queue = Idle(stopping, lambda: False, [FetchedWork("a")], [FetchedWork("b"), FetchedWork("c")])
    await BatchConsumer("test", queue, handle, reject=reject, clock=FakeClock(), stopping=stopping).run()
    assert steps == ["fetch", "a", "fetch", "b", "c", "fetch"]


async def test_the_next_batch_is_fetched_while_one_is_settled_if_more_waited() -> None:
    stopping, fetched = asyncio.Event(), asyncio.Event()

    class Eager(Handing):
        depth = 1

        async def fetch(self, limit: int, wait_seconds: float) -> Sequence[FetchedWork]:
            if len(self.batches) == 1:
                fetched.set()
            return await super().fetch(limit, wait_seconds)

    handled: list[str] = []

    async def handle(messages: Sequence[QueueMessage]) -> None:
        if not handled:
            await asyncio.wait_for(fetched.wait(), HANG_SECONDS)
        handled.extend(work.message.subject for work in messages)

    async def reject(work: QueueMessage) -> None:
        raise AssertionError(work.message.subject)

    queue = Eager(stopping, lambda: False, [FetchedWork("a")], [FetchedWork("b")])
    settings = BatchSettings(batch=10, isolate_from=4)
    clock = FakeClock()
    await BatchConsumer("test", queue, handle, reject=reject, clock=clock, settings=settings, stopping=stopping).run()
    assert handled == ["a", "b"]
