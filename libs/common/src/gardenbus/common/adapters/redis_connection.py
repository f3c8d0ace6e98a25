"""The connection to Redis and its function library: calls in, answers or our errors out.

All calls share one connection (redis_line.py), so that calls made at the same time cost one round trip. Calls of a
function in TOGETHER even become one call, up to `CALLED_TOGETHER` of them: Redis reads a command of many arguments as a
whole, and where it syncs its log after each turn, they share that too.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import hiredis
import msgspec
import structlog
from redis.asyncio.connection import ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from gardenbus.common.adapters.redis_functions import LIBRARY_NAME, SOURCE, with_places
from gardenbus.common.adapters.redis_line import Command, RedisLine
from gardenbus.common.adapters.store_answers import fenced, outbox_is_full
from gardenbus.common.errors import Unavailable

TOGETHER = {"put": "gb_put_many"}
"""Functions that have a twin which takes several operations, carries out each on its own, and answers them in order."""

CALLED_TOGETHER = 50
"""Operations in one call: Redis serves nobody else meanwhile (about 3 ms)."""

_log = structlog.stdlib.get_logger()
_pack = msgspec.msgpack.Encoder().encode


class _Gathered(NamedTuple):
    """An operation that leaves with others, and who waits for it."""

    packed: bytes
    answer: "asyncio.Future[Any]"


class RedisConnection:
    """The line to Redis, and the functions of one landscape (`prefix`)."""

    def __init__(self, url: str, prefix: str = "garden", *, timeout_seconds: float = 10.0) -> None:
        self.prefix = prefix
        self._timeout_seconds = timeout_seconds
        self._pool = ConnectionPool.from_url(  # pyright: ignore[reportUnknownMemberType]
            url,
            protocol=2,
            socket_timeout=timeout_seconds,
            socket_connect_timeout=timeout_seconds,
            retry=Retry(NoBackoff(), 0),  # the callers back off; a write must not be sent twice behind their backs
        )
        self._line = self._new_line()
        self._lines_to_wait_on: list[RedisLine] = []
        self._lines = [self._line]
        self._gathered: dict[str, list[_Gathered]] = {}
        self._leaving: set[asyncio.Task[None]] = set()

    def _new_line(self) -> RedisLine:
        return RedisLine(self._pool, timeout_seconds=self._timeout_seconds)

    def key(self, name: str) -> str:
        """A key of this landscape."""
        return f"{self.prefix}:{name}"

    async def command(self, *arguments: str | bytes | float) -> Any:
        """Run one command (none that waits: see `wait`). Raises Unavailable when the server is away."""
        return _accepted((await self._line.ask((arguments,)))[0], arguments)

    async def wait(self, *arguments: str | bytes | float) -> Any:
        """Run one command that may wait for something to happen, on a connection of its own. Raises Unavailable."""
        if self._lines_to_wait_on:
            line = self._lines_to_wait_on.pop()
        else:
            line = self._new_line()
            self._lines.append(line)
        try:
            return _accepted((await line.ask((arguments,)))[0], arguments)
        finally:
            self._lines_to_wait_on.append(line)

    async def pipeline(self, commands: Sequence[Command]) -> list[Any]:
        """Run several commands in one round trip (no transaction)."""
        if not commands:
            return []
        replies = await self._line.ask(commands)
        return [_accepted(reply, command) for reply, command in zip(replies, commands, strict=True)]

    async def call(self, function: str, operation: Mapping[str, Any], *, read_only: bool = False) -> list[Any]:
        """Call one of our functions. Raises Unavailable when the server is away, fenced or its outbox is full."""
        if function in TOGETHER:
            return _taken(await self._called_together(function, _pack(operation)))
        command = self._function("FCALL_RO" if read_only else "FCALL", f"gb_{function}", _pack(operation))
        return _taken((await self._called([command]))[0])

    async def call_many(self, function: str, operations: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
        """Call one of our functions several times, in order, in one round trip; raises as `call` does.

        When one call fails, the others have been carried out all the same: only for what may be repeated.
        """
        commands = [self._function("FCALL", f"gb_{function}", _pack(operation)) for operation in operations]
        return [_taken(reply) for reply in await self._called(commands)]

    async def ensure_library(self) -> None:
        """Load the function library if the server has none or another one (loading fences the store)."""
        found = await self.command("FUNCTION", "LIST", "LIBRARYNAME", LIBRARY_NAME, "WITHCODE")
        if found:
            library = _as_mapping(found[0])
            if library.get(b"library_code") == SOURCE.encode():
                return
        await self.command("FUNCTION", "LOAD", "REPLACE", SOURCE)
        _log.info("functions.loaded", library=LIBRARY_NAME)

    async def reach(self) -> None:
        """Make sure that the server answers and has our functions. Raises Unavailable."""
        await self.command("PING")
        await self.ensure_library()

    async def close(self) -> None:
        """Close all connections."""
        for line in self._lines:
            await line.close()
        await self._pool.aclose()

    # ------------------------------------------------------------------------------------------ functions

    def _function(self, command: str, function: str, *operations: bytes) -> Command:
        return (command, function, 1, self.prefix, *operations)

    async def _called(self, commands: Sequence[Command]) -> list[Any]:
        """Call functions; a server that does not know them is given the library first."""
        try:
            return await self.pipeline(commands)
        except Unavailable as error:
            if "Function not found" not in error.message:
                raise
        await self.ensure_library()
        return await self.pipeline(commands)

    async def _called_together(self, function: str, packed: bytes) -> Any:
        """Call a function along with all who call it in this turn of the loop."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        gathered = self._gathered.setdefault(function, [])
        gathered.append(_Gathered(packed, answer))
        if len(gathered) == 1:
            leaving = asyncio.create_task(self._leave(function, gathered))
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)
        elif len(gathered) == CALLED_TOGETHER:
            del self._gathered[function]
        return _accepted(await answer, (function,))

    async def _leave(self, function: str, gathered: list[_Gathered]) -> None:
        """Carry out what was gathered, and tell each caller."""
        if self._gathered.get(function) is gathered:
            del self._gathered[function]
        wanted = [one for one in gathered if not one.answer.done()]
        if not wanted:
            return
        command = self._function("FCALL", TOGETHER[function], *(one.packed for one in wanted))
        try:
            replies = (await self._called([command]))[0]
        except Unavailable as error:
            replies = [Unavailable(error.message) for _ in wanted]
        except BaseException:
            for one in wanted:
                one.answer.cancel()
            raise
        for one, reply in zip(wanted, replies, strict=True):
            if not one.answer.done():
                one.answer.set_result(reply)


def _accepted(reply: Any, command: Sequence[Any]) -> Any:
    """A reply, unless it is a refusal."""
    if isinstance(reply, hiredis.ReplyError):
        raise Unavailable(f"Redis refused {command[0]!r}: {with_places(str(reply))}")
    if isinstance(reply, Unavailable):
        raise reply
    return reply


def _taken(reply: list[Any]) -> list[Any]:
    """A function's reply, unless it says that nothing is taken at all."""
    if reply and reply[0] == b"fenced":
        raise fenced()
    if reply and reply[0] == b"full-outbox":
        raise outbox_is_full()
    return reply


def _as_mapping(reply: Any) -> dict[bytes, Any]:
    if isinstance(reply, dict):
        return cast("dict[bytes, Any]", reply)
    items = cast("list[Any]", reply)
    return dict(zip(items[::2], items[1::2], strict=True))
