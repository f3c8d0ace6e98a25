"""What we rely on, or guard against, in the nats-server that we ship: a new version that differs fails here."""

import asyncio
import json
from typing import Any

import pytest

from gardenbus.common.adapters.nats.jetstream import JetStreamBus
from gardenbus.common.adapters.nats.work_queue import JetStreamQueue
from gardenbus.common.errors import BadRequest, Conflict, SettingsInvalid, Unavailable
from gardenbus.common.ports.bus import Message
from tests.support.buses import BusUnderTest, until_true
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.servers import Server


async def api(under_test: BusUnderTest, endpoint: str, payload: Any = None) -> dict[str, Any]:
    body = b"" if payload is None else json.dumps(payload).encode()
    return json.loads(await under_test.bus.request(f"$JS.API.{endpoint}", body))


async def consumer(under_test: BusUnderTest, stream: str, name: str, **settings: Any) -> dict[str, Any]:
    config = {"name": name, "durable_name": name, "ack_policy": "explicit", **settings}
    return await api(under_test, f"CONSUMER.CREATE.{stream}.{name}", {"stream_name": stream, "config": config})


async def state(under_test: BusUnderTest, name: str) -> dict[str, Any]:
    return (await api(under_test, f"STREAM.INFO.{under_test.stream(name)}"))["state"]


async def test_a_message_id_is_remembered_per_stream_so_another_subjects_work_would_be_dropped(
    jetstream: BusUnderTest,
):
    """Why nothing of ours on QUEUES carries one."""
    for name in ("a", "b"):
        await jetstream.bus.publish(Message(jetstream.work(name), headers={"Nats-Msg-Id": "same"}))

    assert (await state(jetstream, "QUEUES"))["messages"] == 1


async def test_a_message_replaced_in_hand_gives_its_slot_to_the_new_one(jetstream: BusUnderTest):
    """Why a key can be in two hands, and why only the store decides."""
    stream = jetstream.stream("QUEUES")
    await consumer(jetstream, stream, "one", filter_subject=jetstream.subjects.queue_of("look"), max_ack_pending=1)
    assert isinstance(jetstream.bus, JetStreamBus)
    connection = jetstream.bus._connection  # pyright: ignore[reportPrivateUsage]
    queue = JetStreamQueue(connection, stream, "one", jetstream.subjects.queue_of("look"))
    await jetstream.bus.publish(Message(jetstream.work("a"), b"old"))
    (old,) = await queue.fetch(1, HANG_SECONDS)
    await jetstream.bus.publish(Message(jetstream.work("b"), b"waits"))
    assert await queue.fetch(1, 0.3) == []

    await jetstream.bus.publish(Message(jetstream.work("a"), b"new"))

    (next_one,) = await queue.fetch(1, HANG_SECONDS)
    await old.ack()
    await next_one.ack()
    (last_one,) = await queue.fetch(1, HANG_SECONDS)
    assert {next_one.message.body, last_one.message.body} == {b"waits", b"new"}


async def test_a_timer_in_the_past_fires_at_once(jetstream: BusUnderTest):
    """Why a timer is set by the server's clock and at least a second ahead."""
    queue = await jetstream.queue()
    headers = {"Nats-Schedule": "@at 2020-01-01T00:00:00Z", "Nats-Schedule-Target": jetstream.work("a")}
    await jetstream.bus.publish(Message(jetstream.subjects.later(jetstream.work("a")), headers=headers))

    assert len(await queue.fetch(1, HANG_SECONDS)) == 1


async def test_a_timer_cannot_have_its_target_in_another_stream(jetstream: BusUnderTest):
    headers = {"Nats-Schedule": "@at 2040-01-01T00:00:00Z", "Nats-Schedule-Target": jetstream.subjects.apply}
    with pytest.raises(BadRequest):
        await jetstream.bus.publish(Message(jetstream.subjects.later(jetstream.work("a")), headers=headers))


async def test_a_stream_with_schedules_cannot_discard_new_messages(jetstream: BusUnderTest):
    name = jetstream.stream("QUEUES")
    config = (await api(jetstream, f"STREAM.INFO.{name}"))["config"] | {"discard": "new"}

    assert (await api(jetstream, f"STREAM.UPDATE.{name}", config))["error"]["err_code"] == 10052


async def test_filters_of_a_work_queues_consumers_must_not_overlap(jetstream: BusUnderTest):
    await jetstream.queue("scheduling.mine")

    with pytest.raises(SettingsInvalid, match="10100"):
        await jetstream.bus.work_queue(jetstream.stream("QUEUES"), "greedy", jetstream.subjects.queue_of("scheduling"))


@pytest.mark.parametrize("whole", [True, False])
async def test_a_batch_of_somebody_who_was_paused_is_refused_whole(jetstream: BusUnderTest, whole: bool):
    """The zombie relay: it holds a sequence that was right before somebody else went on."""
    await jetstream.announce("a")
    zombie = [Message(jetstream.change("a"), b"stale"), Message(jetstream.change("b"), b"stale")]
    await jetstream.announce("a", body=b"fresh")

    with pytest.raises(Conflict, match="10071" if whole else "10070"):
        await jetstream.bus.publish_batch(jetstream.stream("OBJECTS"), zombie, expected_last_sequence=1, whole=whole)

    last = await jetstream.bus.last(jetstream.stream("OBJECTS"), jetstream.change("a"))
    assert last is not None
    assert last.body == b"fresh"


@pytest.mark.parametrize("whole", [True, False])
async def test_two_batches_that_expect_the_same_sequence_cannot_both_be_stored(jetstream: BusUnderTest, whole: bool):
    batches = [[Message(jetstream.change(f"{who}{number}")) for number in range(200)] for who in "ab"]

    results = await asyncio.gather(
        *(
            bus.publish_batch(jetstream.stream("OBJECTS"), batch, expected_last_sequence=0, whole=whole)
            for bus, batch in zip((jetstream.bus, jetstream.another), batches, strict=True)
        ),
        return_exceptions=True,
    )

    assert sorted(str(type(result)) for result in results) == sorted(map(str, (int, Conflict)))
    assert (await state(jetstream, "OBJECTS"))["messages"] == 200


async def test_messages_that_each_expect_a_sequence_let_in_somebody_who_was_paused(jetstream: BusUnderTest):
    """Why a batch's messages are chained by ids instead."""
    await jetstream.announce("first", "second", "third")
    chain = [Message(jetstream.change(f"late{number}")) for number in range(3)]

    for expected, message in enumerate(chain[:2], 1):
        with pytest.raises(Conflict):
            await jetstream.another.publish_batch(
                jetstream.stream("OBJECTS"), [message], expected_last_sequence=expected
            )

    stored = await jetstream.another.publish_batch(jetstream.stream("OBJECTS"), chain[2:], expected_last_sequence=3)
    assert stored == 4, "the stream has come to where the third expects it"


async def test_messages_that_each_expect_their_predecessors_id_let_in_nobody_who_was_paused(jetstream: BusUnderTest):
    """Wherever the pause was: what is still on its way then comes to nothing, though its sequence would be right."""
    await jetstream.announce("before")
    chain = [_linked(jetstream, "late", number) for number in range(1, 5)]
    for message in chain[:2]:
        await jetstream.another.publish(message)
    await jetstream.bus.publish(_linked(jetstream, "other", 1))

    for message in chain[2:]:
        with pytest.raises(BadRequest, match="10070"):
            await jetstream.another.publish(message)
    assert (await jetstream.bus.position(jetstream.stream("OBJECTS"))).sequence == 4


async def test_an_id_is_the_last_one_no_more_once_a_message_without_any_follows(jetstream: BusUnderTest):
    """A batch of one, or an atomic one, carries no ids and breaks a chain all the same."""
    await jetstream.another.publish(_linked(jetstream, "late", 1))
    await jetstream.announce("other")

    with pytest.raises(BadRequest, match="10070"):
        await jetstream.another.publish(_linked(jetstream, "late", 2))


def _linked(under_test: BusUnderTest, chain: str, number: int) -> Message:
    expected = {"Nats-Expected-Last-Msg-Id": f"{chain}.{number - 1}"} if number > 1 else {}
    return Message(under_test.change(f"{chain}-{number}"), headers={"Nats-Msg-Id": f"{chain}.{number}", **expected})


async def test_a_repeated_id_refuses_its_whole_batch(jetstream: BusUnderTest):
    """Why atomic batches carry none, and a chain's are never sent twice."""
    batch = [Message(jetstream.change(name), headers={"Nats-Msg-Id": name}) for name in "ab"]
    await jetstream.bus.publish_batch(jetstream.stream("OBJECTS"), batch, expected_last_sequence=0, whole=True)

    with pytest.raises(BadRequest, match="10201"):
        await jetstream.bus.publish_batch(jetstream.stream("OBJECTS"), batch, expected_last_sequence=2, whole=True)


async def test_what_a_purged_message_had_replaced_is_back_after_a_kill(own: BusUnderTest, nats_server: Server):
    """Why a gardenlet takes nothing on the word of a replay alone: a tombstone that was purged may have been the last.

    What a limit removes is noted nowhere; the server applies the limits again when it starts, and finds the older one
    to be the last of its subject now.
    """
    stream, subject = own.stream("BINDINGS"), own.subjects.binding("aws-eu1", "garden-dev", "apollo")
    for body in (b"runs here", b"gone"):
        await own.bus.publish(Message(subject, body))
        await own.bus.publish(Message(own.subjects.binding("aws-eu1", "garden-dev", body.split()[0].decode())))
    await own.bus.purge(stream, subject)
    assert await own.bus.last(stream, subject) is None

    nats_server.kill()
    nats_server.start()

    async def is_back() -> bool:
        try:
            last = await own.bus.last(stream, subject)
        except Unavailable:
            return False
        return last is not None and last.body == b"runs here"

    await until_true(is_back)


async def test_bindings_take_more_than_a_thousand_consumers(jetstream: BusUnderTest):
    stream = jetstream.stream("BINDINGS")
    for start in range(0, 1050, 150):
        responses = await asyncio.gather(
            *(
                consumer(
                    jetstream,
                    stream,
                    f"seed-{number}",
                    ack_policy="none",
                    mem_storage=True,
                    filter_subject=jetstream.subjects.bindings_of(f"seed-{number}"),
                )
                for number in range(start, start + 150)
            )
        )
        assert not [response for response in responses if "error" in response]
    assert (await state(jetstream, "BINDINGS"))["consumer_count"] == 1050
    await api(jetstream, f"STREAM.DELETE.{stream}")


async def test_a_renewed_lease_lives_on_and_no_ttl_is_taken(jetstream: BusUnderTest):
    renewed, silent = jetstream.subjects.lease("renewed"), jetstream.subjects.lease("silent")
    with pytest.raises(BadRequest, match="TTL"):
        await jetstream.bus.publish(Message(silent, headers={"Nats-TTL": "never"}))
    await jetstream.bus.publish(Message(silent))

    async def expired() -> None:
        await jetstream.bus.publish(Message(renewed))
        found = [await jetstream.bus.last(jetstream.stream("LEASES"), lease) for lease in (renewed, silent)]
        assert [lease is None for lease in found] == [False, True]

    await eventually(expired)


async def test_a_naked_message_below_later_stays_and_is_no_work(jetstream: BusUnderTest):
    queue = await jetstream.queue()
    await jetstream.bus.publish(Message(jetstream.subjects.later(jetstream.work("a"))))

    assert await queue.fetch(1, 0.5) == []
    assert (await state(jetstream, "QUEUES"))["messages"] == 1


async def test_a_request_of_five_megabytes_is_taken(jetstream: BusUnderTest):
    assert await jetstream.bus.publish(Message(jetstream.subjects.apply, b"x" * 5_000_000)) == 1
