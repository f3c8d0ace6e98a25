"""Requests of NATS' system account: who is connected, and having connections closed.

The server's words: https://docs.nats.io/running-a-nats-service/configuration/sys_accounts (CONNZ, KICK).
"""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncGenerator, Mapping, Sequence

import msgspec

from gardenbus.common.adapters.nats.connection import Connection
from gardenbus.common.adapters.nats.credentials import Credentials
from gardenbus.common.adapters.nats.messages import RawMessage, publish_command
from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.identity.accounts import OUT
from gardenbus.common.errors import Unavailable
from gardenbus.identity.ports.system_account import ConnectionLoad, ConnectionsSnapshot, ServerConnection

PING_CONNECTIONS = "$SYS.REQ.SERVER.PING.CONNZ"
MOST_CONNECTIONS = 100_000
MOST_ENDED = 1024
"""Of the connections that ended last, those that are listed."""

OTHERS_SECONDS = 0.05
"""Wait for other servers once one has responded."""

TIMEOUT_SECONDS = 2.0


class _Connection(msgspec.Struct, frozen=True):
    cid: int
    authorized_user: str = ""
    pending_bytes: int = 0
    in_bytes: int = 0


class _Connections(msgspec.Struct, frozen=True):
    connections: tuple[_Connection, ...] | None = ()


class _ServerId(msgspec.Struct, frozen=True):
    id: str


class _ConnectionsResponse(msgspec.Struct, frozen=True):
    server: _ServerId
    data: _Connections = _Connections()


_decode = json_decoder(_ConnectionsResponse)
_ENDED = 1
"""The server's word for connections that are closed."""


class SystemAccount:
    """Sends requests on a connection of the system account's user. Implements the protocols of the port."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def connections_of(self, user: str, *, wait_seconds: float = 0.5) -> Sequence[ServerConnection]:
        """The connections of a user, on all servers that respond in time. Raises Unavailable when none does."""
        options = {"auth": True, "user": user, "limit": MOST_CONNECTIONS}
        responses = await self._ping(options, wait_seconds, wait_seconds)
        return [load.connection for response in responses for load in _found(response)]

    async def connection_lists(self) -> ConnectionsSnapshot:
        """See the port."""
        outside = {"auth": True, "acc": OUT}
        listed = {**outside, "limit": MOST_CONNECTIONS}
        ended = {**outside, "state": _ENDED, "sort": "stop", "limit": MOST_ENDED}
        pings = (self._ping(each, TIMEOUT_SECONDS, OTHERS_SECONDS) for each in (listed, ended))
        lists = [[load for each in responses for load in _found(each)] for responses in await asyncio.gather(*pings)]
        return ConnectionsSnapshot(*lists)

    async def _ping(
        self, options: Mapping[str, object], first_seconds: float, others_seconds: float
    ) -> Sequence[RawMessage]:
        """Responses of the servers: none says how many there are. Raises Unavailable without one."""
        responses: list[RawMessage] = []
        arrived = asyncio.Event()

        def receive(message: RawMessage) -> None:
            responses.append(message)
            arrived.set()

        subject = f"_INBOX.system.{secrets.token_hex(8)}"
        number = await self._connection.listen(subject, receive)
        try:
            await self._connection.send(
                [publish_command(PING_CONNECTIONS, msgspec.json.encode(options), reply=subject)]
            )
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(first_seconds):
                    await arrived.wait()
            await asyncio.sleep(others_seconds)
        finally:
            self._connection.unlisten(number)
        if not responses:
            raise Unavailable("no server reports its connections: is this the system account's user?")
        return responses

    async def kick(self, connection: ServerConnection) -> None:
        """Have a connection closed. Raises Unavailable."""
        body = msgspec.json.encode({"cid": connection.number})
        await self._connection.request_raw(
            f"$SYS.REQ.SERVER.{connection.server}.KICK", body, timeout_seconds=TIMEOUT_SECONDS
        )


def _found(response: RawMessage) -> Sequence[ConnectionLoad]:
    try:
        read = _decode(response.body)
    except msgspec.DecodeError:
        return ()
    return [
        ConnectionLoad(
            ServerConnection(read.server.id, each.cid, each.authorized_user), each.pending_bytes, each.in_bytes
        )
        for each in read.data.connections or ()
    ]


@contextlib.asynccontextmanager
async def system_account(url: str, name: str, credentials: Credentials) -> AsyncGenerator[SystemAccount]:
    """A connection of the system account's user."""
    connection = Connection()
    await connection.open(url, name, credentials=credentials, on_reconnect=lambda: None)
    try:
        yield SystemAccount(connection)
    finally:
        await connection.close()
