"""An agent's own consumer is in the memory of one server of a cluster, which may go down for good."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from gardenbus.common.adapters.nats import own_follower
from gardenbus.common.adapters.nats.api import call
from gardenbus.common.adapters.nats.connection import Connection
from gardenbus.common.adapters.nats.jetstream import JetStreamBus, connect
from gardenbus.common.adapters.nats.own_follower import OwnFollower
from gardenbus.common.adapters.nats.streams import StreamSettings
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.bus import FollowRestarted, Message, ReplayDone, StreamMessage
from tests.support.buses import next_event
from tests.support.eventually import eventually
from tests.support.nats_cluster import NatsCluster, start_nats_cluster
from tests.support.servers import Server


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[NatsCluster]:
    with ExitStack() as stack:
        yield start_nats_cluster(stack, tmp_path)


@pytest.fixture
async def bus(cluster: NatsCluster) -> AsyncIterator[JetStreamBus]:
    async with connect(cluster.url, "relay", streams=StreamSettings(replicas=3)) as bus:
        yield bus


@pytest.fixture
async def agent(cluster: NatsCluster) -> AsyncIterator[Connection]:
    connection = Connection()
    await connection.open(cluster.url, "agent", on_reconnect=lambda: None)
    yield connection
    await connection.close()


def following(agent: Connection, seed: str) -> OwnFollower:
    consumers = {f"garden.binding.{seed}.>": seed, f"garden.view.{seed}.>": f"{seed}_view"}
    return OwnFollower(agent, "BINDINGS", consumers, after_sequence=None, last_per_subject=True, headers_only=False)


async def has_consumer(cluster: NatsCluster, agent: Connection, seed: str) -> Server:
    found: Any = await call(agent, f"CONSUMER.INFO.BINDINGS.{seed}")
    (server,) = [each for each in cluster.servers if found["cluster"]["leader"] == f"test-{each.port}"]
    return server


async def elsewhere(cluster: NatsCluster, agent: Connection) -> tuple[OwnFollower, str, Server]:
    """A follower whose consumer another server has than the one that its connection is to; its seed, and that server.

    The server chooses; of so many all being where the connection is, the probability is 1 in 3 to the 20th.
    """
    for number in range(20):
        seed = f"seed-{number}"
        follower = following(agent, seed)
        await follower.open()
        server = await has_consumer(cluster, agent, seed)
        connected_to = agent.connected_url
        assert connected_to is not None, "it is open"
        if not connected_to.netloc.endswith(f":{server.port}"):
            return follower, seed, server
        follower.close()
    raise AssertionError("each consumer is where the connection is")


async def bodies(follower: OwnFollower, number: int) -> list[object]:
    """Bodies of messages, and the types of other events."""
    events = [await next_event(follower) for _ in range(number)]
    return [each.body if isinstance(each, StreamMessage) else type(each) for each in events]


async def replayed(follower: OwnFollower, *expected: bytes) -> None:
    """It begins anew, with these; where its server is catching up, the replay may seem to be done before them."""
    began, *found = await bodies(follower, len(expected) + 2)
    assert began is FollowRestarted
    assert ReplayDone in found
    assert [each for each in found if each is not ReplayDone] == list(expected)


async def test_a_consumer_that_began_anew_with_its_server_is_another_one(
    cluster: NatsCluster, bus: JetStreamBus, agent: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster makes it again by itself when its server starts, from the start; by then the stream may be another."""
    monkeypatch.setattr(own_follower, "HEARTBEAT_SECONDS", 0.5)
    follower, seed, server = await elsewhere(cluster, agent)
    await bus.publish(Message(f"garden.binding.{seed}.dev.a", b"a"))
    assert await bodies(follower, 2) == [ReplayDone, b"a"]
    await asyncio.to_thread(server.kill)
    await asyncio.to_thread(server.start)
    await replayed(follower, b"a")
    follower.close()


async def test_a_consumer_that_began_anew_and_counted_as_far_is_another_one_too(
    cluster: NatsCluster, bus: JetStreamBus, agent: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is requested while its server starts; the request after that brings it to where the former one was."""
    monkeypatch.setattr(own_follower, "BATCH", 2)
    follower, seed, server = await elsewhere(cluster, agent)

    async def bind(*names: str) -> None:
        for name in names:
            try:
                await bus.publish(Message(f"garden.binding.{seed}.dev.{name}", name.encode()))
            except Unavailable as error:  # until the stream has another leader
                raise AssertionError(error.message) from error

    async def is_there() -> None:
        try:
            await has_consumer(cluster, agent, seed)
        except Unavailable as error:
            raise AssertionError(error.message) from error

    await bind("a", "b", "c", "d")
    assert await bodies(follower, 3) == [ReplayDone, b"a", b"b"]
    await asyncio.to_thread(server.kill)
    await asyncio.to_thread(server.start)
    await eventually(lambda: bind("a", "b"))
    await eventually(is_there)
    await replayed(follower, b"c", b"d", b"a", b"b")
    follower.close()


async def test_a_follower_goes_on_while_the_server_that_had_its_consumer_is_down(
    cluster: NatsCluster, bus: JetStreamBus, agent: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_follower, "HEARTBEAT_SECONDS", 0.5)
    follower, seed, server = await elsewhere(cluster, agent)

    async def bound(name: str) -> None:
        try:
            await bus.publish(Message(f"garden.binding.{seed}.dev.{name}", name.encode()))
        except Unavailable as error:  # until the stream has another leader
            raise AssertionError(error.message) from error

    await bound("before")
    assert await bodies(follower, 2) == [ReplayDone, b"before"]
    await asyncio.to_thread(server.kill)
    await eventually(lambda: bound("meanwhile"))
    await replayed(follower, b"before", b"meanwhile")
    await bound("after")
    assert await bodies(follower, 1) == [b"after"]
    follower.close()
