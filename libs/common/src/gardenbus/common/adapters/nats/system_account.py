"""Requests of NATS' system account: who is connected, and having connections closed.

The server's words: https://docs.nats.io/running-a-nats-service/configuration/sys_accounts (CONNZ, KICK).
"""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncGenerator, Sequence

import msgspec

from gardenbus.common.adapters.nats.connection import Connection
from gardenbus.common.adapters.nats.credentials import Credentials
from gardenbus.common.adapters.nats.messages import RawMessage, publish_command
from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.system_account import ServerConnection

PING_CONNECTIONS = "$SYS.REQ.SERVER.PING.CONNZ"
MOST_CONNECTIONS = 100_000
TIMEOUT_SECONDS = 2.0


class _Connection(msgspec.Struct, frozen=True):
    cid: int
    authorized_user: str = ""


class _Connections(msgspec.Struct, frozen=True):
    connections: tuple[_Connection, ...] = ()


class _ServerId(msgspec.Struct, frozen=True):
    id: str


class _ConnectionsResponse(msgspec.Struct, frozen=True):
    server: _ServerId
    data: _Connections = _Connections()


_decode = json_decoder(_ConnectionsResponse)


class SystemAccount:
    """Sends requests on a connection of the system account's user. Implements `ports.system_account.ConnectedUsers`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def connections_of(self, user: str, *, wait_seconds: float = 0.5) -> Sequence[ServerConnection]:
        """The connections of a user, on all servers that respond in time. Raises Unavailable when none does."""
        responses: list[RawMessage] = []
        subject = f"_INBOX.system.{secrets.token_hex(8)}"
        number = await self._connection.listen(subject, responses.append)
        options = {"auth": True, "user": user, "limit": MOST_CONNECTIONS}
        try:
            await self._connection.send(
                [publish_command(PING_CONNECTIONS, msgspec.json.encode(options), reply=subject)]
            )
            await asyncio.sleep(wait_seconds)  # every server responds, and nobody says how many there are
        finally:
            self._connection.unlisten(number)
        if not responses:
            raise Unavailable("no server says who is connected: is this the system account's user?")
        return [found for response in responses for found in _found(response)]

    async def kick(self, connection: ServerConnection) -> None:
        """Have a connection closed. Raises Unavailable."""
        body = msgspec.json.encode({"cid": connection.number})
        await self._connection.request_raw(
            f"$SYS.REQ.SERVER.{connection.server}.KICK", body, timeout_seconds=TIMEOUT_SECONDS
        )


def _found(response: RawMessage) -> Sequence[ServerConnection]:
    try:
        read = _decode(response.body)
    except msgspec.DecodeError:
        return ()
    return [ServerConnection(read.server.id, each.cid, each.authorized_user) for each in read.data.connections]


@contextlib.asynccontextmanager
async def system_account(url: str, name: str, credentials: Credentials) -> AsyncGenerator[SystemAccount]:
    """A connection of the system account's user."""
    connection = Connection()
    await connection.open(url, name, credentials=credentials, on_reconnect=lambda: None)
    try:
        yield SystemAccount(connection)
    finally:
        await connection.close()
