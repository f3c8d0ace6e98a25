"""One connection to Redis that any number of callers share: what they ask in one turn of the loop leaves as one write.

- Replies come in the order of the questions, each to its own caller. What the server refuses of one touches no other.
- Nothing is sent twice. When the connection is lost, all who wait are told so at once (`Unavailable`: they cannot know
  what was carried out), and the next question connects anew; connecting is tried once for all who wait for it.
- A caller that gives up leaves its place to nobody: its reply is dropped when it comes, and what had not left yet never
  leaves.
- A server that hangs is given up when the oldest question has waited for the timeout.

redis-py finds the server, encrypts and authenticates; from then on the socket is this module's.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, cast

import hiredis
from redis.asyncio.connection import AbstractConnection, ConnectionPool
from redis.exceptions import RedisError

from gardenbus.common.errors import Unavailable

Command = tuple[str | bytes | int | float, ...]

_NOTHING = object()
_pack = cast("Callable[[Command], bytes]", hiredis.pack_command)  # pyright: ignore[reportUnknownMemberType]


class _Question:
    """Commands that were asked together, and who waits for the replies to them."""

    __slots__ = ("answer", "due", "packed", "replies", "wanted")

    def __init__(self, commands: Sequence[Command], answer: "asyncio.Future[list[Any]]") -> None:
        self.packed: list[bytes] = [_pack(command) for command in commands]
        self.wanted = len(commands)
        self.replies: list[Any] = []
        self.answer = answer
        self.due = 0.0


class _Wire(asyncio.Protocol):
    """An open connection, until it is lost."""

    def __init__(self, connection: AbstractConnection, timeout_seconds: float) -> None:
        self._connection = connection
        self._timeout_seconds = timeout_seconds
        self._loop = asyncio.get_running_loop()
        self._reader = hiredis.Reader(notEnoughData=_NOTHING)
        self._unsent: list[_Question] = []
        self._sent: deque[_Question] = deque()
        self._watch: asyncio.TimerHandle | None = None
        self.is_lost = False
        reader, writer = _streams_of(connection)
        self._transport = cast("asyncio.Transport", writer.transport)
        self._transport.set_protocol(self)
        if self._transport.is_closing() or reader.at_eof():
            self.lose("the server closed the connection")

    def ask(self, commands: Sequence[Command]) -> "asyncio.Future[list[Any]]":
        """Ask with the others of this turn; the replies come in the order of the commands, refusals among them."""
        answer: asyncio.Future[list[Any]] = self._loop.create_future()
        if not self._unsent:
            self._loop.call_soon(self._send)
        self._unsent.append(_Question(commands, answer))
        return answer

    def lose(self, why: str) -> None:
        """Give the connection up, and tell everybody who waits."""
        if self.is_lost:
            return
        self.is_lost = True
        if self._watch is not None:
            self._watch.cancel()
        self._transport.abort()
        for question in (*self._sent, *self._unsent):
            if not question.answer.done():
                question.answer.set_exception(Unavailable(f"Redis is out of reach: {why}"))
                question.answer.exception()  # whoever waits gets it; nobody is blamed for not waiting
        self._sent.clear()
        self._unsent.clear()

    async def hang_up(self) -> None:
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
                    self._take(reply)
        except hiredis.ProtocolError as error:
            self.lose(f"it does not speak its protocol: {error}")

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell everybody who waits."""
        self.lose(str(exc) if exc else "the server closed the connection")

    def _take(self, reply: Any) -> None:
        if not self._sent:
            self.lose(f"it says unasked: {str(reply)[:200]}")
            return
        question = self._sent[0]
        question.replies.append(reply)
        if len(question.replies) == question.wanted:
            self._sent.popleft()
            if not question.answer.done():
                question.answer.set_result(question.replies)

    def _send(self) -> None:
        wanted = [question for question in self._unsent if not question.answer.done()]
        self._unsent = []
        if self.is_lost or not wanted:
            return
        due = self._loop.time() + self._timeout_seconds
        for question in wanted:
            question.due = due
        self._sent.extend(wanted)
        self._transport.write(b"".join([packed for question in wanted for packed in question.packed]))
        if self._watch is None:
            self._watch = self._loop.call_at(due, self._look)

    def _look(self) -> None:
        """Give up a server that has not answered the oldest question in time."""
        self._watch = None
        if not self._sent:
            return
        if self._loop.time() >= self._sent[0].due:
            self.lose(f"no reply within {self._timeout_seconds:g} s")
        else:
            self._watch = self._loop.call_at(self._sent[0].due, self._look)


class RedisLine:
    """See the module."""

    def __init__(self, pool: ConnectionPool, *, timeout_seconds: float) -> None:
        self._pool = pool
        self._timeout_seconds = timeout_seconds
        self._wire: _Wire | None = None
        self._connecting: asyncio.Task[_Wire] | None = None

    async def ask(self, commands: Sequence[Command]) -> list[Any]:
        """The replies to some commands, in order; a refusal is a `ReplyError` among them. Raises Unavailable."""
        wire = self._wire
        if wire is None or wire.is_lost:
            wire = await self._connected()
        return await wire.ask(commands)

    async def close(self) -> None:
        """Hang up. A line that is asked again connects again."""
        if self._connecting is not None:
            self._connecting.cancel()
        if self._wire is not None:
            await self._wire.hang_up()
            self._wire = None

    async def _connected(self) -> _Wire:
        """Connect, together with all who want that now."""
        if self._connecting is None:
            self._connecting = asyncio.create_task(self._connect())
            self._connecting.add_done_callback(self._end_connecting)
        connecting = self._connecting
        try:
            return await asyncio.shield(connecting)
        except asyncio.CancelledError:
            if connecting.cancelled():
                raise Unavailable("Redis is out of reach: the connection was closed") from None
            raise

    def _end_connecting(self, task: "asyncio.Task[_Wire]") -> None:
        self._connecting = None
        if not task.cancelled():
            task.exception()  # all who wait get it; nobody is blamed when nobody waits any more

    async def _connect(self) -> _Wire:
        if self._wire is not None:
            await self._wire.hang_up()
        connection = self._pool.make_connection()
        try:
            await connection.connect()
        except (RedisError, OSError) as error:
            raise Unavailable(f"Redis is out of reach: {error}") from error
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        self._wire = _Wire(connection, self._timeout_seconds)
        return self._wire


def _streams_of(connection: AbstractConnection) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """The streams of a connection that has been made: nothing is left to read in them once it is authenticated."""
    reader, writer = connection._reader, connection._writer  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    assert reader is not None, "it is connected"
    assert writer is not None, "it is connected"
    return reader, writer
