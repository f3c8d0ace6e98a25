"""NATS in a cluster of three: a server that is killed, paused or restarted loses nothing."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gardenbus.common.adapters.nats import work_queue
from gardenbus.common.adapters.nats.jetstream import JetStreamBus, connect
from gardenbus.common.adapters.nats.streams import StreamSettings
from gardenbus.common.api.keys import Subjects
from gardenbus.common.errors import Conflict, GardenbusError
from gardenbus.common.ports.bus import Bus, Message, QueueMessage, Request, WorkQueue
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.nats_cluster import NAMES, NatsCluster, start_nats_cluster
from tests.support.nats_traffic import SUBJECTS, current, traffic
from tests.support.servers import Server, start_nats


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsCluster]:
    with ExitStack() as stack:
        yield start_nats_cluster(stack, tmp_path_factory.mktemp("cluster"))


async def followers(bus: JetStreamBus, stream: str) -> int:
    """Servers that follow the leader of the apiserver's consumer."""
    info: Any = await bus._call(f"CONSUMER.INFO.{stream}.apiserver")  # pyright: ignore[reportPrivateUsage]
    return len(info["cluster"].get("replicas", ()))


async def test_as_many_copies_as_wanted_are_made_and_kept(cluster: NatsCluster) -> None:
    async with connect(cluster.url, "first", "copies", streams=StreamSettings(replicas=1)) as bus:
        assert await copies(bus, "copies") == {1}
        async with connect(cluster.url, "unset", "copies") as another:
            assert await copies(another, "copies") == {1}
        name = Subjects("copies").stream("REPORTS")
        await bus.work_queue(name, "apiserver", "copies.report.>")
        assert await followers(bus, name) == 0
    async with connect(cluster.url, "second", "copies", streams=StreamSettings(replicas=0)) as bus:
        assert await copies(bus, "copies") == {3}

        async def has_grown() -> None:
            assert await followers(bus, name) == 2

        await eventually(has_grown)
        await bus.request(f"$JS.API.STREAM.DELETE.{name}", b"")
        await bus.ensure_streams()
        assert await copies(bus, "copies") == {3}
        queue = await bus.work_queue(name, "apiserver", "copies.report.>")
        assert queue.depth == 0
        assert await followers(bus, name) == 2


async def reached(requester: Bus, subject: str) -> None:
    try:
        await requester.request(subject, b"", timeout_seconds=1)
    except GardenbusError as error:
        raise AssertionError from error


async def test_a_response_that_is_made_while_the_connection_is_lost_reaches_who_waits_elsewhere(
    tmp_path: Path,
) -> None:
    begun, is_lost = asyncio.Event(), asyncio.Event()

    async def respond(request: Request) -> bytes:
        if request.body:
            begun.set()
            await is_lost.wait()
        return request.body

    with ExitStack() as stack:
        cluster = start_nats_cluster(stack, tmp_path)
        own, others = cluster.servers[0], cluster.servers[1:]
        async with (
            connect(others[0].url, "requester", "held") as requester,
            connect(f"{own.url},{others[1].url}", "responder", "held") as responder,
        ):
            await responder.serve("apiserver", "0.1.0", {"held.api.>": respond})

            for number, url in enumerate((own.url, others[1].url)):  # routes may still be made
                async with connect(url, "neighbour", "held") as neighbour:
                    await neighbour.serve("neighbour", "0.1.0", {f"held.neighbour.{number}": respond})
                    await eventually(partial(reached, requester, f"held.neighbour.{number}"))
            await eventually(partial(reached, requester, "held.api.echo"))
            connection = responder._connection  # pyright: ignore[reportPrivateUsage]
            assert connection.connected_url is not None
            serving = next(each for each in cluster.servers if each.port == connection.connected_url.port)
            waiting = asyncio.create_task(requester.request("held.api.echo", b"order", timeout_seconds=HANG_SECONDS))
            await begun.wait()
            connection.when_lost(is_lost.set)  # it may be there again before anybody looks
            serving.kill()
            assert await waiting == b"order"


async def test_one_server_has_one_copy_whatever_is_wanted_of_a_cluster(tmp_path: Path) -> None:
    server = start_nats(tmp_path)
    try:
        async with connect(server.url, "alone", streams=StreamSettings(replicas=0)) as bus:
            assert await copies(bus, "garden") == {1}
    finally:
        server.kill()


async def test_streams_are_awaited_while_too_few_servers_are_there_for_their_copies(cluster: NatsCluster) -> None:
    """The server's rejection is of the class of bad requests; a service that comes up with its cluster would end."""

    async def opened() -> None:
        async with connect(cluster.url, "early", "early", streams=StreamSettings(replicas=5)):
            pass

    opening = asyncio.create_task(opened())
    await asyncio.wait((opening,), timeout=3)
    assert not opening.done(), opening
    opening.cancel()


async def test_a_batch_that_comes_too_late_leaves_the_stream_as_it_is(cluster: NatsCluster) -> None:
    """A chain would not: each server takes the message after the rejected one for an error of the stream, for good."""
    late = Subjects("late")
    async with connect(cluster.url, "relay", "late", streams=StreamSettings(replicas=3)) as bus:
        stream = late.stream("OBJECTS")
        changes = [Message(f"late.changed.shoot.ns.n{number}", b"{}") for number in range(4)]
        last = await bus.publish_batch(stream, changes, expected_last_sequence=0)
        for size in (1, 2, 4):
            with pytest.raises(Conflict):
                await bus.publish_batch(stream, changes[:size], expected_last_sequence=last - 1)
        assert await bus.publish_batch(stream, changes, expected_last_sequence=last) == last + len(changes)
        await bus.publish_many([Message(f"late.event.shoot.ns.n{number}.x", b"{}") for number in range(40)])
        await current(cluster)


async def test_acknowledgements_to_a_cluster_are_collected_but_for_what_came_back(
    cluster: NatsCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work_queue, "ACK_INTERVAL_SECONDS", 3600.0)
    acks = Subjects("acks")
    async with connect(cluster.url, "worker", "acks", streams=StreamSettings(replicas=3)) as bus:
        queue = await bus.work_queue(acks.stream("REPORTS"), "apiserver", "acks.report.>")
        await bus.publish_many([Message(f"acks.report.{seed}", b"{}") for seed in ("new", "back")])
        new, back = await fetched(queue, 2)
        await new.ack()
        await back.release()
        (again,) = await fetched(queue, 1)
        assert again.deliveries == 2
        assert await in_flight(bus, acks) == 2
        await again.ack()
        await eventually(lambda: nothing_in_flight(bus, acks))


async def test_a_connection_that_is_closed_acknowledges_what_it_has_collected(
    cluster: NatsCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work_queue, "ACK_INTERVAL_SECONDS", 3600.0)
    closed = Subjects("closed")
    async with connect(cluster.url, "observer", "closed", streams=StreamSettings(replicas=3)) as observer:
        async with connect(cluster.url, "worker", "closed") as bus:
            queue = await bus.work_queue(closed.stream("REPORTS"), "apiserver", "closed.report.>")
            await bus.publish_many([Message(f"closed.report.{number}", b"{}") for number in range(3)])
            await queue.ack_many(await fetched(queue, 3))
            assert await in_flight(observer, closed) == 3
        await eventually(lambda: nothing_in_flight(observer, closed))


async def fetched(queue: WorkQueue, count: int) -> Sequence[QueueMessage]:
    """So many messages, in as many fetches as it takes."""
    found: list[QueueMessage] = []
    async with asyncio.timeout(HANG_SECONDS):
        while len(found) < count:
            found += await queue.fetch(count - len(found), 1.0)
    return found


async def in_flight(bus: JetStreamBus, subjects: Subjects) -> int:
    info: Any = await bus._call(f"CONSUMER.INFO.{subjects.stream('REPORTS')}.apiserver")  # pyright: ignore[reportPrivateUsage]
    return int(info["num_ack_pending"])


async def nothing_in_flight(bus: JetStreamBus, subjects: Subjects) -> None:
    assert await in_flight(bus, subjects) == 0


async def copies(bus: JetStreamBus, prefix: str) -> set[int]:
    found: set[int] = set()
    for name in NAMES:
        info: Any = await bus._call(f"STREAM.INFO.{Subjects(prefix).stream(name)}")  # pyright: ignore[reportPrivateUsage]
        found.add(int(info["config"]["num_replicas"]))
    return found


async def comes_back(server: Server, cluster: NatsCluster) -> None:
    await asyncio.to_thread(server.start if server.process is None else server.resume)
    await current(cluster)


@pytest.mark.parametrize("harm", [Server.kill, Server.stop, Server.pause])
@pytest.mark.long
async def test_nothing_is_lost_when_the_leader_of_a_stream_goes(
    cluster: NatsCluster, harm: Callable[[Server], None]
) -> None:
    async with traffic(cluster) as running:
        for stream in ("REPORTS", "OBJECTS"):
            leader = await asyncio.to_thread(cluster.leader_of, SUBJECTS.stream(stream))
            await asyncio.to_thread(harm, leader)
            await running.has_settled()
            await comes_back(leader, cluster)
            await running.has_settled()


@pytest.mark.long
async def test_nothing_is_lost_when_the_servers_are_restarted_one_by_one(cluster: NatsCluster) -> None:
    async with traffic(cluster) as running:
        for server in cluster.servers:
            await asyncio.to_thread(server.restart)
            await current(cluster)
        await running.has_settled()
