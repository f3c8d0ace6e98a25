"""The connection to Redis and its function library: calls in, answers or our errors out.

All calls share one connection (redis_line.py), so that calls made at the same time cost one round trip. Calls of a
function in TOGETHER even become one call, up to `CALLED_TOGETHER` of them: Redis reads a command of many arguments as a
whole, and where it syncs its log after each turn, they share that too.

Each version of the library has a name of its own (redis_functions.py): it is loaded where it is missing and never
replaced. A version that finds the store closed asks the others on the server whether it is open (functions/fence.lua).
"""

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import hiredis
import msgspec
import structlog
from redis.asyncio.connection import ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from gardenbus.common.adapters.redis_functions import LIBRARY, NAME_PREFIX, Library, function_of
from gardenbus.common.adapters.redis_line import Command, RedisLine
from gardenbus.common.adapters.store_answers import fenced, newer_format, outbox_is_full
from gardenbus.common.errors import GardenbusError, Unavailable

TOGETHER = {"put": "put_many"}
"""Functions that have a twin which takes several operations, carries out each on its own, and answers them in order."""

CALLED_TOGETHER = 50
"""Operations in one call: Redis serves nobody else meanwhile (about 3 ms)."""

JOIN_EVERY_SECONDS = 0.25
"""How often at most a closed store makes us ask the other versions whether they have it open."""

_UNVERSIONED = "gardenbus"
"""The library as it was called when there was one version at a time; it cannot be asked, and goes."""

_log = structlog.stdlib.get_logger()
_pack = msgspec.msgpack.Encoder().encode


class _Gathered(NamedTuple):
    """An operation that leaves with others, and who waits for it."""

    packed: bytes
    answer: "asyncio.Future[Any]"


class RedisConnection:
    """The line to Redis, and the functions of one landscape (`prefix`)."""

    def __init__(
        self, url: str, prefix: str = "garden", *, timeout_seconds: float = 10.0, library: Library = LIBRARY
    ) -> None:
        self.prefix = prefix
        self._library = library
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
        self._joining: asyncio.Task[bool] | None = None
        self._join_again_at = 0.0

    def _new_line(self) -> RedisLine:
        return RedisLine(self._pool, timeout_seconds=self._timeout_seconds)

    def key(self, name: str) -> str:
        """A key of this landscape."""
        return f"{self.prefix}:{name}"

    async def command(self, *arguments: str | bytes | float) -> Any:
        """Run one command (none that waits: see `wait`). Raises Unavailable when the server is away."""
        return self._accepted((await self._line.ask((arguments,)))[0], arguments)

    async def wait(self, *arguments: str | bytes | float) -> Any:
        """Run one command that may wait for something to happen, on a connection of its own. Raises Unavailable."""
        if self._lines_to_wait_on:
            line = self._lines_to_wait_on.pop()
        else:
            line = self._new_line()
            self._lines.append(line)
        try:
            return self._accepted((await line.ask((arguments,)))[0], arguments)
        finally:
            self._lines_to_wait_on.append(line)

    async def pipeline(self, commands: Sequence[Command]) -> list[Any]:
        """Run several commands in one round trip (no transaction)."""
        if not commands:
            return []
        replies = await self._line.ask(commands)
        return [self._accepted(reply, command) for reply, command in zip(replies, commands, strict=True)]

    async def call(self, function: str, operation: Mapping[str, Any], *, read_only: bool = False) -> list[Any]:
        """Call one of our functions. Raises Unavailable when the server is away, fenced or its outbox is full."""
        if function in TOGETHER:
            return _taken(await self._called_together(function, _pack(operation)))
        command = self._function("FCALL_RO" if read_only else "FCALL", function, _pack(operation))
        return _taken(await self._called_open(command))

    async def call_together(
        self, function: str, operations: Sequence[Mapping[str, Any]]
    ) -> list[list[Any] | GardenbusError]:
        """Call a function of TOGETHER with several operations at once; what is refused of one touches no other.

        Raises Unavailable when the server is away.
        """
        command = self._function("FCALL", TOGETHER[function], *(_pack(operation) for operation in operations))
        replies = self._accepted(await self._called_open(command), command)
        return [self._one_of_many(reply, function) for reply in replies]

    def _one_of_many(self, reply: Any, function: str) -> list[Any] | GardenbusError:
        try:
            return _taken(self._accepted(reply, (function,)))
        except Unavailable as error:
            return error

    async def call_many(self, function: str, operations: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
        """Call one of our functions several times, in order, in one round trip; raises as `call` does.

        When one call fails, the others have been carried out all the same: only for what may be repeated.
        """
        commands = [self._function("FCALL", function, _pack(operation)) for operation in operations]
        return [_taken(reply) for reply in await self._called(commands)]

    async def ensure_library(self) -> None:
        """Load our version of the function library if the server has it not."""
        name = self._library.name
        if await self.command("FUNCTION", "LIST", "LIBRARYNAME", name):
            return
        try:
            await self.command("FUNCTION", "LOAD", self._library.source)
        except Unavailable as error:
            if "already exists" not in error.message:  # otherwise somebody else was faster
                raise
        else:
            await self._line.ask([("FUNCTION", "DELETE", _UNVERSIONED)])  # refused where there is none
            self._join_again_at = 0.0
            _log.info("functions.loaded", library=name)

    async def libraries(self, pattern: str = f"{NAME_PREFIX}*") -> Sequence[str]:
        """The names of the libraries on the server, by default of all versions of ours."""
        found = await self.command("FUNCTION", "LIST", "LIBRARYNAME", pattern)
        return [_as_mapping(library)[b"library_name"].decode() for library in found]

    @property
    def library(self) -> str:
        """The name of our version."""
        return self._library.name

    async def join(self) -> bool:
        """Have the other versions on the server vouch for the store to ours; answer whether it is open for us.

        Raises Unavailable, also when the store is in a format that our version does not know.
        """
        nonce = uuid.uuid4().hex
        vouching = [
            ("FCALL", function_of(library, "vouch"), 1, self.prefix, nonce)
            for library in await self.libraries()
            if library != self._library.name
        ]
        operation = _pack({"nonce": nonce, "db": self.database})
        commands = [("MULTI",), *vouching, self._function("FCALL", "join", operation), ("EXEC",)]
        replies = self._accepted((await self._line.ask(commands))[-1], ("EXEC",))
        _, is_open, is_new = _taken(self._accepted(replies[-1], ("FCALL",)))
        if is_new:
            _log.info("functions.joined", library=self._library.name, prefix=self.prefix)
        return bool(is_open)

    @property
    def database(self) -> int:
        """The number of the database on the server."""
        return int(self._pool.connection_kwargs.get("db") or 0)

    async def reach(self) -> None:
        """Make sure that the server answers, has our functions, and holds no data of a newer format.

        Raises Unavailable. Whether the store is open for writes is not asked.
        """
        await self.command("PING")
        await self._come_in()

    async def close(self) -> None:
        """Close all connections."""
        for line in self._lines:
            await line.close()
        await self._pool.aclose()

    # ------------------------------------------------------------------------------------------ functions

    def _function(self, command: str, function: str, *operations: bytes) -> Command:
        return (command, self._library.function(function), 1, self.prefix, *operations)

    async def _come_in(self) -> None:
        """Load our version, and open the store for it if another version has it open."""
        await self.ensure_library()
        await self._joined()

    async def _called(self, commands: Sequence[Command]) -> list[Any]:
        """Call functions; a server that does not know them is given the library first."""
        try:
            return await self.pipeline(commands)
        except Unavailable as error:
            if "Function not found" not in error.message:
                raise
        await self._come_in()
        return await self.pipeline(commands)

    async def _called_open(self, command: Command) -> Any:
        """Call a function, and once more if the store is closed for us but open for another version."""
        reply = (await self._called([command]))[0]
        if _is_fenced(reply) and await self._joined():
            reply = (await self._called([command]))[0]
        return reply

    async def _joined(self) -> bool:
        """`join`, together with all who want that now; after a refusal not at once again."""
        now = asyncio.get_running_loop().time()
        joining = self._joining
        if joining is None or (joining.done() and (now >= self._join_again_at or _has_joined(joining))):
            self._join_again_at = now + JOIN_EVERY_SECONDS
            joining = self._joining = asyncio.create_task(self.join())
            joining.add_done_callback(_has_joined)
        return await asyncio.shield(joining)

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
        return self._accepted(await answer, (function,))

    def _accepted(self, reply: Any, command: Sequence[Any]) -> Any:
        """A reply, unless it is a refusal."""
        if isinstance(reply, hiredis.ReplyError):
            raise Unavailable(f"Redis refused {command[0]!r}: {self._library.with_places(str(reply))}")
        if isinstance(reply, Unavailable):
            raise reply
        return reply

    async def _leave(self, function: str, gathered: list[_Gathered]) -> None:
        """Carry out what was gathered, and tell each caller."""
        if self._gathered.get(function) is gathered:
            del self._gathered[function]
        wanted = [one for one in gathered if not one.answer.done()]
        if not wanted:
            return
        command = self._function("FCALL", TOGETHER[function], *(one.packed for one in wanted))
        try:
            replies = await self._called_open(command)
        except Unavailable as error:
            replies = [Unavailable(error.message) for _ in wanted]
        except BaseException:
            for one in wanted:
                one.answer.cancel()
            raise
        for one, reply in zip(wanted, replies, strict=True):
            if not one.answer.done():
                one.answer.set_result(reply)


def _has_joined(task: asyncio.Task[bool]) -> bool:
    """What came of an attempt; nobody is blamed for not waiting for one that failed."""
    return not task.cancelled() and task.exception() is None and task.result()


def _is_fenced(reply: Any) -> bool:
    """Whether nothing was done because the store is closed: of several operations, all were refused alike."""
    return bool(reply) and (reply[0] == b"fenced" or (isinstance(reply[0], list) and reply[0] == [b"fenced"]))


def _taken(reply: list[Any]) -> list[Any]:
    """A function's reply, unless it says that nothing is taken at all."""
    if reply and reply[0] == b"fenced":
        raise fenced()
    if reply and reply[0] == b"format":
        raise newer_format(int(reply[1]), int(reply[2]))
    if reply and reply[0] == b"full-outbox":
        raise outbox_is_full()
    return reply


def _as_mapping(reply: Any) -> dict[bytes, Any]:
    if isinstance(reply, dict):
        return cast("dict[bytes, Any]", reply)
    items = cast("list[Any]", reply)
    return dict(zip(items[::2], items[1::2], strict=True))
