"""One line to Redis that many callers share."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gardenbus.common.adapters.redis import multiplexed_connection
from gardenbus.common.adapters.redis.connection import MAX_BATCH, RedisConnection
from gardenbus.common.api.document import StoredObject
from gardenbus.common.errors import Unavailable, Unsupported
from tests.support.builders import a_project
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.servers import Server
from tests.support.stores import StoreUnderTest, on_redis

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture
async def line(redis_server: Server) -> AsyncGenerator[RedisConnection]:
    connection = RedisConnection(redis_server.url, "line", timeout_seconds=HANG_SECONDS)
    yield connection
    await connection.close()


@pytest.fixture
async def kit(redis_server: Server) -> AsyncGenerator[StoreUnderTest]:
    kit = on_redis(redis_server.url)
    await kit.open()
    yield kit
    await kit.store.close()


def connections(listed: bytes) -> int:
    """How many of the clients that Redis lists are not being closed."""
    return len(listed.splitlines())


async def blocked(line: RedisConnection, number: int) -> None:
    """Fails unless as many clients of Redis wait."""
    assert f"blocked_clients:{number}\r\n".encode() in await line.command("INFO", "clients")


async def test_each_caller_gets_its_own_reply(line: RedisConnection) -> None:
    replies = [line.command("ECHO", str(number)) for number in range(500)]
    assert await asyncio.gather(*replies) == [str(number).encode() for number in range(500)]
    assert connections(await line.command("CLIENT", "LIST")) == 1


async def test_what_is_refused_of_one_touches_no_other(line: RedisConnection) -> None:
    await line.command("SET", "line:text", "a")
    replies = await asyncio.gather(
        line.command("INCR", "line:text"),
        line.command("GET", "line:text"),
        line.pipeline([("NOSUCHCOMMAND",), ("GET", "line:text")]),
        line.pipeline([("GET", "line:text"), ("EXISTS", "line:text")]),
        return_exceptions=True,
    )
    assert [type(replies[0]), replies[1], type(replies[2]), replies[3]] == [Unavailable, b"a", Unavailable, [b"a", 1]]


async def test_who_gives_up_leaves_the_replies_of_the_others_in_order(line: RedisConnection) -> None:
    await line.command("PING")
    tasks = [asyncio.create_task(line.command("ECHO", str(number))) for number in range(20)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert [task.result() for task in tasks[1::2]] == [str(number).encode() for number in range(1, 20, 2)]
    assert await line.command("ECHO", "after") == b"after"


async def test_who_waits_holds_up_nobody(line: RedisConnection) -> None:
    waiting = [asyncio.create_task(line.wait("BLPOP", f"line:empty{number}", HANG_SECONDS)) for number in range(2)]
    await eventually(lambda: blocked(line, 2))
    assert await line.command("ECHO", "x") == b"x"
    assert not any(task.done() for task in waiting)
    for number, task in enumerate(waiting):
        await line.command("RPUSH", f"line:empty{number}", "y")
        assert await task == [f"line:empty{number}".encode(), b"y"]


async def test_a_wait_for_what_does_not_come_ends(line: RedisConnection) -> None:
    assert await line.wait("BLPOP", "line:empty", 0.1) is None


async def is_set(line: RedisConnection) -> None:
    """Set the counter to 0; fails where Redis is late."""
    try:
        await line.command("SET", "line:count", 0)
    except Unavailable as error:
        raise AssertionError(error.message) from error


async def test_a_server_that_hangs_is_given_up_and_found_again(redis_server: Server) -> None:
    line = RedisConnection(redis_server.url, "line", timeout_seconds=1)
    await eventually(lambda: is_set(line))
    redis_server.pause()
    try:
        replies = [line.command("INCR", "line:count") for _ in range(3)]
        async with asyncio.timeout(HANG_SECONDS):
            replies = await asyncio.gather(*replies, return_exceptions=True)
        assert [type(reply) for reply in replies] == [Unavailable] * 3
    finally:
        redis_server.resume()

    async def is_back() -> None:
        try:
            count = int(await line.command("GET", "line:count"))
        except Unavailable as error:
            raise AssertionError(error.message) from error
        assert count == 3, "sent once, and not again"

    await eventually(is_back)
    await line.close()


async def test_a_connection_that_was_cut_tells_all_who_wait_and_sends_nothing_twice(line: RedisConnection) -> None:
    await line.command("SET", "line:count", 0)
    number = await line.command("CLIENT", "ID")
    replies = await asyncio.gather(
        line.command("INCR", "line:count"),
        line.command("CLIENT", "KILL", "ID", number, "SKIPME", "no"),
        line.command("INCR", "line:count"),
        return_exceptions=True,
    )
    assert isinstance(replies[2], Unavailable)
    assert await line.command("GET", "line:count") == b"1"


@asynccontextmanager
async def a_server(serve: Serve) -> AsyncGenerator[str]:
    """Something that listens where Redis should; answers its URL."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        server.close()


@pytest.mark.parametrize(
    "reported", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"-ERR max number of clients reached\r\n"]
)
async def test_what_is_no_redis_is_out_of_reach(reported: bytes) -> None:
    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(reported)
        await writer.drain()
        writer.close()

    async with a_server(serve) as url:
        connection = RedisConnection(url, timeout_seconds=1)
        replies = await asyncio.gather(connection.command("PING"), connection.command("PING"), return_exceptions=True)
        assert [type(reply) for reply in replies] == [Unavailable, Unavailable]
        await connection.close()


async def test_who_wants_a_connection_while_it_is_closed_is_told_so() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with a_server(serve) as url:
        connection = RedisConnection(url, timeout_seconds=5)
        replies = asyncio.create_task(connection.command("PING"))
        await asyncio.sleep(0.05)
        await connection.close()
        with pytest.raises(Unavailable, match="closed"):
            await replies


@pytest.mark.parametrize("turns", range(2, 40))
async def test_a_close_at_any_moment_of_the_handshake_is_told_at_once(turns: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as never_responding:
        url = f"redis://127.0.0.1:{never_responding.getsockname()[1]}/0"
        connection = RedisConnection(url, timeout_seconds=30)
        replies = asyncio.create_task(connection.command("PING"))
        for _ in range(turns):
            await asyncio.sleep(0)
        await connection.close()
        async with asyncio.timeout(HANG_SECONDS):
            with pytest.raises(Unavailable, match="closed"):
                await replies


async def test_who_asks_on_a_connection_that_is_lost_as_soon_as_it_is_made_is_told_so(
    line: RedisConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    protocol = multiplexed_connection._ReplyProtocol  # pyright: ignore[reportPrivateUsage]
    made = protocol.__init__

    def lose_at_once(self: Any, *values: Any) -> None:
        made(self, *values)
        self.lose("it ended at once")

    monkeypatch.setattr(protocol, "__init__", lose_at_once)
    async with asyncio.timeout(HANG_SECONDS):
        with pytest.raises(Unavailable, match="it ended at once"):
            await line.command("PING")


async def test_objects_written_at_the_same_time_are_written_each_on_its_own(kit: StoreUnderTest) -> None:
    await kit.created(a_project("p7"))
    many = 3 * MAX_BATCH
    created: list[Any] = await asyncio.gather(
        *(kit.store.create(a_project(f"p{number}")) for number in range(many)), return_exceptions=True
    )
    rejected = [number for number, reply in enumerate(created) if not isinstance(reply, StoredObject)]
    assert rejected == [7]
    assert "exists already" in str(created[7])
    assert len({stored.version for stored in created if isinstance(stored, StoredObject)}) == many - 1


async def test_a_call_that_fails_inside_of_the_store_fails_alone(kit: StoreUnderTest) -> None:
    assert kit.connection is not None
    key = "o:project:_:broken"
    await kit.connection.command("SET", kit.connection.key(key), "no hash")
    replies = await asyncio.gather(
        kit.store.create(a_project("one")),
        kit.store.create(a_project("broken")),
        kit.store.create(a_project("two")),
        return_exceptions=True,
    )
    assert [type(reply) for reply in replies] == [StoredObject, Unsupported, StoredObject]


async def test_the_library_is_loaded_once_for_all_who_write_at_the_same_time(kit: StoreUnderTest) -> None:
    assert kit.connection is not None
    await kit.connection.command("FUNCTION", "FLUSH")
    replies = await asyncio.gather(
        *(kit.store.create(a_project(f"p{number}")) for number in range(20)), return_exceptions=True
    )
    assert {str(reply) for reply in replies if isinstance(reply, Unavailable)} != set()
    assert all(isinstance(reply, Unavailable) and "fenced" in reply.message for reply in replies)
