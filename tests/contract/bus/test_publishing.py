"""What publishing promises: stored or refused, in order, all or nothing."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import BadRequest, Conflict, NotFound
from gardenbus.common.ports.bus import Message, StreamMessage
from tests.support.buses import BusUnderTest, replay, until_true
from tests.support.eventually import HANG_SECONDS


async def test_a_published_message_is_the_last_on_its_subject(under_test: BusUnderTest):
    bus, subject = under_test.bus, under_test.subjects.lease("seed-a")

    sequence = await bus.publish(Message(subject, b"body", {"Gardenbus-Version": "7", "Text": "grün: so"}))

    last = await bus.last(under_test.stream("LEASES"), subject)
    assert last is not None
    assert (last.sequence, last.body, last.marker) == (sequence, b"body", None)
    assert last.headers == {"Gardenbus-Version": "7", "Text": "grün: so"}
    assert abs(datetime.now(UTC) - last.at) < timedelta(seconds=HANG_SECONDS)


async def test_a_subject_without_messages_has_no_last_one(under_test: BusUnderTest):
    assert await under_test.bus.last(under_test.stream("LEASES"), under_test.subjects.lease("nobody")) is None


async def test_a_publish_on_an_expectation_that_does_not_hold_is_a_conflict(under_test: BusUnderTest):
    bus, subject = under_test.bus, under_test.subjects.lease("seed-a")
    first = await bus.publish(Message(subject, b"mine"), expected_subject_sequence=0)

    with pytest.raises(Conflict):
        await under_test.another.publish(Message(subject, b"not mine"), expected_subject_sequence=0)

    await bus.publish(Message(subject, b"again"), expected_subject_sequence=first)
    last = await bus.last(under_test.stream("LEASES"), subject)
    assert last is not None
    assert last.body == b"again"


@pytest.mark.parametrize("name", ["a b", "", "*", ">", "a..b", "a\r\nPUB x 0"])
async def test_a_subject_that_cannot_be_published_on_is_refused(under_test: BusUnderTest, name: str):
    with pytest.raises(BadRequest):
        await under_test.bus.publish(Message(f"{under_test.subjects.prefix}.lease.{name}"))


async def test_a_message_larger_than_the_bus_takes_is_refused_and_the_connection_stays(under_test: BusUnderTest):
    bus = under_test.bus

    with pytest.raises(BadRequest):
        await bus.publish(Message(under_test.subjects.rejected("garden.apply"), b"x" * 9_000_000))

    assert bus.connected
    assert await bus.publish(Message(under_test.subjects.rejected("garden.apply"), b"x" * 5_000_000)) == 1


async def test_a_line_break_in_a_header_forges_no_header(under_test: BusUnderTest):
    subject = under_test.subjects.lease("seed-a")
    await under_test.bus.publish(Message(subject, b"", {"Gardenbus-Reason": "one\r\nGardenbus-Fence: 9"}))

    last = await under_test.bus.last(under_test.stream("LEASES"), subject)
    assert last is not None
    assert "Gardenbus-Fence" not in last.headers


async def test_many_messages_are_all_stored(under_test: BusUnderTest):
    work = [Message(under_test.work(f"shoot-{number}")) for number in range(2500)]
    events = [Message(f"{under_test.subjects.prefix}.event.shoot.ns.s{number}") for number in range(5)]
    leases = [Message(under_test.subjects.lease(f"seed-{number}")) for number in range(20)]

    await under_test.bus.publish_many([*work, *events, *leases])

    counts = [
        len(await under_test.bus.subjects(under_test.stream(stream), ">")) for stream in ("QUEUES", "EVENTS", "LEASES")
    ]
    assert counts == [2500, 5, 20]


async def test_many_messages_are_all_stored_one_by_one_too(under_test: BusUnderTest):
    await under_test.another.publish_many([Message(under_test.work(f"shoot-{number}")) for number in range(2500)])

    assert len(await under_test.bus.subjects(under_test.stream("QUEUES"), ">")) == 2500


async def test_many_messages_may_name_one_subject_twice_and_the_last_stays(under_test: BusUnderTest):
    await under_test.bus.publish_many([Message(under_test.work("same"), str(number).encode()) for number in range(10)])

    last = await under_test.bus.last(under_test.stream("QUEUES"), under_test.work("same"))
    assert last is not None
    assert last.body == b"9"
    assert await under_test.bus.subjects(under_test.stream("QUEUES"), ">") == {under_test.work("same"): 1}


@pytest.mark.parametrize("groups", [True, False], ids=["in batches", "one by one"])
async def test_among_many_messages_one_that_is_refused_does_not_hold_back_the_others(
    under_test: BusUnderTest, groups: bool
):
    bus = under_test.bus if groups else under_test.another
    messages = [Message(under_test.work(f"shoot-{number}")) for number in range(20)]
    poison = Message(under_test.work("poison"), ttl=timedelta(seconds=HANG_SECONDS))  # QUEUES takes no TTL

    with pytest.raises(BadRequest):
        await bus.publish_many([*messages, poison])

    assert len(await under_test.bus.subjects(under_test.stream("QUEUES"), ">")) == 20


async def test_among_many_events_one_that_is_refused_does_not_hold_back_the_others(under_test: BusUnderTest):
    about = [ObjectKey("shoot", "garden-dev", f"shoot-{number}") for number in range(20)]
    events = [Message(under_test.subjects.event(key)) for key in about]
    events.insert(
        10, Message(under_test.subjects.event(ObjectKey("seed", "", "poison")), ttl=timedelta(seconds=HANG_SECONDS))
    )

    with pytest.raises(BadRequest):
        await under_test.another.publish_many(events)

    assert len(await under_test.bus.subjects(under_test.stream("EVENTS"), ">")) == 20


async def test_many_events_are_all_stored_once(under_test: BusUnderTest):
    about = [ObjectKey("shoot", "garden-dev", f"shoot-{number}") for number in range(1500)]
    await under_test.another.publish_many([Message(under_test.subjects.event(key)) for key in about])

    assert (await under_test.bus.position(under_test.stream("EVENTS"))).sequence == 1500


async def test_a_batch_is_stored_in_order_and_answers_its_last_sequence(under_test: BusUnderTest):
    last = await under_test.announce(*(f"shoot-{number}" for number in range(1000)))

    assert last == 1000
    async with under_test.bus.follow(under_test.stream("OBJECTS"), []) as follower:
        replayed = await replay(follower)
    assert [message.subject.rpartition(".")[2] for message in replayed] == [f"shoot-{n}" for n in range(1000)]
    assert [message.sequence for message in replayed] == list(range(1, 1001))


async def test_a_batch_of_one_and_a_batch_of_none_are_batches_too(under_test: BusUnderTest):
    assert await under_test.announce("only") == 1
    assert await under_test.bus.publish_batch(under_test.stream("OBJECTS"), [], expected_last_sequence=1) == 1


@pytest.mark.parametrize("whole", [True, False])
async def test_a_batch_after_somebody_elses_message_is_a_conflict_and_stores_nothing(
    under_test: BusUnderTest, whole: bool
):
    await under_test.announce("a", "b")
    batch = [Message(under_test.change("c")), Message(under_test.change("d"))]

    with pytest.raises(Conflict):
        await under_test.another.publish_batch(
            under_test.stream("OBJECTS"), batch, expected_last_sequence=1, whole=whole
        )

    assert (await under_test.bus.position(under_test.stream("OBJECTS"))).sequence == 2
    assert await under_test.bus.last(under_test.stream("OBJECTS"), under_test.change("c")) is None


async def test_a_whole_batch_with_one_message_that_is_refused_stores_nothing(under_test: BusUnderTest):
    batch = [Message(f"{under_test.subjects.prefix}.elsewhere"), Message(under_test.change("a"))]

    with pytest.raises(BadRequest):
        await under_test.bus.publish_batch(under_test.stream("OBJECTS"), batch, expected_last_sequence=0, whole=True)

    assert (await under_test.bus.position(under_test.stream("OBJECTS"))).sequence == 0


@pytest.mark.parametrize("position", [0, 1, 2])
async def test_another_batch_is_stored_up_to_the_message_that_is_refused(under_test: BusUnderTest, position: int):
    stream, batch = under_test.stream("BINDINGS"), _bindings(under_test, "a", "b")
    accepted = [message.subject for message in batch]
    batch.insert(position, _rejected(under_test))

    with pytest.raises(Conflict):
        await under_test.another.publish_batch(stream, batch, expected_last_sequence=0)

    assert set(await under_test.bus.subjects(stream, ">")) == set(accepted[:position])


async def test_a_batch_that_was_stored_in_part_is_stored_when_it_comes_again(under_test: BusUnderTest):
    stream, batch = under_test.stream("BINDINGS"), _bindings(under_test, "a", "b")
    with pytest.raises(Conflict):
        await under_test.another.publish_batch(stream, [*batch, _rejected(under_test)], expected_last_sequence=0)

    last = (await under_test.bus.position(stream)).sequence
    assert await under_test.another.publish_batch(stream, batch, expected_last_sequence=last) == last + len(batch)


def _bindings(under_test: BusUnderTest, *names: str) -> list[Message]:
    return [Message(under_test.subjects.binding("s1", "garden-dev", name)) for name in names]


def _rejected(under_test: BusUnderTest) -> Message:
    """What BINDINGS does not take: it knows no TTL."""
    return msgspec.structs.replace(*_bindings(under_test, "refused"), ttl=timedelta(seconds=HANG_SECONDS))


async def test_a_batch_of_more_than_a_thousand_is_refused(under_test: BusUnderTest):
    with pytest.raises(BadRequest):
        await under_test.announce(*(f"shoot-{number}" for number in range(1001)))


async def test_a_stream_keeps_the_last_message_of_each_subject(under_test: BusUnderTest):
    await under_test.announce("a", "b")
    await under_test.announce("a", body=b"new")

    assert await under_test.bus.subjects(under_test.stream("OBJECTS"), ">") == {
        under_test.change("a"): 1,
        under_test.change("b"): 1,
    }
    last = await under_test.bus.last(under_test.stream("OBJECTS"), under_test.change("a"))
    assert last is not None
    assert (last.sequence, last.body) == (3, b"new")


async def test_messages_are_read_in_pages_from_a_sequence(under_test: BusUnderTest):
    stream = under_test.stream("OBJECTS")
    assert await under_test.bus.messages_from(stream, ">", 0, 10) == []
    await under_test.announce(*(f"shoot-{number}" for number in range(25)))
    await under_test.announce("shoot-3", body=b"new")

    pages, sequence = list[Sequence[StreamMessage]](), 0
    while page := await under_test.bus.messages_from(stream, ">", sequence, 10):
        pages.append(page)
        sequence = page[-1].sequence + 1
    assert [len(page) for page in pages] == [10, 10, 5]
    read = {each.subject: (each.sequence, each.body) for page in pages for each in page}
    assert len(read) == 25
    assert read[under_test.change("shoot-3")] == (26, b"new")
    assert read[under_test.change("shoot-7")] == (8, b"{}")

    only = under_test.change("shoot-3")
    assert [each.sequence for each in await under_test.bus.messages_from(stream, only, 0, 10)] == [26]
    assert await under_test.bus.messages_from(stream, only, 27, 10) == []


async def test_messages_too_large_for_one_page_are_all_read(under_test: BusUnderTest):
    stream = under_test.stream("QUEUES")
    for number in range(4):
        await under_test.bus.publish(Message(under_test.work(f"large-{number}"), bytes(700_000)))
    found, sequence = 0, 0
    while page := await under_test.bus.messages_from(stream, f"{under_test.subjects.prefix}.queue.>", sequence, 500):
        found += len(page)
        sequence = page[-1].sequence + 1
    assert found == 4


async def test_a_message_with_a_ttl_ends_without_a_marker_and_the_sequence_stands(under_test: BusUnderTest):
    stream = under_test.stream("OBJECTS")
    tombstone = Message(under_test.change("gone"), ttl=timedelta(seconds=1))
    await under_test.bus.publish_batch(stream, [tombstone], expected_last_sequence=0)

    async def ended() -> bool:
        return await under_test.bus.last(stream, under_test.change("gone")) is None

    await until_true(ended)
    assert (await under_test.bus.position(stream)).sequence == 1


async def test_a_subject_written_again_survives_the_ttl_of_its_tombstone(under_test: BusUnderTest):
    stream = under_test.stream("OBJECTS")
    tombstones = [Message(under_test.change(name), ttl=timedelta(seconds=1)) for name in ("raised", "gone")]
    await under_test.bus.publish_batch(stream, tombstones, expected_last_sequence=0)
    await under_test.announce("raised", body=b"alive")

    async def ended() -> bool:
        return await under_test.bus.last(stream, under_test.change("gone")) is None

    await until_true(ended)
    last = await under_test.bus.last(stream, under_test.change("raised"))
    assert last is not None
    assert last.body == b"alive"


async def test_a_lease_that_is_not_renewed_ends_without_a_marker_and_is_acquired_anew(under_test: BusUnderTest):
    stream, lease = under_test.stream("LEASES"), under_test.subjects.lease("seed-a")
    await under_test.bus.publish(Message(lease, b"beat"))

    async def ended() -> bool:
        return await under_test.bus.last(stream, lease) is None

    await until_true(ended)
    assert (await under_test.bus.position(stream)).sequence == 1
    assert await under_test.bus.publish(Message(lease, b"beat"), expected_subject_sequence=0) == 2


async def test_purging_a_subject_removes_it_alone(under_test: BusUnderTest):
    await under_test.announce("a", "b")

    await under_test.bus.purge(under_test.stream("OBJECTS"), under_test.change("a"))

    assert list(await under_test.bus.subjects(under_test.stream("OBJECTS"), ">")) == [under_test.change("b")]
    assert (await under_test.bus.position(under_test.stream("OBJECTS"))).sequence == 2


async def test_a_bounded_purge_spares_what_is_younger(under_test: BusUnderTest):
    stream = under_test.stream("OBJECTS")
    await under_test.announce("a", "b", "a")

    await under_test.bus.purge(stream, under_test.change("a"), upto_sequence=2)
    assert len(await under_test.bus.subjects(stream, ">")) == 2
    await under_test.bus.purge(stream, under_test.change("a"), upto_sequence=3)

    assert list(await under_test.bus.subjects(stream, ">")) == [under_test.change("b")]
    assert (await under_test.bus.position(stream)).sequence == 3


async def test_what_is_asked_about_a_consumer_or_stream_that_is_not_there_is_not_found(under_test: BusUnderTest):
    with pytest.raises(NotFound):
        await under_test.bus.acknowledged_floor(under_test.stream("REQUESTS"), "nobody")
    with pytest.raises(NotFound):
        await under_test.bus.position("NOWHERE")


async def test_the_servers_clock_is_close_to_ours_and_goes_on(under_test: BusUnderTest):
    first = await under_test.bus.server_now(under_test.stream("QUEUES"))
    second = await under_test.bus.server_now(under_test.stream("QUEUES"))

    assert abs(datetime.now(UTC) - first) < timedelta(seconds=HANG_SECONDS)
    assert second >= first


async def test_what_waits_is_read_from_a_sequence_on(under_test: BusUnderTest) -> None:
    bus, stream = under_test.bus, under_test.stream("REQUESTS")
    assert await bus.first_from(stream, 0) is None
    subject = under_test.subjects.as_user("ann", "apply")
    first = await bus.publish(Message(subject, b"one", {"Gardenbus-Validate": "warn"}))
    second = await bus.publish(Message(under_test.subjects.delete, b"two"))
    found = await bus.first_from(stream, 0)
    assert found is not None
    assert (found.sequence, found.subject, found.body) == (first, subject, b"one")
    assert found.headers == {"Gardenbus-Validate": "warn"}
    behind = await bus.first_from(stream, first + 1)
    assert behind is not None
    assert (behind.sequence, behind.body) == (second, b"two")
    assert await bus.first_from(stream, second + 1) is None
