"""Admin client for NATS: the server's INFO, and requests with many responders."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from typing import Any, NamedTuple

import msgspec

from gardenbus.common.adapters.nats.connection import NOBODY, Connection
from gardenbus.common.adapters.nats.credentials import NO_CREDENTIALS, Credentials
from gardenbus.common.adapters.nats.messages import RawMessage, publish_command
from gardenbus.common.api.decoding import decode_json
from gardenbus.common.errors import Unavailable

SILENCE_SECONDS = 0.3
"""Wait for another response after the latest one."""


class ServerInfo(NamedTuple):
    """INFO of a server, received on connecting."""

    name: str
    version: str
    has_jetstream: bool
    max_payload: int


class _AdminConnection(Connection):
    """Connection that exposes the INFO received when it was made."""

    def server_info(self) -> dict[str, Any]:
        return dict(self._server_info)


class AdminClient:
    """Connection for requests of an operator; see `connect_admin`."""

    def __init__(self, connection: _AdminConnection) -> None:
        self._connection = connection

    @property
    def server(self) -> ServerInfo:
        """The connected server."""
        info = self._connection.server_info()
        return ServerInfo(
            name=str(info.get("server_name") or ""),
            version=str(info.get("version") or ""),
            has_jetstream=bool(info.get("jetstream")),
            max_payload=int(info.get("max_payload") or 0),
        )

    async def request_many(self, subject: str, *, within_seconds: float = 2.0) -> Sequence[dict[str, Any]]:
        """Send a request and collect all responses until none comes any more; what is no JSON object is left out."""
        bodies: list[bytes] = []
        received = asyncio.Event()

        def receive(message: RawMessage) -> None:
            if message.status != NOBODY:
                bodies.append(message.body)
            received.set()

        inbox = self._connection.new_inbox()
        number = await self._connection.listen(inbox, receive)
        try:
            await self._connection.send((publish_command(subject, b"", reply=inbox),))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(within_seconds):
                    while True:
                        async with asyncio.timeout(SILENCE_SECONDS if bodies else within_seconds):
                            await received.wait()
                        received.clear()
        finally:
            self._connection.unlisten(number)
        return [response for response in map(_decoded, bodies) if response]

    async def responds(self, subject: str, body: bytes, *, within_seconds: float = 2.0) -> bool:
        """Send a request; true where anything responds to it in time."""
        try:
            await self._connection.request_raw(subject, body, timeout_seconds=within_seconds)
        except Unavailable:
            return False
        return True


@contextlib.asynccontextmanager
async def connect_admin(url: str, name: str, credentials: Credentials = NO_CREDENTIALS) -> AsyncGenerator[AdminClient]:
    """Open an admin connection, waiting for the server as long as it takes; closed in the end."""
    connection = _AdminConnection()
    await connection.open(url, name, credentials=credentials, on_reconnect=lambda: None)
    try:
        yield AdminClient(connection)
    finally:
        await connection.close()


def _decoded(body: bytes) -> dict[str, Any]:
    try:
        return decode_json(body, dict[str, Any])
    except msgspec.MsgspecError:
        return {}
