"""Connection to Redis that any number of callers share: their commands of one turn of the loop leave as one write.

- Replies come in the order of the requests, each to its own caller. The failure of one affects no other.
- Nothing is sent twice. When the connection is lost, all pending requests fail at once (`Unavailable`: it is open what
  was carried out), and the next request connects anew; connecting is tried once for all who wait for it.
- A caller that gives up leaves its place to nobody: its reply is dropped when it comes, and what had not left yet never
  leaves.
- A server that hangs is given up when the oldest request has waited for the timeout.
- Whatever fails while connecting, or of the connection later, is an outage: the next request connects anew.

redis-py finds the server, encrypts and authenticates; from then on the socket is this module's.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, cast

import hiredis
from redis.asyncio.connection import AbstractConnection, ConnectionPool

from gardenbus.common.adapters.redis.addresses import ServerAddress
from gardenbus.common.adapters.redis.direct import connection_to
from gardenbus.common.errors import Unavailable

Command = tuple[str | bytes | int | float, ...]

CANCELLED_AGAIN_SECONDS = 0.05
"""Interval at which connecting is cancelled until it has ended."""

_NOTHING = object()
_pack = cast("Callable[[Command], bytes]", hiredis.pack_command)  # pyright: ignore[reportUnknownMemberType]


class _Request:
    """Commands sent together, and the future of their replies."""

    __slots__ = ("deadline", "future", "packed", "replies", "wanted")

    def __init__(self, commands: Sequence[Command], future: "asyncio.Future[list[Any]]") -> None:
        self.packed: list[bytes] = [_pack(command) for command in commands]
        self.wanted = len(commands)
        self.replies: list[Any] = []
        self.future = future
        self.deadline = 0.0


class _ReplyProtocol(asyncio.Protocol):
    """An open connection, until it is lost."""

    def __init__(self, connection: AbstractConnection, timeout_seconds: float) -> None:
        self._connection = connection
        self._timeout_seconds = timeout_seconds
        self._loop = asyncio.get_running_loop()
        self._reader = hiredis.Reader(notEnoughData=_NOTHING)
        self._unsent: list[_Request] = []
        self._sent: deque[_Request] = deque()
        self._timeout_handle: asyncio.TimerHandle | None = None
        self.is_lost = False
        self._lost_because = ""
        reader, writer = _streams_of(connection)
        self._transport = cast("asyncio.Transport", writer.transport)
        self._transport.set_protocol(self)
        if self._transport.is_closing() or reader.at_eof():
            self.lose("the server closed the connection")

    def execute(self, commands: Sequence[Command]) -> "asyncio.Future[list[Any]]":
        """Send with the others of this turn; the replies come in the commands' order, error replies among them."""
        future: asyncio.Future[list[Any]] = self._loop.create_future()
        if self.is_lost:  # as soon as it was made, before those who waited for it came to use it
            _fail(future, self._lost_because)
            return future
        if not self._unsent:
            self._loop.call_soon(self._send)
        self._unsent.append(_Request(commands, future))
        return future

    def lose(self, why: str) -> None:
        """Abort the connection and fail all pending requests."""
        if self.is_lost:
            return
        self.is_lost, self._lost_because = True, why
        if self._timeout_handle is not None:
            self._timeout_handle.cancel()
        self._transport.abort()
        for request in (*self._sent, *self._unsent):
            if not request.future.done():
                _fail(request.future, why)
        self._sent.clear()
        self._unsent.clear()

    async def disconnect(self) -> None:
        """End the connection."""
        self.lose("the connection was closed")
        await self._connection.disconnect(nowait=True)

    # ------------------------------------------------------------------------------------------ the socket

    def data_received(self, data: bytes) -> None:
        """Hand replies to those who wait for them."""
        try:
            self._reader.feed(data)
            while (reply := self._reader.gets()) is not _NOTHING:
                if not isinstance(reply, hiredis.PushNotification):
                    self._receive_reply(reply)
        except hiredis.ProtocolError as error:
            self.lose(f"protocol error: {error}")

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail all calls that wait for a response."""
        self.lose(str(exc) if exc else "the server closed the connection")

    def _receive_reply(self, reply: Any) -> None:
        if not self._sent:
            self.lose(f"unexpected reply: {str(reply)[:200]}")
            return
        request = self._sent[0]
        request.replies.append(reply)
        if len(request.replies) == request.wanted:
            self._sent.popleft()
            if not request.future.done():
                request.future.set_result(request.replies)

    def _send(self) -> None:
        wanted = [request for request in self._unsent if not request.future.done()]
        self._unsent = []
        if self.is_lost or not wanted:
            return
        deadline = self._loop.time() + self._timeout_seconds
        for request in wanted:
            request.deadline = deadline
        self._sent.extend(wanted)
        try:
            self._transport.write(b"".join([packed for request in wanted for packed in request.packed]))
        except Exception as error:  # noqa: BLE001  uvloop: RuntimeError for a socket whose loss is about to be reported
            self.lose(str(error))
            return
        if self._timeout_handle is None:
            self._timeout_handle = self._loop.call_at(deadline, self._check_timeout)

    def _check_timeout(self) -> None:
        """Abort when the oldest request has not been replied to in time."""
        self._timeout_handle = None
        if not self._sent:
            return
        if self._loop.time() >= self._sent[0].deadline:
            self.lose(f"no reply within {self._timeout_seconds:g} s")
        else:
            self._timeout_handle = self._loop.call_at(self._sent[0].deadline, self._check_timeout)


class MultiplexedConnection:
    """See the module."""

    def __init__(
        self,
        pool: ConnectionPool,
        *,
        timeout_seconds: float,
        locate: "Callable[[], Awaitable[ServerAddress | None]] | None" = None,
    ) -> None:
        self._pool = pool
        self._locate = locate
        self._timeout_seconds = timeout_seconds
        self._protocol: _ReplyProtocol | None = None
        self._connecting: asyncio.Task[_ReplyProtocol] | None = None

    async def execute(self, commands: Sequence[Command]) -> list[Any]:
        """Execute commands; returns the replies in order, `ReplyError`s among them. Raises Unavailable."""
        protocol = self._protocol
        if protocol is None or protocol.is_lost:
            protocol = await self._connected()
        return await protocol.execute(commands)

    async def close(self) -> None:
        """Disconnect. The next request connects again.

        A cancellation is repeated: `asyncio.wait_for`, by which redis-py sends, swallows one that comes as it ends.
        """
        try:
            while (connecting := self._connecting) is not None and not connecting.done():
                connecting.cancel()
                await asyncio.wait((connecting,), timeout=CANCELLED_AGAIN_SECONDS)
        finally:
            if self._protocol is not None:
                await self._protocol.disconnect()
                self._protocol = None

    def lose(self, why: str) -> None:
        """Leave this server; pending requests fail, and the next one connects again."""
        if self._protocol is not None:
            self._protocol.lose(why)

    async def _connected(self) -> _ReplyProtocol:
        """Connect, together with all who want that now."""
        if self._connecting is None:
            self._connecting = asyncio.create_task(self._connect())
            self._connecting.add_done_callback(self._end_connecting)
        connecting = self._connecting
        await asyncio.wait((connecting,))  # unlike `shield` it says who was cancelled: this task, or that one
        if connecting.cancelled():
            raise Unavailable("Redis is unreachable: the connection was closed")
        return connecting.result()

    def _end_connecting(self, task: "asyncio.Task[_ReplyProtocol]") -> None:
        self._connecting = None
        if not task.cancelled():
            task.exception()  # all who wait get it; nobody is blamed when nobody waits any more

    async def _connect(self) -> _ReplyProtocol:
        if self._protocol is not None:
            await self._protocol.disconnect()
        address = await self._locate() if self._locate is not None else None
        connection = connection_to(self._pool, address)
        try:
            await connection.connect()
            self._protocol = _ReplyProtocol(connection, self._timeout_seconds)
        except BaseException as error:
            with suppress(Exception):
                await connection.disconnect(nowait=True)
            if isinstance(error, Exception):  # whatever the server, redis-py or the loop's transport made of it
                raise Unavailable(f"Redis is unreachable: {error}") from error
            raise
        return self._protocol


def _fail(future: "asyncio.Future[list[Any]]", why: str) -> None:
    future.set_exception(Unavailable(f"Redis is unreachable: {why}"))
    future.exception()  # whoever waits gets it; nobody is blamed for not waiting


def _streams_of(connection: AbstractConnection) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """The streams of a connection that has been made: nothing is left to read in them once it is authenticated."""
    reader, writer = connection._reader, connection._writer  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    assert reader is not None, "it is connected"
    assert writer is not None, "it is connected"
    return reader, writer
