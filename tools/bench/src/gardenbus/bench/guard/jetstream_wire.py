"""Client of JetStream for the yardstick: plain publishes and acknowledged fetches, in the protocol's own text.

It uses no adapter of ours, so that NATS gets the same bytes whatever becomes of them.
"""

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

INBOX = "_INBOX.yardstick"
_RESPONSES = f"SUB {INBOX}.> 1\r\n".encode()
EXPIRES_NANOSECONDS = 120 * 10**9


class WireFailed(Exception):
    """The server responded with an error."""


class JetStreamWire:
    """One connection; one request or batch at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._numbers = itertools.count()

    async def greet(self) -> None:
        """Begin the connection."""
        await self._reader.readline()
        self._writer.write(b'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\n' + _RESPONSES)
        await self._writer.drain()

    async def request(self, endpoint: str, body: object) -> None:
        """Send a request to JetStream's API. Raises WireFailed when it rejects."""
        inbox = f"{INBOX}.{next(self._numbers)}"
        self._publish(f"$JS.API.{endpoint}", json.dumps(body).encode(), inbox)
        _, payload = await self._received()
        if error := json.loads(payload).get("error"):
            raise WireFailed(f"{endpoint}: {error}")

    async def publish(self, subject: str, bodies: Sequence[bytes]) -> None:
        """Publish all and await each acknowledgement."""
        inbox = f"{INBOX}.{next(self._numbers)}"
        for number, body in enumerate(bodies):
            self._publish(subject, body, f"{inbox}.{number}")
        for _ in bodies:
            _, payload = await self._received()
            if b'"error"' in payload:
                raise WireFailed(payload.decode())

    async def fetch(self, stream: str, consumer: str, count: int) -> None:
        """Fetch so many messages that are there, and acknowledge each."""
        inbox = f"{INBOX}.{next(self._numbers)}"
        request = json.dumps({"batch": count, "expires": EXPIRES_NANOSECONDS}).encode()
        self._publish(f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}", request, inbox)
        for _ in range(count):
            reply, _ = await self._received()
            self._publish(reply, b"+ACK")
        await self._writer.drain()

    def _publish(self, subject: str, body: bytes, reply: str = "") -> None:
        self._writer.write(f"PUB {subject} {f'{reply} ' if reply else ''}{len(body)}\r\n".encode() + body + b"\r\n")

    async def _received(self) -> tuple[str, bytes]:
        """The next message: the subject to reply to, and its body. It is the response to the one request under way."""
        await self._writer.drain()
        while True:
            words = (await self._reader.readline()).decode().split()
            if not words or words[0] == "-ERR":
                raise WireFailed(" ".join(words) or "NATS closed the connection")
            if words[0] == "PING":
                self._writer.write(b"PONG\r\n")
            elif words[0] in ("MSG", "HMSG"):
                body = (await self._reader.readexactly(int(words[-1]) + 2))[:-2]
                if words[0] == "HMSG":  # a status in place of a message
                    raise WireFailed(body.decode().strip())
                return words[3] if len(words) > 4 else "", body  # noqa: PLR2004 - MSG subject sid [reply] size


@asynccontextmanager
async def connect(url: str) -> AsyncGenerator[JetStreamWire]:
    """Connect to a NATS that lets everybody in."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port, limit=2**20)
    try:
        wire = JetStreamWire(reader, writer)
        await wire.greet()
        yield wire
    finally:
        writer.close()
        await writer.wait_closed()
