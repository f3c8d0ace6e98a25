"""HTTP for what a process tells of itself: small answers on a few paths, to whoever asks (probes, Prometheus, people).

httptools reads the protocol, asyncio holds the sockets: a framework for the web costs each process a third of its
start.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import NamedTuple, cast
from urllib.parse import unquote

import httptools
import structlog

IDLE_SECONDS = 75.0
"""How long a connection may be without a whole request."""

FINISH_SECONDS = 0.2
"""How long answers that are under way may take at the stop."""

LARGEST_REQUEST = 65_536
"""Bytes between two whole requests; a body is read and dropped."""

_log = structlog.stdlib.get_logger()


class Request(NamedTuple):
    """What somebody asks. The path is decoded and without its query."""

    method: str
    path: str


class Response(NamedTuple):
    """What is answered. A HEAD is answered without the body."""

    body: bytes
    status: int = HTTPStatus.OK
    content_type: str = "text/plain; charset=utf-8"


Answer = Callable[[Request], Awaitable[Response]]
"""Answers one request; what it raises becomes a 500."""


class HttpServer:
    """One listening address; `answer` is asked for every request."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.connections: set[_Connection] = set()
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen (port 0: a free one) and answer the port. Raises OSError when it is taken."""
        self._server = await asyncio.get_running_loop().create_server(lambda: _Connection(self), host, port)
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Stop listening, let answers under way be finished, and hang up."""
        if self._server is None:
            return
        self._server.close()
        self._server = None
        busy = [each.answering for each in self.connections if each.answering is not None]
        if busy:
            await asyncio.wait(busy, timeout=FINISH_SECONDS)
        for connection in tuple(self.connections):
            connection.hang_up()
        await asyncio.sleep(0)  # sockets are closed in the next turn of the loop


class _Connection(asyncio.Protocol):
    """One connection: its requests are answered one after the other."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._parser = httptools.HttpRequestParser(self)
        self._loop = asyncio.get_running_loop()
        self._target = b""
        self._read = 0
        self._asked: deque[tuple[Request, bool]] = deque()
        self._idle: asyncio.TimerHandle | None = None
        self.answering: asyncio.Task[None] | None = None

    # ------------------------------------------------------------------------------------------ the socket

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._server.connections.add(self)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc  # whoever asked is gone, one way or the other
        self._server.connections.discard(self)
        if self._idle is not None:
            self._idle.cancel()
        if self.answering is not None:
            self.answering.cancel()

    def data_received(self, data: bytes) -> None:
        self._read += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._transport.close()
        except httptools.HttpParserError:
            self._refuse(HTTPStatus.BAD_REQUEST)
        else:
            if self._read > LARGEST_REQUEST:
                self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)

    def hang_up(self) -> None:
        """End the connection at once."""
        self._transport.abort()

    def _wait(self) -> None:
        self._idle = self._loop.call_later(IDLE_SECONDS, self._transport.close)

    def _refuse(self, status: HTTPStatus) -> None:
        self._write(Response(b"", status), keeps=False)

    # ------------------------------------------------------------------------------------------ the parser's calls

    def on_message_begin(self) -> None:
        self._target = b""

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_message_complete(self) -> None:
        self._read = 0
        path = unquote(self._target.decode("latin-1").partition("?")[0])
        request = Request(self._parser.get_method().decode("ascii"), path)
        self._asked.append((request, self._parser.should_keep_alive()))
        if self.answering is None:
            if self._idle is not None:
                self._idle.cancel()
            self.answering = self._loop.create_task(self._answer_all())

    # ------------------------------------------------------------------------------------------ the answers

    async def _answer_all(self) -> None:
        while self._asked and not self._transport.is_closing():
            request, keeps = self._asked.popleft()
            try:
                response = await self._server.answer(request)
            except Exception:  # noqa: BLE001 - whoever asks gets an answer, and the log says why
                _log.exception("request.failed", path=request.path)
                response = Response(b"this went wrong here\n", HTTPStatus.INTERNAL_SERVER_ERROR)
            self._write(response, keeps=keeps, has_body=request.method != "HEAD")
        self.answering = None
        self._wait()

    def _write(self, response: Response, *, keeps: bool, has_body: bool = True) -> None:
        if self._transport.is_closing():
            return
        status = HTTPStatus(response.status)
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\n"
            f"Content-Type: {response.content_type}\r\n"
            f"Content-Length: {len(response.body)}\r\n"
            f"Connection: {'keep-alive' if keeps else 'close'}\r\n\r\n"
        )
        self._transport.write(head.encode("latin-1") + (response.body if has_body else b""))
        if not keeps:
            self._transport.close()
