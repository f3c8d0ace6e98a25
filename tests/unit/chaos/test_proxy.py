"""A line passes what is sent, and is cut, swallows, or delays as it is told to."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator

import pytest

from tests.chaos.proxy import LOOPBACK, Line
from tests.support.eventually import HANG_SECONDS

CONNECTED: list[asyncio.StreamWriter] = []


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(1000):
            writer.write(chunk)
            await writer.drain()
    writer.transport.abort()


@pytest.fixture
async def line() -> AsyncGenerator[Line]:
    server = await asyncio.start_server(_echo, LOOPBACK, 0)
    line = Line(server.sockets[0].getsockname()[1])
    await line.start()
    yield line
    for writer in CONNECTED:
        writer.transport.abort()
    CONNECTED.clear()
    await line.close()
    server.close()
    await server.wait_closed()


async def echoed(
    connection: tuple[asyncio.StreamReader, asyncio.StreamWriter], text: bytes, *, seconds: float = HANG_SECONDS
) -> bytes:
    reader, writer = connection
    writer.write(text)
    return await asyncio.wait_for(reader.read(1000), seconds)


async def connected(line: Line, source: str = LOOPBACK) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(LOOPBACK, line.port, local_addr=(source, 0))
    CONNECTED.append(writer)
    return reader, writer


async def test_it_passes_both_ways(line: Line) -> None:
    assert await echoed(await connected(line), b"hello") == b"hello"


@pytest.mark.parametrize("resets", [True, False])
async def test_cut_it_ends_every_connection_until_it_is_healed(line: Line, *, resets: bool) -> None:
    before = await connected(line)
    assert await echoed(before, b"hello") == b"hello"
    line.cut(resets=resets)
    for connection in (before, await connected(line)):
        try:
            assert await echoed(connection, b"") == b""
        except ConnectionResetError:
            assert resets
    line.heal()
    assert await echoed(await connected(line), b"again") == b"again"


async def test_half_open_it_swallows_and_ends_those_connections_when_healed(line: Line) -> None:
    before = await connected(line)
    assert await echoed(before, b"hello") == b"hello"
    line.half_open()
    with pytest.raises(TimeoutError):
        await echoed(before, b"into the void", seconds=0.3)
    line.heal()
    with contextlib.suppress(ConnectionResetError):
        assert await asyncio.wait_for(before[0].read(1000), HANG_SECONDS) == b""
    assert await echoed(await connected(line), b"again") == b"again"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the loopback has one address")
async def test_half_open_for_some_it_passes_what_others_send(line: Line) -> None:
    hit, other = await connected(line, "127.0.0.11"), await connected(line)
    line.half_open(lambda source: source == "127.0.0.11")
    with pytest.raises(TimeoutError):
        await echoed(hit, b"into the void", seconds=0.3)
    assert await echoed(other, b"hello") == b"hello"
    line.heal()
    with contextlib.suppress(ConnectionResetError):
        assert await asyncio.wait_for(hit[0].read(1000), HANG_SECONDS) == b""
    assert await echoed(other, b"still there") == b"still there"


async def test_half_open_it_passes_no_end_of_a_connection_either(line: Line) -> None:
    reader, writer = await connected(line)
    assert await echoed((reader, writer), b"hello") == b"hello"
    line.half_open()
    writer.write_eof()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(reader.read(1000), 0.3)


async def test_slowed_down_it_passes_later(line: Line) -> None:
    connection = await connected(line)
    line.delay_seconds = 0.1
    began = asyncio.get_running_loop().time()
    assert await echoed(connection, b"hello") == b"hello"
    assert asyncio.get_running_loop().time() - began >= 0.2
