"""Consumers of others leave room for the services' own."""

import asyncio

import msgspec

from gardenbus.common.adapters.nats.jetstream import JetStreamBus, connect
from gardenbus.common.adapters.nats.streams import MAX_CONSUMERS
from gardenbus.common.api.keys import Subjects
from tests.support.eventually import HANG_SECONDS
from tests.support.servers import Server

FOREIGN = 1200
"""More than JetStream allows a stream for which nothing is said."""


async def test_more_than_a_thousand_foreign_consumers_keep_no_service_from_following(nats_server: Server) -> None:
    async with connect(nats_server.url, "services") as bus:
        await bus.ensure_streams()
        for start in range(0, FOREIGN, 100):
            await asyncio.gather(*(_foreign_consumer(bus, number) for number in range(start, start + 100)))
        async with bus.follow("OBJECTS", [Subjects().changed_kind("shoot")]) as follower:
            assert follower.silent_seconds < 60


async def test_a_stream_that_was_made_without_that_room_gets_it(nats_server: Server) -> None:
    async with connect(nats_server.url, "services") as bus:
        await bus.ensure_streams()
        connection = bus.connection
        await connection.request_raw("$JS.API.STREAM.DELETE.OBJECTS", b"", timeout_seconds=HANG_SECONDS)
        older = {"name": "OBJECTS", "subjects": ["garden.changed.>"], "storage": "file", "allow_msg_ttl": True}
        await connection.request_raw(
            "$JS.API.STREAM.CREATE.OBJECTS", msgspec.json.encode(older), timeout_seconds=HANG_SECONDS
        )
        await bus.ensure_streams()
        response = await connection.request_raw("$JS.API.STREAM.INFO.OBJECTS", b"", timeout_seconds=HANG_SECONDS)
        assert msgspec.json.decode(response.body)["config"]["max_consumers"] == MAX_CONSUMERS


async def _foreign_consumer(bus: JetStreamBus, number: int) -> None:
    config = {"name": f"foreign{number}", "ack_policy": "none", "inactive_threshold": 60 * 10**9}
    body = msgspec.json.encode({"stream_name": "OBJECTS", "config": config, "action": "create"})
    response = await bus.connection.request_raw(
        f"$JS.API.CONSUMER.CREATE.OBJECTS.foreign{number}", body, timeout_seconds=30
    )
    assert "error" not in msgspec.json.decode(response.body), response.body
