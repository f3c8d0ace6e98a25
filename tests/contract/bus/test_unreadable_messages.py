"""Bytes that no client library sends reach their readers as messages, and end no connection."""

import asyncio

from gardenbus.common.adapters.nats.jetstream import JetStreamBus
from gardenbus.common.ports.bus import Message, StreamMessage
from tests.support.buses import BusUnderTest, fetch_until, names, next_event, replay
from tests.support.garbage import Garbage, RawPublisher
from tests.support.servers import Server

BROKEN_HEADERS = b"NATS/1.0\r\nno colon\r\n\xff: \xff\r\nGardenbus-Attempt: " + b"9" * 5000 + b"\r\n\r\n"


async def send(server: Server, *messages: Garbage) -> None:
    publisher = await RawPublisher.connect(server.url)
    for message in messages:
        await publisher.publish(message)
    assert await publisher.close() == []


async def test_a_queue_message_whose_subject_is_no_text_is_delivered_and_can_be_acknowledged(
    jetstream: BusUnderTest, shared_nats_server: Server
):
    queue = await jetstream.queue()
    assert isinstance(jetstream.bus, JetStreamBus)
    await send(shared_nats_server, Garbage(jetstream.work("\0").encode()[:-1] + b"\xff\xfe", BROKEN_HEADERS, b"\xff"))
    await jetstream.bus.publish(Message(jetstream.work("behind")))

    works = await fetch_until(queue, 2)

    assert names(works) == ["\ufffd\ufffd", "behind"]
    assert works[0].message.headers["Gardenbus-Attempt"] == "9" * 5000
    for work in works:
        await work.ack()
    await asyncio.sleep(0)
    assert jetstream.bus.connected
    assert await queue.fetch(1, 0.2) == []


async def test_a_follower_goes_on_behind_a_subject_that_is_no_text(jetstream: BusUnderTest, shared_nats_server: Server):
    prefix = jetstream.subjects.prefix
    async with jetstream.bus.follow(jetstream.stream("OBJECTS"), [f"{prefix}.changed.>"]) as follower:
        await replay(follower)
        await send(shared_nats_server, Garbage(f"{prefix}.changed.shoot.".encode() + b"\xff.x", b"", b"[" * 5000))
        await jetstream.bus.publish(Message(jetstream.change("behind")))

        events = [await next_event(follower) for _ in range(2)]

    assert [event.subject.rpartition(".")[2] for event in events if isinstance(event, StreamMessage)] == ["x", "behind"]
