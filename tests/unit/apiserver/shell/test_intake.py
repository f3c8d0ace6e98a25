"""The intake takes messages from a queue whatever happens."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from gardenbus.apiserver.reconcilers.intake import Intake, arranged
from gardenbus.apiserver.reconcilers.rejecting import Rejections
from gardenbus.common.adapters.memory_store import MemoryStore
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.bus import Delivered, Message, Work
from gardenbus.common.resources.keys import Subjects
from tests.support.clocks import FakeClock


class InHand:
    """A message from a queue that remembers how it was ended."""

    def __init__(self, sequence: int, deliveries: int = 1) -> None:
        self.message = Delivered("garden.apply", b"{}", {}, sequence, datetime(2026, 1, 2, tzinfo=UTC))
        self.deliveries = deliveries
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


class Intakes:
    """An intake and what came of it."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.batches: list[list[int]] = []
        self.kept = Kept()
        clock = FakeClock()
        rejections = Rejections(self.kept, MemoryStore(clock), Subjects())  # pyright: ignore[reportArgumentType]
        self.intake = Intake("test", self, self.handle, rejections, clock, batch=10)  # pyright: ignore[reportArgumentType]

    async def handle(self, works: Sequence[Work]) -> None:
        self.batches.append([work.message.sequence for work in works])
        await asyncio.sleep(0)
        if self.failures:
            raise self.failures.pop(0)
        for work in works:
            await work.ack()


async def test_new_messages_are_taken_together() -> None:
    taken = Intakes()
    works = [InHand(1), InHand(2)]
    await taken.intake.take(works, deliveries_max=5)

    assert taken.batches == [[1, 2]]
    assert [work.ended for work in works] == [["ack"], ["ack"]]


async def test_a_message_that_comes_back_is_taken_alone() -> None:
    taken = Intakes()
    await taken.intake.take([InHand(1, 2), InHand(2), InHand(3, 3), InHand(4)], deliveries_max=5)

    assert taken.batches == [[2, 4], [1], [3]]


async def test_while_a_server_is_away_the_batch_stays_in_hand() -> None:
    taken = Intakes(Unavailable("away"), Unavailable("away"))
    work = InHand(1)
    await taken.intake.take([work], deliveries_max=5)

    assert taken.batches == [[1], [1], [1]]
    assert work.ended[-1] == "ack"
    assert "release" not in work.ended


async def test_an_unexpected_error_gives_the_batch_back() -> None:
    taken = Intakes(KeyError("bug"))
    works = [InHand(1), InHand(2)]
    await taken.intake.take(works, deliveries_max=5)

    assert [work.ended for work in works] == [["release"], ["release"]]


async def test_a_message_that_fails_five_times_is_rejected() -> None:
    taken = Intakes()
    work = InHand(1, 6)
    await taken.intake.take([work], deliveries_max=5)

    assert taken.batches == []
    assert work.ended == ["ack"]
    assert taken.kept.messages[0].subject == "garden.rejected"
    assert "failed 5 times" in taken.kept.messages[0].headers["Gardenbus-Reason"]


@pytest.mark.parametrize("killer", range(6))
def test_only_the_message_that_kills_is_left_at_the_end(killer: int) -> None:
    left = list(range(6))
    for delivery in range(1, 6):
        works = [InHand(number, delivery) for number in left]
        _, alone = arranged(works, 5)  # pyright: ignore[reportArgumentType]
        for work in alone:
            if work.message.sequence == killer:
                break
            left.remove(work.message.sequence)

    assert left == [killer]


async def test_a_stop_waits_for_what_is_in_hand() -> None:
    taken = Intakes()
    await taken.intake.stop()

    assert taken.batches == []


class Preparing:
    """An intake of a queue that holds some batches, and what was prepared of them, while which one was in hand."""

    def __init__(self, *batches: list[InHand], failure: Exception | None = None) -> None:
        self.queued = list(batches)
        self.failure = failure
        self.handled: list[list[int]] = []
        self.prepared: list[tuple[int, list[int]]] = []
        self.is_empty = asyncio.Event()
        rejections = Rejections(Kept(), MemoryStore(FakeClock()), Subjects())  # pyright: ignore[reportArgumentType]
        self.intake = Intake("test", self, self.handle, rejections, FakeClock(), batch=10, prepare=self.prepare)  # pyright: ignore[reportArgumentType]

    async def fetch(self, _limit: int, _wait_seconds: float) -> Sequence[InHand]:
        if self.queued:
            return self.queued.pop(0)
        self.is_empty.set()
        await asyncio.sleep(0.01)
        return ()

    async def handle(self, works: Sequence[Work]) -> None:
        self.handled.append([work.message.sequence for work in works])
        await asyncio.sleep(0.01)  # the store is at work

    async def prepare(self, works: Sequence[Work]) -> None:
        self.prepared.append((len(self.handled), [work.message.sequence for work in works]))
        if self.failure is not None:
            raise self.failure

    async def run(self) -> None:
        running = asyncio.create_task(self.intake.run(deliveries_max=5, wait_seconds=0.01))
        async with asyncio.timeout(5):
            await self.is_empty.wait()
            await self.intake.stop()
            await running


async def test_the_next_batch_is_prepared_while_one_is_in_hand() -> None:
    taken = Preparing([InHand(1)], [InHand(2), InHand(3)], [InHand(4)])
    await taken.run()

    assert taken.handled == [[1], [2, 3], [4]]
    assert taken.prepared == [(1, [2, 3]), (2, [4])]


async def test_what_comes_back_is_not_prepared() -> None:
    taken = Preparing([InHand(1)], [InHand(2, 2), InHand(3)])
    await taken.run()

    assert taken.handled == [[1], [3], [2]]
    assert taken.prepared == []


@pytest.mark.parametrize("failure", [Unavailable("away"), KeyError("bug")])
async def test_a_batch_that_could_not_be_prepared_is_taken_all_the_same(failure: Exception) -> None:
    taken = Preparing([InHand(1)], [InHand(2)], failure=failure)
    await taken.run()

    assert taken.handled == [[1], [2]]
