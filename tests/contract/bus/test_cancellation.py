"""Whoever is cancelled on the bus ends at once, wherever it waits, and leaves neither a task nor a socket behind."""

import asyncio
import secrets
import socket
from collections.abc import AsyncIterator, Iterator

import pytest

from gardenbus.agent.connections import OwnConnection
from gardenbus.common.adapters.nats import jetstream
from gardenbus.common.adapters.nats.connection import Connection
from gardenbus.common.adapters.nats.credentials import NO_CREDENTIALS
from gardenbus.common.adapters.nats.jetstream import JetStreamBus
from gardenbus.common.adapters.nats.messages import RawMessage, publish_command
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.keys import Subjects
from gardenbus.common.ports.bus import Message
from tests.support.cancelling import assert_cancellable, cancelled_at_each_await, closed_sockets, sockets
from tests.support.eventually import HANG_SECONDS
from tests.support.servers import Server

AWAITS_WHILE_AWAY = 7


@pytest.fixture(scope="module")
def url(shared_nats_server: Server) -> str:
    """The shared server's URL."""
    return shared_nats_server.url


@pytest.fixture
def refusing_url() -> Iterator[str]:
    """A port that is taken, and refuses."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"nats://127.0.0.1:{taken.getsockname()[1]}"


@pytest.fixture
async def bus(url: str) -> AsyncIterator[JetStreamBus]:
    """A bus with streams of its own."""
    async with jetstream.connect(url, "cancellation", f"t{secrets.token_hex(4)}") as opened:
        await opened.ensure_streams()
        yield opened


async def connect_and_close(url: str) -> None:
    async with jetstream.connect(url, "cancelled", f"t{secrets.token_hex(4)}", manages_streams=False):
        pass


async def test_a_bus_that_opens_and_closes(url: str) -> None:
    before = sockets()
    assert await assert_cancellable(lambda: connect_and_close(url)) > 5
    await closed_sockets(before)


async def test_a_bus_whose_server_is_away(refusing_url: str) -> None:
    before = sockets()
    tried = await assert_cancellable(lambda: connect_and_close(refusing_url), most=AWAITS_WHILE_AWAY)
    assert tried == 2 * AWAITS_WHILE_AWAY
    await closed_sockets(before)


async def test_a_connection_of_an_agent(url: str) -> None:
    before = sockets()

    async def life() -> None:
        own = OwnConnection(url, Subjects("garden"), Principal("gardenlet", "a"), NO_CREDENTIALS)
        own.start()
        try:
            await own.opened()
        finally:
            await own.close()

    await assert_cancellable(life)
    await closed_sockets(before)


async def test_a_request_without_an_answer(bus: JetStreamBus) -> None:
    connection = bus.connection
    await connection.listen("cancelled.silent", lambda _: None)
    await connection.flush_fully()

    async def request() -> None:
        await connection.request_raw("cancelled.silent", b"", timeout_seconds=0.2)

    await assert_cancellable(request)
    assert not connection._awaited  # pyright: ignore[reportPrivateUsage]


async def test_what_a_cancelled_fetch_had_comes_to_the_next(bus: JetStreamBus) -> None:
    prefix = bus._subjects.prefix  # pyright: ignore[reportPrivateUsage]
    subjects = Subjects(prefix)
    queue = await bus.work_queue(subjects.stream("QUEUES"), "cancelled", subjects.queue_of("cancelled"))
    subject = subjects.queue_of("cancelled").replace(">", "garden.one")
    tried = 0

    async def fetch() -> None:
        await queue.fetch(1, 0.5)

    await bus.publish(Message(subject, b"{}"))
    async for result in cancelled_at_each_await(fetch, most=5):
        tried += 1
        assert result.outcome == "cancelled", result
        assert not result.left, result
        again = await queue.fetch(1, 10.0)
        assert len(again) == 1, result
        await again[0].release()
    assert tried


async def test_what_waits_until_all_is_written(bus: JetStreamBus) -> None:
    await assert_cancellable(bus.connection.flush_fully)


async def test_a_connection_reads_on_after_a_flush_that_was_cancelled(bus: JetStreamBus) -> None:
    """The client's own ended its reader when the answer came that nobody waited for any more."""
    connection = bus.connection
    flushing = asyncio.create_task(connection.flush())
    await asyncio.sleep(0)
    flushing.cancel()
    await asyncio.wait((flushing,))
    assert flushing.cancelled()
    await connection.flush()
    received: asyncio.Future[RawMessage] = asyncio.get_running_loop().create_future()
    await connection.listen("cancelled.after", received.set_result)
    await connection.send((publish_command("cancelled.after", b"here"),))
    assert (await asyncio.wait_for(received, HANG_SECONDS)).body == b"here"


async def in_time(connection: Connection) -> None:
    async with asyncio.timeout(0.3):
        await connection.flush_fully()


async def test_a_flush_that_a_hanging_server_does_not_take_ends_in_time(nats_server: Server) -> None:
    """The client's own swallows the cancellation, and waits for 10 s more."""
    connection = Connection()
    await connection.open(nats_server.url, "flushing", on_reconnect=lambda: None)
    nats_server.pause()
    try:
        connection.send_nowait([b"PUB a 1000000\r\n" + b"a" * 1_000_000 + b"\r\n"] * 30)
        with pytest.raises(TimeoutError):
            await in_time(connection)
    finally:
        nats_server.resume()
        await connection.close()
