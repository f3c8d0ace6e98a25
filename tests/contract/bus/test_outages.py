"""Servers that die, hang, or come back older: what is in hand is told at once, and everything goes on afterwards."""

import asyncio
import shutil
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from gardenbus.common.adapters.nats import api
from gardenbus.common.adapters.nats import follower as follower_adapter
from gardenbus.common.adapters.nats.connection import Connection, ResponseTimeout
from gardenbus.common.adapters.nats.jetstream import JetStreamBus, connect
from gardenbus.common.controller.timers import Timers
from gardenbus.common.errors import BadRequest, Unavailable
from gardenbus.common.ports.bus import FollowRestarted, Message, QueueMessage, ReplayDone, StreamMessage, WorkQueue
from tests.support.buses import BusUnderTest, fetch_until, names, next_event, replay, until_true
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.servers import Server, start_nats


async def restart(server: Server) -> None:
    server.kill()
    await asyncio.to_thread(server.start)


async def connected_again(under_test: BusUnderTest) -> None:
    async def both() -> bool:
        return under_test.bus.connected and under_test.another.connected

    await until_true(both)


@asynccontextmanager
async def away(server: Server, under_test: BusUnderTest) -> AsyncGenerator[None, None]:
    """The server is dead within the block, and back after it."""
    server.kill()

    async def noticed() -> bool:
        return not under_test.bus.connected and not under_test.another.connected

    await until_true(noticed)
    yield
    await asyncio.to_thread(server.start)
    await connected_again(under_test)


async def end(queue: WorkQueue, work: QueueMessage, ending: str) -> None:
    """End work in one of the ways that there are."""
    if ending == "ack_many":
        await queue.ack_many([work])
    else:
        await getattr(work, ending)()


async def refetch(queue: WorkQueue) -> Sequence[QueueMessage]:
    """The next work, as a consumer goes on while a stream is not there."""
    while True:
        with suppress(Unavailable):
            return await fetch_until(queue, 1)


async def test_what_was_acknowledged_survives_a_kill_and_publishing_goes_on(own: BusUnderTest, nats_server: Server):
    await own.announce("a", "b")

    async with away(nats_server, own):
        with pytest.raises(Unavailable):
            await own.bus.publish(Message(own.work("a")))
        with pytest.raises(Unavailable):
            await own.bus.position(own.stream("OBJECTS"))

    assert await own.announce("c") == 3


async def test_nothing_that_failed_during_an_outage_appears_after_it(own: BusUnderTest, nats_server: Server):
    async with away(nats_server, own):
        with pytest.raises(Unavailable):
            await own.bus.publish(Message(own.work("ghost")))

    await own.bus.publish(Message(own.work("real")))
    assert list(await own.bus.subjects(own.stream("QUEUES"), ">")) == [own.work("real")]


async def test_who_waits_for_an_answer_is_told_at_once_that_the_connection_is_lost(
    own: BusUnderTest, nats_server: Server
):
    async def never(request: object) -> bytes:
        await asyncio.Event().wait()
        return b""

    await own.another.serve("sleepy", "1.0.0", {own.subjects.api("sleep"): never})
    waiting = asyncio.create_task(own.bus.request(own.subjects.api("sleep"), b"", timeout_seconds=1e6))
    await asyncio.sleep(0.1)

    nats_server.kill()

    with pytest.raises(Unavailable):
        await waiting


async def test_a_client_that_does_not_come_to_its_end_keeps_nobody(own: BusUnderTest, monkeypatch: pytest.MonkeyPatch):
    """Seen once, with a server that had been killed: closing the bus did not end."""

    async def never() -> None:
        await asyncio.Event().wait()

    assert isinstance(own.bus, JetStreamBus)
    monkeypatch.setattr(own.bus._connection, "close", never)  # pyright: ignore[reportPrivateUsage]
    async with asyncio.timeout(HANG_SECONDS):
        await own.bus.close()


async def test_a_closed_client_does_not_reconnect(
    own: BusUnderTest, nats_server: Server, monkeypatch: pytest.MonkeyPatch
):
    """The cancellation of a connect is lost where the connect fails at that moment."""
    assert isinstance(own.bus, JetStreamBus)
    connection = own.bus._connection  # pyright: ignore[reportPrivateUsage]
    connects = 0

    async def failing(server: object) -> None:
        nonlocal connects
        connects += 1
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            if connects == 1:
                raise ConnectionRefusedError from None
            raise

    async def is_connecting() -> bool:
        return connects == 1

    monkeypatch.setattr(connection, "_connect_to_server", failing)
    nats_server.kill()
    await until_true(is_connecting)

    async with asyncio.timeout(HANG_SECONDS):
        await own.bus.close()

    assert connection.is_closed
    assert connection._reconnection_task not in asyncio.all_tasks()  # pyright: ignore[reportPrivateUsage]


async def test_a_fetch_that_waits_is_told_and_the_queue_works_again(own: BusUnderTest, nats_server: Server):
    queue = await own.queue()
    waiting = asyncio.create_task(queue.fetch(10, 30))
    await asyncio.sleep(0.1)

    async with away(nats_server, own):
        with pytest.raises(Unavailable):
            await waiting
        with pytest.raises(Unavailable):
            await queue.fetch(10, 1)

    await own.bus.publish(Message(own.work("a")))
    assert names(await fetch_until(queue, 1)) == ["a"]


async def test_work_in_hand_at_a_kill_comes_again(own: BusUnderTest, nats_server: Server):
    queue = await own.queue()
    await own.bus.publish(Message(own.work("a")))
    (work,) = await fetch_until(queue, 1)
    assert not work.is_held_over

    await restart(nats_server)
    await connected_again(own)
    assert work.is_held_over
    await work.release()

    (again,) = await fetch_until(queue, 1)
    assert again.message.sequence == work.message.sequence
    assert not again.is_held_over


@pytest.mark.parametrize("ending", ["ack", "release", "ack_many"])
async def test_what_ends_work_of_a_stream_that_was_lost_ends_no_work_of_the_one_in_its_place(
    own: BusUnderTest, nats_server: Server, ending: str
):
    queue, other = await own.queue(), await own.queue(bus=own.another)
    await own.bus.publish(Message(own.work("old")))
    (old,) = await fetch_until(queue, 1)

    nats_server.kill()
    shutil.rmtree(nats_server.directory / "jetstream")
    await asyncio.to_thread(nats_server.start)
    await connected_again(own)
    await own.bus.ensure_streams()
    await own.bus.publish(Message(own.work("new")))
    (new,) = await fetch_until(other, 1)
    assert new.message.sequence == old.message.sequence
    await end(queue, old, ending)

    await own.is_in_hand_alone(queue, new)


async def test_a_consumer_that_waits_for_work_is_told_that_what_it_holds_is_of_a_stream_that_was_deleted(
    own: BusUnderTest,
):
    queue = await own.queue()
    await own.bus.publish(Message(own.work("old")))
    (old,) = await fetch_until(queue, 1)
    waiting = asyncio.create_task(refetch(queue))
    await own.bus.position(own.stream("QUEUES"))  # the server has the request by then

    await own.recreate("QUEUES")

    async def is_announced() -> bool:
        return old.is_held_over

    await until_true(is_announced)
    await own.bus.publish(Message(own.work("new")))
    (new,) = await waiting
    assert new.message.sequence == old.message.sequence
    await old.ack()
    await own.is_in_hand_alone(queue, new)


async def test_work_that_a_lost_connection_alone_interrupted_is_ended_as_ever(own: BusUnderTest):
    assert isinstance(own.bus, JetStreamBus)
    queue = await own.queue()
    await own.bus.publish(Message(own.work("a")))
    (work,) = await fetch_until(queue, 1)

    await own.bus.connection.renew()
    await connected_again(own)
    assert work.is_held_over
    await work.ack()

    await own.until_done()


async def test_messages_that_cannot_be_published_leave_nothing_behind_that_is_waited_for(own: BusUnderTest):
    assert isinstance(own.bus, JetStreamBus)
    wrong = Message(own.work("*"))
    for publish in (
        own.bus.publish(wrong),
        own.bus.publish_many([wrong, wrong]),
        own.bus.publish_batch(own.stream("QUEUES"), [wrong, wrong], expected_last_sequence=0),
        own.bus.publish_batch(own.stream("QUEUES"), [wrong, wrong], expected_last_sequence=0, whole=True),
    ):
        with pytest.raises(BadRequest):
            await publish
    with pytest.raises(BadRequest):
        await own.bus.request("a b", b"")

    assert not own.bus.connection._awaited  # pyright: ignore[reportPrivateUsage]  `renew` would wait for it


async def test_timers_that_fell_due_while_the_server_was_dead_fire_when_it_is_back(
    own: BusUnderTest, nats_server: Server
):
    timers, queue = Timers(own.bus, own.subjects), await own.queue()
    for name in ("a", "b", "c"):
        await timers.enqueue_after(own.work(name), 1)

    async with away(nats_server, own):
        await asyncio.sleep(1.5)

    assert sorted(names(await fetch_until(queue, 3))) == ["a", "b", "c"]


async def test_a_consumer_that_somebody_deleted_is_made_again(own: BusUnderTest):
    queue = await own.queue()
    waiting = asyncio.create_task(queue.fetch(10, 10))
    await asyncio.sleep(0.1)

    await own.another.request(f"$JS.API.CONSUMER.DELETE.{own.stream('QUEUES')}.look", b"")
    await own.bus.publish(Message(own.work("a")))

    try:
        found = await waiting
    except Unavailable:  # the server was still removing the former one's files
        found = await fetch_until(queue, 1)
    assert names(found) == ["a"]


async def test_a_stream_that_somebody_deleted_is_made_again(own: BusUnderTest):
    queue = await own.queue()
    await own.another.request(f"$JS.API.STREAM.DELETE.{own.stream('QUEUES')}", b"")
    with pytest.raises(Unavailable):
        await own.bus.publish(Message(own.work("a")))

    await own.bus.publish(Message(own.work("a")))
    assert names(await fetch_until(queue, 1)) == ["a"]


async def test_reconnecting_calls_back_after_the_streams_are_there(own: BusUnderTest, nats_server: Server):
    positions: list[int] = []

    async def called() -> None:
        positions.append((await own.bus.position(own.stream("OBJECTS"))).sequence)

    own.bus.on_reconnect(called)
    nats_server.kill()
    shutil.rmtree(nats_server.directory / "jetstream")
    await asyncio.to_thread(nats_server.start)

    async def done() -> bool:
        return positions == [0]

    await until_true(done)


async def test_a_follower_goes_on_where_it_was(own: BusUnderTest, nats_server: Server):
    seen: list[int] = []
    async with own.bus.follow(own.stream("OBJECTS"), []) as follower:
        await replay(follower)
        for round_ in range(3):
            await own.announce(*(f"s{round_}-{number}" for number in range(50)))
            while len(seen) < 50 * round_ + 25:
                event = await next_event(follower)
                assert isinstance(event, StreamMessage), event
                seen.append(event.sequence)
            await restart(nats_server)
            await connected_again(own)
        while len(seen) < 150:
            event = await next_event(follower)
            assert isinstance(event, StreamMessage), event
            seen.append(event.sequence)
    assert seen == list(range(1, 151))


async def test_a_follower_notices_that_the_servers_disk_was_lost(own: BusUnderTest, nats_server: Server):
    await own.announce("a", "b")
    async with own.bus.follow(own.stream("OBJECTS"), []) as follower:
        await replay(follower)
        nats_server.kill()
        shutil.rmtree(nats_server.directory / "jetstream")
        await asyncio.to_thread(nats_server.start)

        event = await next_event(follower)
        assert isinstance(event, FollowRestarted)
        assert "anew" in event.reason
        assert isinstance(await next_event(follower), ReplayDone)


async def test_a_follower_notices_that_the_server_came_back_older(
    own: BusUnderTest, nats_server: Server, tmp_path: Path
):
    await own.announce("a")
    nats_server.kill()
    shutil.copytree(nats_server.directory / "jetstream", tmp_path / "backup")
    await asyncio.to_thread(nats_server.start)
    await connected_again(own)
    await own.announce("b", "c")

    async with own.bus.follow(own.stream("OBJECTS"), []) as follower:
        assert len(await replay(follower)) == 3
        nats_server.kill()
        shutil.rmtree(nats_server.directory / "jetstream")
        shutil.copytree(tmp_path / "backup", nats_server.directory / "jetstream")
        await asyncio.to_thread(nats_server.start)

        event = await next_event(follower)
        assert isinstance(event, FollowRestarted)
        assert "went back from 3 to 1" in event.reason
        assert [message.subject for message in await replay(follower)] == [own.change("a")]


@pytest.mark.parametrize("others", [(), ("c", "d", "e")], ids=["shorter", "grown since"])
async def test_what_was_removed_before_a_follower_began_is_no_news_of_a_server_that_came_back_older(
    own: BusUnderTest, nats_server: Server, tmp_path: Path, others: tuple[str, ...]
):
    jetstream, common, older = nats_server.directory / "jetstream", tmp_path / "common", tmp_path / "older"
    await own.announce("a")
    nats_server.kill()
    shutil.copytree(jetstream, common)
    await asyncio.to_thread(nats_server.start)
    await connected_again(own)
    if others:
        await own.announce(*others)
    await replaced_disk(nats_server, common, kept=older)
    await connected_again(own)
    await own.announce("b")
    await own.bus.purge(own.stream("OBJECTS"), own.change("a"))

    async with own.bus.follow(own.stream("OBJECTS"), [own.change("a")], last_per_subject=True) as follower:
        assert await replay(follower) == []
        await replaced_disk(nats_server, older, kept=tmp_path / "newer")

        assert isinstance(await next_event(follower), FollowRestarted)
        assert [message.subject for message in await replay(follower)] == [own.change("a")]


async def replaced_disk(server: Server, disk: Path, *, kept: Path) -> None:
    """Restart a server on another disk, and keep the one that it had."""
    server.kill()
    shutil.move(server.directory / "jetstream", kept)
    shutil.copytree(disk, server.directory / "jetstream")
    await asyncio.to_thread(server.start)


async def test_a_follower_that_was_cut_for_too_long_starts_anew(own: BusUnderTest, nats_server: Server):
    await own.announce("a")
    async with own.bus.follow(own.stream("OBJECTS"), [], max_silent_seconds=0.5) as follower:
        await replay(follower)
        async with away(nats_server, own):
            await asyncio.sleep(0.6)
            assert follower.silent_seconds > 0.5

        event = await next_event(follower)
        assert isinstance(event, FollowRestarted)
        assert len(await replay(follower)) == 1


async def test_a_follower_that_missed_a_message_gets_it_after_all(own: BusUnderTest):
    assert isinstance(own.bus, JetStreamBus)
    sinks = own.bus._connection._sinks  # pyright: ignore[reportPrivateUsage]
    existing = set(sinks)
    async with own.bus.follow(own.stream("OBJECTS"), []) as follower:
        await replay(follower)
        (number,) = set(sinks) - existing
        receive = sinks[number]
        arrived = iter(range(100))
        sinks[number] = lambda message: None if next(arrived) in (2, 3) else receive(message)
        await own.announce(*"abcdefgh")

        seen = [await next_event(follower) for _ in range(8)]

    assert [event.sequence for event in seen if isinstance(event, StreamMessage)] == list(range(1, 9))


@pytest.mark.slow
async def test_a_follower_whose_consumer_vanished_gets_another(own: BusUnderTest, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(follower_adapter, "HEARTBEAT_SECONDS", 1.0)
    async with own.bus.follow(own.stream("OBJECTS"), []) as follower:
        await replay(follower)
        response = await own.another.request(f"$JS.API.CONSUMER.NAMES.{own.stream('OBJECTS')}", b"{}")
        (name,) = [word for word in response.decode().split('"') if word.startswith("follower-")]
        await own.another.request(f"$JS.API.CONSUMER.DELETE.{own.stream('OBJECTS')}.{name}", b"")
        await own.announce("a")

        event = await next_event(follower)
    assert isinstance(event, StreamMessage)


async def test_a_server_that_hangs_is_unavailable_and_is_used_again_when_it_wakes(
    own: BusUnderTest, nats_server: Server
):
    nats_server.pause()
    try:
        with pytest.raises(Unavailable):
            await own.bus.publish(Message(own.work("a")))
    finally:
        nats_server.resume()

    async def published() -> None:
        try:
            await own.bus.publish(Message(own.work("b")))
        except Unavailable as error:
            raise AssertionError from error

    await eventually(published)


async def test_connecting_waits_for_the_server_and_says_so(tmp_path: Path):
    server = start_nats(tmp_path / "nats")
    server.stop()
    with capture_logs() as logs:
        connecting = asyncio.create_task(_position(server.url))

        async def awaited() -> None:
            assert "server.awaited" in [entry["event"] for entry in logs]

        await eventually(awaited)
        assert not connecting.done()
        await asyncio.to_thread(server.start)
        assert await asyncio.wait_for(connecting, HANG_SECONDS) == 0
    server.stop()
    assert [entry["event"] for entry in logs].count("server.awaited") == 1


async def _position(url: str) -> int:
    async with connect(url, "patient") as bus:
        return (await bus.position("OBJECTS")).sequence


async def test_a_complaint_of_the_server_ends_in_a_new_connection(own: BusUnderTest):
    assert isinstance(own.bus, JetStreamBus)
    connection = own.bus._connection  # pyright: ignore[reportPrivateUsage]
    await connection.send((b"NONSENSE\r\n",))

    async def lost_and_found() -> bool:
        return connection.losses == 1 and own.bus.connected

    await until_true(lost_and_found)
    assert await own.announce("a") == 1


async def test_a_consumer_that_no_server_answers_for_is_soon_asked_for_again_by_another_name(
    jetstream: BusUnderTest, monkeypatch: pytest.MonkeyPatch
):
    """So it is while a cluster elects who leads its metadata, and where the one that is to have it just died."""
    lost: list[tuple[str, float]] = []

    async def call(connection: Connection, endpoint: str, payload: Any = None, *, timeout_seconds: float = 5.0) -> Any:
        if endpoint.startswith("CONSUMER.CREATE") and len(lost) < 5:
            lost.append((endpoint, timeout_seconds))
            raise ResponseTimeout(f"no response on {endpoint}")
        return await api.call(connection, endpoint, payload, timeout_seconds=timeout_seconds)

    await jetstream.announce("a")
    async with jetstream.bus.follow(jetstream.stream("OBJECTS"), []) as follower:
        assert len(await replay(follower)) == 1
        monkeypatch.setattr(follower_adapter, "call", call)
        cast("Any", follower)._invalidate("as after a lost connection")
        await jetstream.announce("b")
        event = await next_event(follower)
    assert isinstance(event, StreamMessage)
    assert event.sequence == 2
    assert len({endpoint for endpoint, _ in lost}) == 5
    waited = [seconds for _, seconds in lost]
    assert waited == sorted(set(waited))
    assert sum(waited) <= 10
    assert api.attempt_timeout_seconds(100) == api.API_TIMEOUT_SECONDS
