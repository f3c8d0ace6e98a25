"""Who is not let in is told so, whatever a server says or does not say, does not wait for ever, and leaves nothing."""

import asyncio
import gc
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress

import pytest

from gardenbus.common.adapters.nats import connection as adapter
from gardenbus.common.adapters.nats.connection import Connection
from gardenbus.common.adapters.nats.credentials import Login, login_credentials
from gardenbus.common.errors import CredentialsRejected, Unavailable
from tests.support.eventually import HANG_SECONDS, eventually

ANN = login_credentials(Login("service:ann", "secret"))
INFO = b'INFO {"server_id":"S","version":"2.12.0","max_payload":1048576,"headers":true,"auth_required":true}\r\n'


@asynccontextmanager
async def a_server(*words: bytes, stays: bool = True) -> AsyncGenerator[str]:
    """Somebody who greets each client, reads CONNECT and PING, and says these words."""
    sessions: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sessions.add(task) if (task := asyncio.current_task()) else None
        with suppress(ConnectionError, asyncio.CancelledError):
            writer.write(INFO)
            await reader.readline()
            await reader.readline()
            for word in words:
                writer.write(word)
                await writer.drain()
            if stays:
                await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for session in sessions:
            session.cancel()
        await asyncio.gather(*sessions, return_exceptions=True)


async def opened(url: str) -> Connection:
    connection = Connection()
    try:
        async with asyncio.timeout(HANG_SECONDS):
            await connection.open(url, "ann", credentials=ANN, on_reconnect=lambda: None, fails_unauthorized=True)
    finally:
        await connection.close()
    return connection


@pytest.mark.parametrize(
    "words",
    [(b"-ERR 'Authorization Violation'\r\n",), (b"PING\r\n", b"-ERR 'Authorization Violation'\r\n")],
    ids=["at once", "after a ping, as where somebody else is asked"],
)
async def test_a_refusal_is_told(words: Sequence[bytes]) -> None:
    async with a_server(*words) as url:
        with pytest.raises(CredentialsRejected, match="Authorization Violation"):
            await opened(url)


async def test_a_ping_is_no_leave_to_come_in_and_a_pong_is() -> None:
    async with a_server(b"PING\r\n", b"PONG\r\n") as url:
        assert (await opened(url)).is_closed, "it was opened, and closed at the end"


@pytest.mark.parametrize("stays", [True, False], ids=["stays silent", "goes without a word"])
@pytest.mark.parametrize("words", [(), (b"PING\r\n",)], ids=["greets", "pings"])
async def test_a_server_that_greets_and_does_not_let_in_is_not_waited_for(
    words: Sequence[bytes], monkeypatch: pytest.MonkeyPatch, *, stays: bool
) -> None:
    monkeypatch.setattr(adapter, "CONNECT_SECONDS", 0.3)
    monkeypatch.setattr(adapter, "UNCONNECTED_SECONDS", 0.5)
    async with a_server(*words, stays=stays) as url:
        with pytest.raises(Unavailable, match="does not accept this user: no response"):
            await opened(url)


async def test_a_reconnect_that_fails_leaves_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client begins the next one without an end of the last: it is left to a garbage collector."""
    monkeypatch.setattr(adapter, "CONNECT_SECONDS", 0.05)
    monkeypatch.setattr(adapter, "RECONNECT_SECONDS", 0.01)
    began, ended, lost = 0, 0, asyncio.Event()

    async def let_in_until_lost(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal began, ended
        began += 1
        with suppress(ConnectionError):
            if not lost.is_set():
                writer.write(INFO + b"PONG\r\n")
                await lost.wait()
            else:
                await reader.read()
        ended += 1
        writer.close()

    async def only_the_last_is_open() -> None:
        assert began > 4
        assert began - ended <= 1

    async with await asyncio.start_server(let_in_until_lost, "127.0.0.1", 0) as server:
        connection, port = Connection(), server.sockets[0].getsockname()[1]
        await connection.open(f"nats://127.0.0.1:{port}", "ann", credentials=ANN, on_reconnect=lambda: None)
        gc.disable()
        lost.set()
        try:
            await eventually(only_the_last_is_open)
        finally:
            gc.enable()
            await connection.close()


async def test_requests_of_who_is_let_in_no_longer_report_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gardenbus.common.adapters.nats.connection.FIRST_REJECTION_SECONDS", 0.01)
    sessions = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sessions
        sessions += 1
        writer.write(INFO)
        await reader.readline()
        await reader.readline()
        writer.write(b"PONG\r\n" if sessions == 1 else b"-ERR 'Authorization Violation'\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    connection = Connection()
    try:
        url = f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        await connection.open(url, "ann", credentials=ANN, on_reconnect=lambda: None)

        async def is_reported() -> None:
            with pytest.raises(Unavailable) as rejection:
                connection.require_connected()
            assert isinstance(rejection.value, CredentialsRejected), rejection.value
            assert "does not accept this user: Authorization Violation" in rejection.value.message

        await eventually(is_reported)
    finally:
        await connection.close()
        server.close()
