"""Health of processes as `gardenbus status` probes it, by servers of each behaviour."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from gardenbus.cli.client.api import connected
from gardenbus.cli.client.targets import LandscapeTarget
from gardenbus.cli.local.directory import LandscapeFile, ServiceEntry, ServiceStatus
from gardenbus.cli.local.health import service_rows
from gardenbus.common.errors import BadRequest


@asynccontextmanager
async def serving(response: bytes) -> AsyncGenerator[str]:
    """A server on the loopback that responds to each request in two pieces."""

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(response[:20])
        await writer.drain()
        writer.write(response[20:])
        writer.close()

    server = await asyncio.start_server(respond, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def row_of(url: str) -> ServiceStatus:
    entry = ServiceEntry(name="relay", pid=os.getpid(), health_url=url)
    landscape = LandscapeFile(nats_url="nats://127.0.0.1:1", redis_url="redis://127.0.0.1:1", services=(entry,))
    return (await service_rows(landscape))[0]


@pytest.mark.parametrize(
    ("response", "state", "trouble"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "ready", ""),
        (
            b"HTTP/1.1 503 Service Unavailable\r\n\r\nthe Seeds are not cached yet",
            "not ready",
            "the Seeds are not cached yet",
        ),
        (b"SSH-2.0-OpenSSH_9.2 and what else it may be\r\n", "down", "ValueError"),
        (b"", "down", "ValueError"),
    ],
)
async def test_a_process_is_as_its_readiness_says(response: bytes, state: str, trouble: str) -> None:
    async with serving(response) as url:
        row = await row_of(url)

    assert (row.state, row.trouble) == (state, trouble)


async def test_a_process_that_nobody_reaches_is_down() -> None:
    async with serving(b"") as url:
        pass

    assert (await row_of(url)).state == "down"


async def test_web_sockets_without_their_library_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_name: str) -> None:
        return None

    monkeypatch.setattr("importlib.util.find_spec", nothing)

    with pytest.raises(BadRequest, match=r"pip install 'gardenbus\[ws\]'"):
        async with connected(LandscapeTarget(nats_url="wss://nats.example.org", prefix="garden")):
            pass
