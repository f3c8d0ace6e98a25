"""A server that fails while a connection to Redis is being made: each failure is an outage, none anything else.

Under uvloop, as services run: its transports raise other exceptions than asyncio's.
"""

import asyncio
import socket
import struct
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager

import pytest
import uvloop

from gardenbus.common.adapters.redis.connection import RedisConnection
from gardenbus.common.errors import Unavailable
from tests.support.eventually import HANG_SECONDS

RESET = struct.pack("ii", 1, 0)
"""SO_LINGER: closing sends a reset, whatever has not been read or sent."""

ROUNDS = 20
"""A reset arrives at another moment each time."""


def converse(client: socket.socket, replies: Sequence[bytes]) -> None:
    """Reply to each of the client's messages with the next of `replies`, then reset the connection."""
    client.settimeout(HANG_SECONDS)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    try:
        for reply in replies:
            client.recv(65536)
            client.sendall(reply)
    except OSError:
        pass  # it gave up first
    finally:
        client.close()


@contextmanager
def a_resetting_server(replies: Sequence[bytes]) -> Generator[str]:
    """Resets every connection at that point of its handshake; answers its URL."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)

    def serve() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            converse(client, replies)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"redis://user:secret@127.0.0.1:{listener.getsockname()[1]}/3"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(HANG_SECONDS)
        assert not thread.is_alive(), "a connection that was accepted neither sends nor ends"


async def failures(url: str) -> list[BaseException | None]:
    """What several callers on one connection get, again and again."""
    connection = RedisConnection(url, timeout_seconds=0.5)
    found: list[BaseException | None] = []
    for _ in range(ROUNDS):
        replies = await asyncio.gather(
            connection.command("PING"), connection.wait("BLPOP", "x", 1), return_exceptions=True
        )
        found += [reply if isinstance(reply, BaseException) else None for reply in replies]
    await connection.close()
    return found


@pytest.mark.parametrize(
    "replies",
    [
        pytest.param([], id="at once"),
        pytest.param([b""], id="after the first command"),
        pytest.param([b"+O"], id="in the middle of a reply"),
        pytest.param([b"+OK\r\n"], id="after the first reply"),
        pytest.param([b"+OK\r\n" * 2], id="after two replies"),
        pytest.param([b"+OK\r\n" * 9], id="with more replies than commands"),
        pytest.param([b"+OK\r\n", b"+OK\r\n", b"+OK\r\n", b""], id="before the command's reply"),
        pytest.param([b"+OK\r\n", b"+OK\r\n", b"+OK\r\n", b"$100\r\nhalf"], id="in the middle of the command's reply"),
        pytest.param([b"SSH-2.0-OpenSSH_9.2\r\n"], id="another protocol"),
        pytest.param([b"\xff\xfe\x00" * 5_000], id="noise"),
        pytest.param([b"$-5\r\n"], id="a length that is none"),
        pytest.param([b"$999999999999999999999\r\n"], id="a length that nobody has"),
        pytest.param([b":1\r\n", b"*1\r\n:2\r\n", b"*-1\r\n"], id="replies of other types"),
        pytest.param([b"*1\r\n" * 5_000], id="lists without an end"),
        pytest.param([b"-\xff\xfe\r\n"], id="an error in no encoding"),
        pytest.param([b"-LOADING\r\n"], id="still loading"),
        pytest.param([b"-NOPERM x\r\n"], id="no permission"),
    ],
)
def test_whatever_breaks_a_handshake_is_an_outage(replies: Sequence[bytes]) -> None:
    with a_resetting_server(replies) as url:
        found = uvloop.run(failures(url))
    others = [error for error in found if not isinstance(error, Unavailable)]
    assert others == [], f"{len(others)} of {len(found)}"
