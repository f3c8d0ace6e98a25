"""The streams are what the module says, made once, and kept so."""

import asyncio
import json
from typing import Any

import pytest
from structlog.testing import capture_logs

from gardenbus.common.adapters.nats.jetstream import JetStreamBus, connect
from gardenbus.common.adapters.nats.streams import MAX_BYTES, MONITOR_PERIOD_SECONDS, StreamSettings, streams
from gardenbus.common.errors import SettingsInvalid, Unavailable
from gardenbus.common.ports.bus import Message
from tests.support.buses import BusUnderTest
from tests.support.servers import Server

Configuration = dict[str, Any]


async def configuration(under_test: BusUnderTest, name: str) -> Configuration:
    response = await under_test.bus.request(f"$JS.API.STREAM.INFO.{under_test.stream(name)}", b"")
    return json.loads(response)["config"]


async def change(under_test: BusUnderTest, name: str, **changes: Any) -> Configuration:
    config = await configuration(under_test, name)
    body = json.dumps(config | changes).encode()
    return json.loads(await under_test.bus.request(f"$JS.API.STREAM.UPDATE.{under_test.stream(name)}", body))


async def test_equal_streams_are_left_alone(jetstream: BusUnderTest):
    with capture_logs() as logs:
        await jetstream.bus.ensure_streams()

    assert logs == []


async def test_a_stream_that_differs_is_brought_back_and_what_an_operator_added_stays(jetstream: BusUnderTest):
    await change(jetstream, "BINDINGS", max_consumers=50, description="ours")

    await jetstream.bus.ensure_streams()

    config = await configuration(jetstream, "BINDINGS")
    assert config["max_consumers"] == 20_000
    assert config["description"] == "ours"


async def test_every_stream_says_what_it_is_for(jetstream: BusUnderTest):
    for name in streams(jetstream.subjects, MONITOR_PERIOD_SECONDS):
        response = json.loads(await jetstream.bus.request(f"$JS.API.STREAM.INFO.{name}", b""))
        assert response["config"].get("description"), name


async def test_a_stream_of_before_gets_its_description_and_keeps_its_messages(jetstream: BusUnderTest):
    await jetstream.announce("a")
    before = await jetstream.bus.position(jetstream.stream("OBJECTS"))
    await change(jetstream, "OBJECTS", description="")

    await jetstream.bus.ensure_streams()

    assert (await configuration(jetstream, "OBJECTS"))["description"]
    assert await jetstream.bus.position(jetstream.stream("OBJECTS")) == before


async def test_the_consumer_of_a_queue_says_whose_it_is(jetstream: BusUnderTest):
    stream = jetstream.stream("QUEUES")
    await jetstream.bus.work_queue(stream, "look", f"{jetstream.subjects.prefix}.queue.look.>")

    response = json.loads(await jetstream.bus.request(f"$JS.API.CONSUMER.INFO.{stream}.look", b""))

    assert response["config"]["description"] == "the replicas of look"


async def test_the_consumer_of_a_follower_says_whose_it_is(jetstream: BusUnderTest, shared_nats_server: Server):
    stream = jetstream.stream("OBJECTS")
    async with (
        connect(shared_nats_server.url, "scheduler-7", jetstream.subjects.prefix) as bus,
        bus.follow(stream, [f"{jetstream.subjects.prefix}.changed.>"]),
    ):
        response = json.loads(await jetstream.bus.request(f"$JS.API.CONSUMER.LIST.{stream}", b""))

    assert [each["config"]["description"] for each in response["consumers"]] == ["followed by scheduler-7"]


async def test_messages_survive_an_upgrade(jetstream: BusUnderTest):
    await jetstream.announce("a")
    before = await jetstream.bus.position(jetstream.stream("OBJECTS"))
    await change(jetstream, "OBJECTS", allow_direct=False)

    await jetstream.bus.ensure_streams()

    assert (await configuration(jetstream, "OBJECTS"))["allow_direct"]
    assert await jetstream.bus.position(jetstream.stream("OBJECTS")) == before


async def test_who_states_no_lease_time_leaves_it_to_who_does(jetstream: BusUnderTest, shared_nats_server: Server):
    async with connect(shared_nats_server.url, "apiserver", jetstream.subjects.prefix):
        config = await configuration(jetstream, "LEASES")
    assert config["max_age"] == 1_000_000_000

    settings = StreamSettings(lease_seconds=0.5)
    async with connect(shared_nats_server.url, "lifecycle", jetstream.subjects.prefix, streams=settings):
        config = await configuration(jetstream, "LEASES")
    assert config["max_age"] == 500_000_000


async def test_a_change_that_jetstream_refuses_is_an_invalid_setting(jetstream: BusUnderTest):
    subjects, name = jetstream.subjects, jetstream.stream("REPORTS")
    await jetstream.bus.request(f"$JS.API.STREAM.DELETE.{name}", b"")
    body = {"name": name, "subjects": [f"{subjects.prefix}.report.>"], "storage": "memory", "retention": "limits"}
    await jetstream.bus.request(f"$JS.API.STREAM.CREATE.{name}", json.dumps(body).encode())

    with pytest.raises(SettingsInvalid) as caught:
        await jetstream.bus.ensure_streams()

    assert len(caught.value.problems) == 1
    assert name in caught.value.problems[0]


async def test_work_has_no_limit_that_could_drop_it(jetstream: BusUnderTest):
    for name in ("QUEUES", "REQUESTS", "REPORTS"):
        config = await configuration(jetstream, name)
        assert config["retention"] == "workqueue"
        assert (config["max_msgs"], config["max_age"]) == (-1, 0)
        assert config["max_bytes"] == MAX_BYTES.get(name, -1)
        assert config["max_bytes"] == -1 or config["discard"] == "new"
    for name in ("OBJECTS", "BINDINGS", "LEASES"):
        assert (await configuration(jetstream, name))["max_bytes"] == -1


async def test_no_stream_gets_markers_of_the_servers(jetstream: BusUnderTest):
    for name in ("OBJECTS", "BINDINGS", "QUEUES", "EVENTS", "LEASES", "REPORTS", "REQUESTS"):
        assert not (await configuration(jetstream, name)).get("subject_delete_marker_ttl"), name


async def test_an_order_that_is_given_again_or_has_anothers_message_id_is_not_dropped(jetstream: BusUnderTest):
    """Of a manifest's hash for an id, or of a counter that two clients have."""
    subjects, ann, eve = jetstream.subjects, "developer:ann", "developer:eve"
    await change(jetstream, "REQUESTS", duplicate_window=120_000_000_000)  # as an older version made it
    await jetstream.bus.ensure_streams()
    orders = [
        (subjects.as_user(ann, "apply"), "apply-apollo"),
        (subjects.as_user(ann, "delete"), "delete-apollo"),
        (subjects.as_user(ann, "apply"), "apply-apollo"),
        (subjects.as_user(eve, "apply"), "delete-apollo"),
    ]
    stored: list[int] = []
    for subject, identity in orders:
        stored.append(await jetstream.bus.publish(Message(subject, b"{}", {"Nats-Msg-Id": identity})))
        await asyncio.sleep(0.25)
    assert stored == [1, 2, 3, 4]
    for name in ("REPORTS", "LEASES"):
        assert (await configuration(jetstream, name))["duplicate_window"] == 100_000_000


async def test_leases_of_an_older_version_lose_markers_and_rollups_in_place(jetstream: BusUnderTest):
    second, leases = 1_000_000_000, [jetstream.subjects.lease(name) for name in ("seed-a", "seed-b")]
    older = {"max_age": 60 * second, "duplicate_window": second, "subject_delete_marker_ttl": second}
    changed = await change(jetstream, "LEASES", **older)
    assert changed["config"]["allow_rollup_hdrs"]
    for lease in leases:
        await jetstream.bus.publish(Message(lease, b"beat"))
    before = await jetstream.bus.position(jetstream.stream("LEASES"))

    await jetstream.bus.ensure_streams()

    config = await configuration(jetstream, "LEASES")
    assert not config.get("subject_delete_marker_ttl")
    assert not config["allow_rollup_hdrs"]
    assert await jetstream.bus.position(jetstream.stream("LEASES")) == before
    with pytest.raises(Unavailable, match="rollup not permitted"):
        await jetstream.bus.publish(Message(leases[0], b"beat", headers={"Nats-Rollup": "all"}))


async def test_two_landscapes_on_one_server_do_not_see_each_other(jetstream: BusUnderTest, shared_nats_server: Server):
    other = f"{jetstream.subjects.prefix}-b"
    async with connect(shared_nats_server.url, "other", other) as bus:
        await bus.publish(Message(f"{other}.queue.look.ns.a"))
        assert (await jetstream.bus.position(jetstream.stream("QUEUES"))).sequence == 0


async def test_a_client_that_manages_no_streams_makes_none(nats_server: Server):
    async with connect(nats_server.url, "gardenlet", manages_streams=False) as bus:
        assert isinstance(bus, JetStreamBus)
        response = json.loads(await bus.request("$JS.API.STREAM.NAMES", b""))
    assert not response["streams"]
