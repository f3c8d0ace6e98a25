"""Suspects: messages that came back from a process that may have died of them."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from gardenbus.common.controller.batch_consumer import BatchConsumer, BatchSettings
from gardenbus.common.controller.isolation import IsolatedResult, Isolation, Survived
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.bus import QueueMessage, StreamMessage
from tests.support.clocks import FakeClock

SETTINGS = BatchSettings(max_deliveries=3)


class Delivered:
    """A message that was delivered so often."""

    queued_ms = 1.0
    is_held_over = False

    def __init__(self, sequence: int, deliveries: int = 1) -> None:
        self.message = StreamMessage("garden.apply", b"", {}, sequence, datetime(2026, 1, 1, tzinfo=UTC))
        self.deliveries = deliveries
        self.ended: list[str] = []

    async def ack(self) -> None:
        self.ended.append("ack")

    async def release(self) -> None:
        self.ended.append("release")

    async def in_progress(self) -> None: ...


class Consuming:
    """A consumer whose suspects are handled elsewhere, with results that a test says."""

    def __init__(self, **results: IsolatedResult) -> None:
        self.results = results
        self.handled: list[list[int]] = []
        self.isolated: list[int] = []
        self.deadly: list[tuple[int, str]] = []
        self.rejected: list[int] = []
        self.failing = False
        self.away = 0
        self.consumer = BatchConsumer(
            "test",
            self,  # pyright: ignore[reportArgumentType]
            self.handle,
            reject=self.reject,
            clock=FakeClock(),
            settings=SETTINGS,
            isolation=Isolation(self.handle_isolated, self.reject_deadly),
        )

    async def handle(self, messages: Sequence[QueueMessage]) -> None:
        self.handled.append([each.message.sequence for each in messages])
        if self.failing:
            raise ValueError
        for each in messages:
            await each.ack()

    async def handle_isolated(self, consumer: str, message: QueueMessage) -> IsolatedResult:
        assert consumer == "test"
        if self.away:
            self.away -= 1
            raise Unavailable("no process")
        self.isolated.append(message.message.sequence)
        return self.results.get(f"m{message.message.sequence}", IsolatedResult(ended="acknowledged"))

    async def reject_deadly(self, message: QueueMessage, death: str) -> None:
        self.deadly.append((message.message.sequence, death))
        await message.ack()

    async def reject(self, message: QueueMessage) -> None:
        self.rejected.append(message.message.sequence)
        await message.ack()


async def test_what_a_process_died_of_counts_against_no_message_beside_it() -> None:
    killed = IsolatedResult(death="it used more than 10 s")
    consuming = Consuming(m2=killed)
    messages = [Delivered(sequence, deliveries=40) for sequence in (1, 2, 3)]
    await consuming.consumer.process(messages)

    assert consuming.isolated == [1, 2, 3]
    assert consuming.deadly == [(2, "it used more than 10 s")]
    assert [message.ended for message in messages] == [["ack"]] * 3
    assert (consuming.handled, consuming.rejected) == ([], [])


async def test_a_message_that_kills_its_handler_is_tried_once_more_and_no_oftener() -> None:
    consuming = Consuming(m1=IsolatedResult(death="it died"))
    await consuming.consumer.process([Delivered(1, deliveries=2)])
    assert consuming.deadly == [(1, "it died")]


async def test_new_messages_are_handled_together_and_here() -> None:
    consuming = Consuming()
    await consuming.consumer.process([Delivered(1), Delivered(2, deliveries=2), Delivered(3)])
    assert (consuming.handled, consuming.isolated) == ([[1, 3]], [2])


async def test_a_message_that_this_process_survived_is_no_suspect_and_is_rejected_when_it_failed_too_often() -> None:
    consuming = Consuming()
    consuming.failing = True
    for deliveries in range(1, SETTINGS.max_deliveries + 2):
        await consuming.consumer.process([Delivered(1, deliveries)])
    assert consuming.handled == [[1]] * SETTINGS.max_deliveries
    assert (consuming.isolated, consuming.rejected) == ([], [1])


async def test_a_suspect_whose_handler_raises_comes_back_until_it_was_delivered_too_often() -> None:
    consuming = Consuming(m1=IsolatedResult(error="ValueError()"))
    early, late = Delivered(1, SETTINGS.max_deliveries), Delivered(1, SETTINGS.max_deliveries + 2)
    await consuming.consumer.process([early])
    assert (early.ended, consuming.rejected) == (["release"], [])
    await consuming.consumer.process([late])
    assert (late.ended, consuming.rejected) == (["ack"], [1])


@pytest.mark.parametrize("ended", ["released", "kept"])
async def test_a_suspect_that_its_handler_did_not_finish_is_released(ended: str) -> None:
    consuming = Consuming(m1=IsolatedResult(ended=ended))  # pyright: ignore[reportArgumentType]
    message = Delivered(1, 2)
    await consuming.consumer.process([message])
    assert message.ended == ["release"]


async def test_a_suspect_waits_while_no_process_is_to_be_had() -> None:
    consuming = Consuming()
    consuming.away = 2
    message = Delivered(1, 9)
    await consuming.consumer.process([message])
    assert (consuming.isolated, message.ended) == ([1], ["ack"])


def test_only_so_many_messages_are_remembered() -> None:
    survived = Survived()
    survived.note([Delivered(sequence) for sequence in range(10_000)])
    assert survived.is_suspect(Delivered(1, 2))
    assert not survived.is_suspect(Delivered(9_999, 2))
