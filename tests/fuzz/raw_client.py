"""A client of NATS that sends bytes as they are, and matches responses with what they answer."""

import asyncio
import json
import ssl
from collections.abc import Callable
from typing import Self
from urllib.parse import urlsplit

from tests.support.garbage import Garbage

INBOX = b"_INBOX.fuzz."
NO_RESPONDERS = b"no responders"

OnResponse = Callable[[int, bytes], None]


class RawClient:
    """One connection. `on_response` gets the number of a request and the body of its response."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        on_response: OnResponse,
        inbox: bytes = INBOX,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._on_response = on_response
        self._inbox = inbox
        self.errors: list[bytes] = []
        self._task = asyncio.create_task(self._read())

    @classmethod
    async def connect(
        cls,
        url: str,
        on_response: OnResponse,
        *,
        login: tuple[str, str] | None = None,
        inbox: bytes = INBOX,
        trust: ssl.SSLContext | None = None,
    ) -> Self:
        """Connect, with a user and password where `login` says so; `inbox` begins the subjects of responses."""
        address = urlsplit(url)
        reader, writer = await asyncio.open_connection(address.hostname, address.port, limit=16 * 1024 * 1024)
        await reader.readline()
        if trust is not None:
            await writer.start_tls(trust, server_hostname=address.hostname)
        options: dict[str, object] = {"verbose": False, "pedantic": False, "headers": True, "no_responders": True}
        if login is not None:
            options |= {"user": login[0], "pass": login[1]}
        writer.write(b"CONNECT " + json.dumps(options).encode() + b"\r\n")
        writer.write(b"SUB %b> 1\r\n" % inbox)
        return cls(reader, writer, on_response, inbox)

    async def send(self, message: Garbage, number: int | None) -> None:
        """Send a message, with a reply subject when it is numbered."""
        subject, headers, body = message
        reply = b"" if number is None else b" %b%d" % (self._inbox, number)
        if headers:
            self._writer.write(b"HPUB %b%b %d %d\r\n" % (subject, reply, len(headers), len(headers) + len(body)))
        else:
            self._writer.write(b"PUB %b%b %d\r\n" % (subject, reply, len(body)))
        self._writer.write(headers + body + b"\r\n")
        await self._writer.drain()

    @property
    def is_closed(self) -> bool:
        """True when the server has ended the connection."""
        return self._task.done()

    async def close(self) -> None:
        """End the connection."""
        self._task.cancel()
        self._writer.close()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _read(self) -> None:
        while line := await self._reader.readline():
            words = line.split()
            match words[0] if words else b"":
                case b"MSG":
                    body = await self._reader.readexactly(int(words[-1]) + 2)
                    self._respond(words[1], body[:-2])
                case b"HMSG":
                    whole = await self._reader.readexactly(int(words[-1]) + 2)
                    headers, body = whole[: int(words[-2])], whole[int(words[-2]) : -2]
                    body = NO_RESPONDERS if headers.startswith(b"NATS/1.0 503") else body
                    self._respond(words[1], body)
                case b"PING":
                    self._writer.write(b"PONG\r\n")
                case b"-ERR":
                    self.errors.append(line)
                case _:
                    pass

    def _respond(self, subject: bytes, body: bytes) -> None:
        """Hand a response on; what somebody has published to the inbox besides is none."""
        number = subject.removeprefix(self._inbox)
        if number.isdigit():
            self._on_response(int(number), body)
