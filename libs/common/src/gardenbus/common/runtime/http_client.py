"""Asking over HTTP what a process tells of itself: short questions, small answers, connections that are kept."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping
from http import HTTPStatus
from typing import NamedTuple, cast
from urllib.parse import urlsplit

import httptools

LARGEST_ANSWER = 64 * 1024 * 1024

_Origin = tuple[str, int, bool]


class Answer(NamedTuple):
    """What was answered; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_good(self) -> bool:
        """Whether it says 200."""
        return self.status == HTTPStatus.OK

    @property
    def text(self) -> str:
        """The body, read as UTF-8."""
        return self.body.decode(errors="replace")


class HttpClient:
    """Asks, and keeps a connection to each server for the next question."""

    def __init__(self, *, timeout_seconds: float) -> None:
        self._timeout_seconds = timeout_seconds
        self._kept: dict[_Origin, list[_Connection]] = {}

    async def ask(self, url: str, *, method: str = "GET") -> Answer:
        """Ask a URL. Raises OSError (TimeoutError among them) when no whole answer comes in time.

        Questions have no body, and HEAD is none of them. A kept connection that turns out to be closed is no answer
        yet: the question is put again on a new one.
        """
        parts = urlsplit(url)
        encrypted = parts.scheme == "https"
        origin = (parts.hostname or "", parts.port or (443 if encrypted else 80), encrypted)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        length = "" if method == "GET" else "Content-Length: 0\r\n"
        host = parts.netloc.rpartition("@")[2]
        question = f"{method} {target} HTTP/1.1\r\nHost: {host}\r\nAccept: */*\r\n{length}\r\n"
        async with asyncio.timeout(self._timeout_seconds):
            kept = self._kept.get(origin, [])
            while kept:
                with contextlib.suppress(_ClosedBefore):
                    return await self._asked(kept.pop(), origin, question)
            return await self._asked(await _connect(origin), origin, question)

    def close(self) -> None:
        """Close the connections that were kept."""
        for connections in self._kept.values():
            for connection in connections:
                connection.close()
        self._kept.clear()

    async def _asked(self, connection: "_Connection", origin: _Origin, question: str) -> Answer:
        try:
            answer = await connection.ask(question.encode("latin-1"))
        except BaseException:
            connection.close()
            raise
        if connection.may_be_kept:
            self._kept.setdefault(origin, []).append(connection)
        else:
            connection.close()
        return answer


@contextlib.asynccontextmanager
async def http_client(*, timeout_seconds: float) -> AsyncGenerator[HttpClient]:
    """A client that closes its connections in the end."""
    client = HttpClient(timeout_seconds=timeout_seconds)
    try:
        yield client
    finally:
        client.close()
        await asyncio.sleep(0)  # sockets are closed in the next turn of the loop


class _ClosedBefore(ConnectionError):
    """The server closed the connection before it said anything."""


async def _connect(origin: _Origin) -> "_Connection":
    host, port, encrypted = origin
    loop = asyncio.get_running_loop()
    _, protocol = await loop.create_connection(_Connection, host, port, ssl=encrypted or None)
    return protocol


class _Connection(asyncio.Protocol):
    """One connection; one question at a time."""

    def __init__(self) -> None:
        self._answer: asyncio.Future[Answer] | None = None
        self._is_closed = False
        self._begin()

    def _begin(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._size = 0
        self.may_be_kept = False

    async def ask(self, question: bytes) -> Answer:
        """Ask, and answer what came. Raises ConnectionError."""
        if self._is_closed:
            raise _ClosedBefore("the connection was closed")
        self._begin()
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(question)
        return await self._answer

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_closed = True
        kind = ConnectionError if self._size else _ClosedBefore
        self._fail(kind(str(exc or "the connection was closed")))

    def data_received(self, data: bytes) -> None:
        self._size += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(ConnectionError(f"it does not speak HTTP: {error}"))
        if self._size > LARGEST_ANSWER:
            self._fail(ConnectionError("the answer is too large"))

    def _fail(self, error: ConnectionError) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)

    # ------------------------------------------------------------------------------------------ the parser's calls

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        self.may_be_kept = self._parser.should_keep_alive() and not self._is_closed
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(Answer(self._parser.get_status_code(), self._headers, b"".join(self._body)))
