"""The store's memory of streams: a raised incarnation tells what came after a stream went back."""

import time

import pytest

from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.store import EventRecord
from gardenbus.common.ports.stream_history import StreamEntry
from gardenbus.relay.ports.outbox import EventEntry
from tests.support.stores import StoreUnderTest

CREATED = 1_767_323_045_123_456_789
T = 1_767_323_050_000_000
REQUESTS = "REQUESTS"


def entries(*pairs: tuple[int, int]) -> list[StreamEntry]:
    return [StreamEntry(sequence, T + second * 1_000_000) for sequence, second in pairs]


async def test_what_is_redelivered_or_overtaken_raises_nothing(kit: StoreUnderTest) -> None:
    for seen in ([(5, 5), (6, 6)], [(5, 5)], [(1, 1), (2, 2)], [(9, 9)], [(7, 7)]):
        history = await kit.store.observe_stream(REQUESTS, CREATED, entries(*seen))
        assert history.incarnation == CREATED
    assert history.sequence == 9
    assert (await kit.store.observe_stream(REQUESTS, CREATED, last_sequence=12)).sequence == 12
    assert (await kit.store.observe_stream("REPORTS", CREATED)).sequence == 0


async def test_a_clock_that_was_set_back_raises_nothing(kit: StoreUnderTest) -> None:
    for seen in ([(5, 3600)], [(6, 6)], [(5, 3600)], [(7, 7)]):
        assert (await kit.store.observe_stream(REQUESTS, CREATED, entries(*seen))).incarnation == CREATED


async def test_a_younger_message_at_a_known_sequence_raises_the_incarnation(kit: StoreUnderTest) -> None:
    await kit.store.observe_stream(REQUESTS, CREATED, entries((3, 3), (9, 9)))
    history = await kit.store.observe_stream(REQUESTS, CREATED, entries((3, 3), (5, 20), (6, 21)))
    assert history.incarnation > CREATED
    assert history.sequence == 6
    old, new, later = entries((3, 3), (5, 20), (30, 30))
    assert [history.incarnation_of(entry) for entry in (old, new, later)] == [
        CREATED,
        history.incarnation,
        history.incarnation,
    ]
    assert (await kit.store.observe_stream(REQUESTS, CREATED, entries((7, 22)))).incarnation == history.incarnation


@pytest.mark.parametrize("created", [CREATED, CREATED - 1])
async def test_whoever_notices_first_restarts_it_once(kit: StoreUnderTest, created: int) -> None:
    await kit.store.observe_stream(REQUESTS, CREATED, entries((9, 9)))
    first = await kit.store.restart_stream(REQUESTS, created, 4, seen=CREATED)
    assert first.incarnation > CREATED
    assert (first.created, first.sequence) == (created, 4)
    second = await kit.store.restart_stream(REQUESTS, created, 5, seen=CREATED)
    assert (second.incarnation, second.sequence) == (first.incarnation, 5)
    kept, behind = entries((4, 4), (5, 5))  # the second by a server whose clock is behind
    assert [first.incarnation_of(kept), first.incarnation_of(behind)] == [CREATED, first.incarnation]
    never_observed, since = entries((10, 10), (5, 11))
    assert first.incarnation_of(never_observed, is_lost=True) == CREATED
    assert first.incarnation_of(since) == first.incarnation


async def test_a_younger_stream_is_another_incarnation_and_an_older_one_changes_nothing(kit: StoreUnderTest) -> None:
    await kit.store.observe_stream(REQUESTS, CREATED, entries((9, 9)))
    history = await kit.store.observe_stream(REQUESTS, CREATED + 7, entries((1, 20)))
    assert (history.created, history.incarnation, history.sequence) == (CREATED + 7, CREATED + 7, 1)
    late = await kit.store.observe_stream(REQUESTS, CREATED, entries((50, 50)))
    assert late == history


async def test_incarnations_grow_when_the_clock_is_behind(kit: StoreUnderTest) -> None:
    ahead = time.time_ns() + 10**18
    for number in range(3):
        history = await kit.store.observe_stream(REQUESTS, ahead, last_sequence=9)
        assert history.incarnation == ahead + number
        await kit.store.restart_stream(REQUESTS, ahead, 1, seen=history.incarnation)


async def test_what_a_stream_has_lost_is_noted_with_what_waited(kit: StoreUnderTest) -> None:
    await kit.store.observe_stream(REQUESTS, CREATED, last_sequence=9, acknowledged=6)
    await kit.store.restart_stream(REQUESTS, CREATED, 4, seen=CREATED, ended_at="2026-01-01T00:00:00Z")
    await kit.store.observe_stream("REPORTS", CREATED, entries((3, 3), (9, 9)))
    await kit.store.observe_stream("REPORTS", CREATED, entries((5, 20)))
    await kit.store.observe_stream("EVENTS", CREATED, last_sequence=7)
    await kit.store.observe_stream("EVENTS", CREATED + 1, last_sequence=2)
    found = [(each.stream, each.first, each.last, each.waiting) for each in await kit.store.stream_losses()]
    assert found == [(REQUESTS, 5, 9, 3), ("REPORTS", 5, 9, 5), ("EVENTS", 1, 7, 7)]
    (loss, *_, of_events) = await kit.store.stream_losses()
    assert "carried out" not in of_events.text, "nobody carries out an Event"
    assert loss.since == "2026-01-01T00:00:00Z"
    assert loss.till
    assert "REQUESTS has lost messages 5 to 9 (stored after 2026-01-01T00:00:00Z until" in loss.text
    assert "3 of them, from 7 on, had not been carried out" in loss.text


async def test_a_stream_that_lost_nothing_is_no_loss(kit: StoreUnderTest) -> None:
    await kit.store.observe_stream(REQUESTS, CREATED)
    await kit.store.observe_stream(REQUESTS, CREATED + 1)
    await kit.store.observe_stream(REQUESTS, CREATED + 1, last_sequence=5)
    await kit.store.restart_stream(REQUESTS, CREATED + 1, 5, seen=CREATED + 1)
    assert await kit.store.stream_losses() == ()


async def test_what_was_acknowledged_and_the_store_has_not_seen_is_noted_once(closed: StoreUnderTest) -> None:
    await closed.outbox.lead(86_400)
    assert await closed.outbox.compare_stream(REQUESTS, CREATED, 8)
    assert not await closed.outbox.compare_stream(REQUESTS, CREATED, 8)
    assert not await closed.outbox.compare_stream("REPORTS", CREATED, 0)
    (loss,) = await closed.store.stream_losses()
    assert (loss.first, loss.last, loss.waiting, loss.of_store) == (1, 8, 0, True)
    assert "carried out in a store that was lost" in loss.text


async def test_a_loss_is_reported_once(kit: StoreUnderTest) -> None:
    await kit.store.observe_stream(REQUESTS, CREATED, last_sequence=9)
    await kit.store.restart_stream(REQUESTS, CREATED, 4, seen=CREATED)
    (loss,) = await kit.store.stream_losses()
    event = EventRecord(ObjectKey("namespace", "", "garden"), "", "Warning", "MessagesLost", loss.text, "relay")
    await kit.fresh_entries()
    assert await kit.outbox.report_loss(loss, event)
    assert not await kit.outbox.report_loss(loss, event)
    (entry,) = await kit.fresh_entries()
    assert isinstance(entry, EventEntry)
    assert entry.event == event
