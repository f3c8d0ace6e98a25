"""Whoever is cancelled on Redis ends at once, wherever it waits, and leaves neither a task nor a socket behind.

Under uvloop too, as services run.
"""

import asyncio
import socket
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
import uvloop

from gardenbus.common.adapters.redis.connection import RedisConnection
from gardenbus.common.errors import Unavailable
from tests.support.cancelling import assert_cancellable, cancelled_at_each_await, closed_sockets, sockets
from tests.support.eventually import HANG_SECONDS
from tests.support.servers import Server

Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a coroutine on a loop."""
    return asyncio.run if request.param == "asyncio" else uvloop.run


@pytest.fixture(scope="module")
def url(store_server: Server) -> str:
    """The server's URL, in a database of its own."""
    return store_server.url


@pytest.fixture
def silent_url() -> Iterator[str]:
    """A server that takes connections, and says nothing."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        yield f"redis://127.0.0.1:{listener.getsockname()[1]}/0"


async def a_life(url: str, **options: Any) -> None:
    connection = RedisConnection(url, "cancelled", timeout_seconds=HANG_SECONDS, **options)
    try:
        await connection.ensure_ready()
        await connection.wait("BLPOP", "cancelled:nothing", 0.01)
        await asyncio.gather(connection.command("PING"), connection.command("PING"))
    finally:
        await connection.close()


def test_a_connection_that_opens_and_closes(url: str, run: Run) -> None:
    async def check() -> None:
        before = sockets()
        assert await assert_cancellable(lambda: a_life(url)) > 5
        await closed_sockets(before)

    run(check())


def test_a_connection_to_the_master_among_several(url: str, run: Run) -> None:
    address = url.removeprefix("redis://").split("/", 1)[0]

    async def check() -> None:
        before = sockets()
        assert await assert_cancellable(lambda: a_life(f"redis://{address},{address}/0")) > 5
        await closed_sockets(before)

    run(check())


def test_a_connection_to_a_server_that_says_nothing(silent_url: str, run: Run) -> None:
    async def ping() -> None:
        connection = RedisConnection(silent_url, "cancelled", timeout_seconds=0.1)
        try:
            await connection.command("PING")
        finally:
            await connection.close()

    async def check() -> None:
        before = sockets()
        assert await assert_cancellable(ping) > 0
        await closed_sockets(before)

    run(check())


def test_what_a_cancelled_caller_leaves_serves_the_next(url: str, run: Run) -> None:
    async def check() -> None:
        connection = RedisConnection(url, "cancelled", timeout_seconds=HANG_SECONDS)

        async def use() -> None:
            await connection.command("PING")
            await connection.wait("BLPOP", "cancelled:nothing", 0.05)

        async for result in cancelled_at_each_await(use):
            assert result.outcome == "cancelled", result
            assert not result.left, result
            assert await connection.command("ECHO", str(result.number)) == str(result.number).encode()
            assert await connection.wait("ECHO", str(result.number)) == str(result.number).encode()
        await connection.close()

    run(check())


def test_who_is_cancelled_as_the_connection_closes_is_told_so(silent_url: str, run: Run) -> None:
    async def check() -> None:
        connection = RedisConnection(silent_url, "cancelled", timeout_seconds=5)
        cancelled = asyncio.create_task(connection.command("PING"))
        waiting = asyncio.create_task(connection.command("PING"))
        await asyncio.sleep(0.1)
        closing = asyncio.create_task(connection.close())
        shared = connection._shared  # pyright: ignore[reportPrivateUsage]
        connecting = shared._connecting  # pyright: ignore[reportPrivateUsage]
        assert connecting is not None
        connecting.add_done_callback(lambda _: cancelled.cancel())
        await asyncio.wait((cancelled, waiting, closing))
        assert cancelled.cancelled()
        assert isinstance(waiting.exception(), Unavailable)

    run(check())
