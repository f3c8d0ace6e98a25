"""What an operator asks NATS beside the bus: which server this is, and questions that many answer."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from typing import Any, NamedTuple

import msgspec

from gardenbus.common.adapters.jetstream_connection import NOBODY, Connection, RawMessage, publish_command

SILENCE_SECONDS = 0.3
"""After the last answer, how long another one is waited for."""


class ServerTold(NamedTuple):
    """What a server says of itself when one connects."""

    name: str
    version: str
    has_jetstream: bool
    max_payload: int


class _TellingConnection(Connection):
    """A connection that hands on all that the server said when it was made."""

    def told(self) -> dict[str, Any]:
        return dict(self._server_info)


class Inquiry:
    """A connection to ask on; see `inquire`."""

    def __init__(self, connection: _TellingConnection) -> None:
        self._connection = connection

    @property
    def server(self) -> ServerTold:
        """The server that answers."""
        info = self._connection.told()
        return ServerTold(
            name=str(info.get("server_name") or ""),
            version=str(info.get("version") or ""),
            has_jetstream=bool(info.get("jetstream")),
            max_payload=int(info.get("max_payload") or 0),
        )

    async def all_answers(self, subject: str, *, within_seconds: float = 2.0) -> Sequence[dict[str, Any]]:
        """Ask and collect what everybody answers, until there is silence; what is no JSON object is left out."""
        bodies: list[bytes] = []
        heard = asyncio.Event()

        def take(message: RawMessage) -> None:
            if message.status != NOBODY:
                bodies.append(message.body)
            heard.set()

        inbox = self._connection.new_inbox()
        number = await self._connection.listen(inbox, take)
        try:
            await self._connection.send((publish_command(subject, b"", reply=inbox),))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(within_seconds):
                    while True:
                        async with asyncio.timeout(SILENCE_SECONDS if bodies else within_seconds):
                            await heard.wait()
                        heard.clear()
        finally:
            self._connection.abandon(number)
        return [answer for answer in map(_decoded, bodies) if answer]


@contextlib.asynccontextmanager
async def inquire(url: str, name: str) -> AsyncGenerator[Inquiry]:
    """Open a connection to ask on, waiting for the server as long as it takes; closed in the end."""
    connection = _TellingConnection()
    await connection.open(url, name, inbox_prefix="_INBOX", on_reconnect=lambda: None)
    try:
        yield Inquiry(connection)
    finally:
        await connection.close()


def _decoded(body: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.MsgspecError:
        return {}
