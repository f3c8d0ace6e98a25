"""Incarnations of messages that a consumer holds while its stream goes back."""

import asyncio
from datetime import timedelta

import pytest

from gardenbus.common.api.keys import Subjects
from gardenbus.common.controller.stream_incarnation import DEPOSED_SECONDS, StreamIncarnation
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.bus import Message, QueueMessage
from tests.support.clocks import FakeClock
from tests.support.memory.bus import MemoryBus
from tests.support.memory.store import MemoryStore

SUBJECTS = Subjects()


class Requests:
    """REQUESTS in memory, a consumer of it, and its incarnation."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.store, self.bus = MemoryStore(self.clock), MemoryBus(self.clock)
        self.incarnation = StreamIncarnation(self.bus, self.store, "REQUESTS")

    async def publish(self, count: int) -> list[QueueMessage]:
        """Publish one a second, and fetch what is there."""
        for _ in range(count):
            self.clock.advance(timedelta(seconds=1).total_seconds())
            await self.bus.publish(Message(SUBJECTS.apply))
        queue = await self.bus.work_queue("REQUESTS", "apiserver", SUBJECTS.apply)
        return list(await queue.fetch(100, 0))


async def test_what_was_fetched_from_a_stream_that_went_back_is_older_than_what_it_stores_now() -> None:
    requests = Requests()
    copy = requests.bus.server.copy_streams()
    held = await requests.publish(4)
    first = set(await requests.incarnation.of(held))
    requests.bus.server.restore_streams(copy)
    before, *rest = held
    assert await requests.incarnation.of([before]) == [*first], "nobody has noticed yet"
    await requests.incarnation.position()
    assert set(await requests.incarnation.of(rest)) == first
    again = await requests.publish(2)
    assert [each.message.sequence for each in again] == [1, 2]
    second = await requests.incarnation.of(again)
    assert min(second) > max(first)
    assert set(await requests.incarnation.of(rest)) == first


async def test_what_was_fetched_and_never_observed_is_older_than_what_a_stream_that_went_back_stores() -> None:
    requests = Requests()
    copy = requests.bus.server.copy_streams()
    first = set(await requests.incarnation.of(await requests.publish(2)))
    held = await requests.publish(2)  # its consumer could not reach the store
    requests.bus.server.restore_streams(copy)
    second = set(await requests.incarnation.of(await requests.publish(1)))
    assert min(second) > max(first)
    raised = (await requests.incarnation.position()).created
    assert set(await requests.incarnation.of(held)) == first
    await requests.incarnation.of(await requests.publish(1))
    assert (await requests.incarnation.position()).created == raised, "it went back once"


@pytest.mark.parametrize("waiting", [0, 1], ids=["all were acknowledged", "one waited"])
async def test_a_stream_that_went_back_and_grew_past_what_was_known_is_noticed_before_its_last_messages_count(
    waiting: int,
) -> None:
    requests = Requests()
    another = StreamIncarnation(requests.bus, requests.store, "REQUESTS")
    before = await requests.publish(waiting)
    copy = requests.bus.server.copy_streams()
    taken = [*before, *await requests.publish(4)]
    first = set(await requests.incarnation.of(taken))
    for each in taken:
        await each.ack()
    requests.bus.server.restore_streams(copy)
    grown = await requests.publish(6)
    await asyncio.gather(requests.incarnation.refresh(), another.refresh())
    since = [each for each in grown if each.message.sequence > waiting]
    last = set(await another.of(since[4:]))
    assert min(last) > max(first)
    assert set(await requests.incarnation.of(since[:4])) == last
    assert set(await requests.incarnation.of(grown[:waiting])) <= first


async def test_what_a_new_connection_delivers_waits_for_the_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    requests = Requests()
    copy = requests.bus.server.copy_streams()
    first = set(await requests.incarnation.of(await requests.publish(2)))
    requests.bus.server.restore_streams(copy)
    grown = await requests.publish(4)
    requests.bus.cut()
    with pytest.raises(Unavailable):
        await requests.incarnation.refresh()
    await requests.bus.mend()
    monkeypatch.setattr(type(grown[3]), "is_held_over", False)
    assert min(await requests.incarnation.of(grown[3:])) > max(first)


async def test_what_is_held_of_a_stream_that_was_created_anew_is_of_the_lost_one() -> None:
    requests = Requests()
    first = set(await requests.incarnation.of(await requests.publish(1)))
    held = await requests.publish(2)
    requests.bus.server.recreate("REQUESTS")
    second = set(await requests.incarnation.of(await requests.publish(3)))
    assert min(second) > max(first)
    assert set(await requests.incarnation.of(held)) == first


async def test_what_a_stream_that_went_back_stored_stays_of_it_over_another_outage() -> None:
    requests = Requests()
    copy = requests.bus.server.copy_streams()
    await requests.incarnation.of(await requests.publish(4))
    requests.bus.server.restore_streams(copy)
    raised = (await requests.incarnation.position()).created
    held = await requests.publish(2)
    requests.bus.cut()
    await requests.bus.mend()
    assert set(await requests.incarnation.of(held)) == {raised}


async def test_a_leader_that_lacks_what_is_held_is_not_believed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    requests = Requests()
    lost = requests.bus.server.copy_streams()
    first = set(await requests.incarnation.of(await requests.publish(2)))
    requests.bus.server.restore_streams(lost)
    await requests.incarnation.position()
    requests.bus.server.copies = 3
    loop, passed = asyncio.get_running_loop(), 0.0
    began = loop.time()
    monkeypatch.setattr(loop, "time", lambda: began + passed)
    cut_off, held = requests.bus.server.copy_streams(), await requests.publish(1)
    requests.bus.server.restore_streams(cut_off)
    with pytest.raises(Unavailable, match="another server may lead it"):
        await requests.incarnation.of(held)
    passed += DEPOSED_SECONDS
    assert set(await requests.incarnation.of(held)) == first, "nobody has noticed that it went back again"


async def test_what_was_held_over_raises_no_other_incarnation() -> None:
    requests = Requests()
    copy = requests.bus.server.copy_streams()
    held = await requests.publish(4)
    await requests.incarnation.of(held)
    requests.bus.server.restore_streams(copy)
    raised = (await requests.incarnation.position()).created
    await requests.incarnation.of(held)
    assert (await requests.incarnation.position()).created == raised


async def test_what_is_held_over_an_outage_of_the_connection_alone_is_observed() -> None:
    requests = Requests()
    held = await requests.publish(2)
    (incarnation,) = set(await requests.incarnation.of(held[:1]))
    requests.bus.cut()
    await requests.bus.mend()
    assert held[1].is_held_over
    assert await requests.incarnation.of(held) == [incarnation] * 2
    history = await requests.store.observe_stream("REQUESTS", (await requests.bus.position("REQUESTS")).created)
    assert history.sequence == 2


async def test_a_leader_of_a_cluster_that_lacks_what_another_stored_is_not_believed_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    requests = Requests()
    requests.bus.server.copies = 3
    loop, passed = asyncio.get_running_loop(), 0.0
    began = loop.time()
    monkeypatch.setattr(loop, "time", lambda: began + passed)
    cut_off = requests.bus.server.copy_streams()
    await requests.incarnation.of(await requests.publish(4))
    present, existing = requests.bus.server.copy_streams(), await requests.incarnation.position()
    for _ in range(3):  # both answer by turns, until the one that was cut off hears of the other
        requests.bus.server.restore_streams(cut_off)
        with pytest.raises(Unavailable, match="another server may lead it"):
            await requests.incarnation.position()
        requests.bus.server.restore_streams(present)
        passed += DEPOSED_SECONDS
        assert await requests.incarnation.position() == existing

    requests.bus.server.restore_streams(cut_off)
    with pytest.raises(Unavailable):
        await requests.incarnation.position()
    passed += DEPOSED_SECONDS
    assert (await requests.incarnation.position()).created > existing.created, "it did go back"


async def test_a_leader_that_was_cut_off_long_ago_proves_nothing_of_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    requests = Requests()
    requests.bus.server.copies = 3
    loop, passed = asyncio.get_running_loop(), 0.0
    began = loop.time()
    monkeypatch.setattr(loop, "time", lambda: began + passed)
    cut_off = requests.bus.server.copy_streams()
    await requests.incarnation.of(await requests.publish(4))
    existing = await requests.incarnation.position()
    requests.bus.server.restore_streams(cut_off)
    with pytest.raises(Unavailable):
        await requests.incarnation.position()
    passed += 3600  # nobody asked meanwhile
    with pytest.raises(Unavailable):
        await requests.incarnation.position()
    for _ in range(3):
        passed += DEPOSED_SECONDS / 4
        with pytest.raises(Unavailable):
            await requests.incarnation.position()
    passed += DEPOSED_SECONDS / 4
    assert (await requests.incarnation.position()).created > existing.created, "it did go back"
