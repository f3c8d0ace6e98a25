"""Hints of shoots that were just created."""

import asyncio
from collections import Counter
from collections.abc import Sequence

import pytest

from gardenbus.common.api.keys import Subjects
from gardenbus.common.api.scheduling_hints import SHOOTS_MAX, HintedShoot, decode_hint, encode_hint
from gardenbus.common.controller.scheduling_hints import FairHints, HintReceiver
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.bus import QueueMessage
from tests.support.clocks import FakeClock
from tests.support.eventually import HANG_SECONDS
from tests.support.memory.bus import MemoryBus

SUBJECTS = Subjects()


class Binder:
    """Notes what is to be bound, and fails if it is to."""

    def __init__(self) -> None:
        self.hinted: list[QueueMessage] = []
        self.error: Exception | None = None
        self.receiver = HintReceiver(self.bind_early, SUBJECTS, FakeClock(), "mine")

    async def bind_early(self, hinted: Sequence[QueueMessage]) -> None:
        self.hinted += hinted
        if self.error is not None:
            raise self.error

    @property
    def subjects(self) -> list[str]:
        return [each.message.subject for each in self.hinted]


async def test_shoots_of_hints_are_bound_together_and_each_once() -> None:
    binder, bus = Binder(), MemoryBus(FakeClock())
    await binder.receiver.subscribe(bus)
    for names in (("a", "b"), ("b", "c")):
        bus.notify("garden.hint.scheduling.mine", encode_hint([HintedShoot("garden-dev", name) for name in names]))

    await binder.receiver.bind()

    assert binder.subjects == [f"garden.queue.scheduling.mine.garden-dev.{name}" for name in "abc"]


async def test_the_trace_of_the_request_goes_on() -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    binder = Binder()
    binder.receiver.take(encode_hint([HintedShoot("garden-dev", "a", trace)]))
    await binder.receiver.bind()
    assert [each.message.headers for each in binder.hinted] == [{"traceparent": trace}]


async def test_what_is_more_than_one_call_binds_is_left_to_the_queue() -> None:
    binder = Binder()
    for start in (0, 60):
        binder.receiver.take(encode_hint([HintedShoot("garden-dev", f"s{start + number}") for number in range(60)]))
    await binder.receiver.bind()
    assert len(binder.hinted) == SHOOTS_MAX


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b'{"shoots": [{"name": "a"}]}', b"\xff", b"[" * 100_000])
def test_what_is_no_hint_names_no_shoot(body: bytes) -> None:
    assert decode_hint(body) == ()


def test_a_hint_of_a_later_version_is_read_as_far_as_it_is_known() -> None:
    body = b'{"shoots": [{"namespace": "garden-dev", "name": "a", "since": 7}], "more": true}'
    assert decode_hint(body) == [HintedShoot("garden-dev", "a")]


@pytest.mark.parametrize("error", [Unavailable("Redis is away"), RuntimeError("a bug")])
async def test_a_hint_that_fails_is_dropped_and_the_next_one_is_followed(error: Exception) -> None:
    binder = Binder()
    following = asyncio.create_task(binder.receiver.run())
    binder.error = error
    binder.receiver.take(encode_hint([HintedShoot("garden-dev", "a")]))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    binder.error = None
    binder.receiver.take(encode_hint([HintedShoot("garden-dev", "b")]))
    async with asyncio.timeout(HANG_SECONDS):
        while len(binder.hinted) < 2:
            await asyncio.sleep(0)
    following.cancel()
    assert binder.subjects == [f"garden.queue.scheduling.mine.garden-dev.{name}" for name in "ab"]


async def test_a_message_that_was_not_fetched_takes_an_end_without_a_word() -> None:
    binder = Binder()
    binder.receiver.take(encode_hint([HintedShoot("garden-dev", "a")]))
    await binder.receiver.bind()
    (message,) = binder.hinted
    await message.in_progress()
    await message.ack()
    await message.release()
    assert (message.deliveries, message.is_held_over) == (0, False)


async def test_a_project_with_few_shoots_is_hinted_among_the_thousands_of_another() -> None:
    binder = Binder()
    for number in range(3 * SHOOTS_MAX):
        binder.receiver.take(encode_hint([HintedShoot("garden-many", f"s{number}")]))
    binder.receiver.take(encode_hint([HintedShoot("garden-few", "a"), HintedShoot("garden-few", "b")]))
    await binder.receiver.bind()
    assert len(binder.hinted) == SHOOTS_MAX
    assert [each for each in binder.subjects if ".garden-few." in each] == [
        "garden.queue.scheduling.mine.garden-few.a",
        "garden.queue.scheduling.mine.garden-few.b",
    ]
    assert "garden.queue.scheduling.mine.garden-many.s0" in binder.subjects


def test_no_project_keeps_more_hints_than_one_above_another() -> None:
    hints = FairHints()
    for number in range(5 * SHOOTS_MAX):
        for project, often in (("a", 1), ("b", 5), ("c", 25)):
            if number % often == 0:
                hints.add(HintedShoot(project, str(number)))
    counts = Counter(each.namespace for each in hints.take())
    assert counts.total() == SHOOTS_MAX
    assert counts["c"] == 5 * SHOOTS_MAX // 25
    assert abs(counts["a"] - counts["b"]) <= 1
    assert not hints.take()
