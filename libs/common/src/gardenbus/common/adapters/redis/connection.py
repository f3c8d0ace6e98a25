"""Connection to Redis and its function library: calls in, replies or our errors out.

All calls share one connection (multiplexed_connection.py), so that calls made at the same time cost one round trip.
Calls of a function in BATCH_FUNCTIONS even become one call, up to `MAX_BATCH` of them: Redis reads a command of many
arguments as a whole, and where it syncs its log after each turn, they share that too.

Each version of the library has a name of its own (function_library.py): it is loaded where it is missing and never
replaced. A version that finds the store closed has the others on the server vouch for it (functions/opening.lua).

Redis replies to a write before it knows that its append-only file could be extended (but for `appendfsync always`,
where it ends instead): on a full disk all commands of one turn of its loop are acknowledged and lost with the process.
So a write counts when the response to a PING that was sent after its reply is PONG: Redis rejects even that once it has
failed to extend the file. Where a write has to be on replicas, `WAIT` stands before that PING, and the epoch of the
master with it (replication.py); all of it leaves with the write (replicated_writes.py). The file and the replicas get
writes in their order, so what counts only with a later write (`call` without `confirm`) needs no PING of its own.
"""

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import hiredis
import msgspec
import structlog
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from gardenbus.common.adapters.redis.access import RedisAccess, connection_pool
from gardenbus.common.adapters.redis.addresses import RedisAddresses, ServerAddress, parse_redis_url
from gardenbus.common.adapters.redis.function_library import LIBRARY, NAME_PREFIX, Library, function_of
from gardenbus.common.adapters.redis.master import ListedServers, MasterFinder, Sentinels
from gardenbus.common.adapters.redis.multiplexed_connection import Command, MultiplexedConnection
from gardenbus.common.adapters.redis.replicated_writes import ReplicatedWrites
from gardenbus.common.adapters.redis.replication import Deposed, Replication
from gardenbus.common.adapters.store_responses import newer_format, outbox_is_full, store_is_closed
from gardenbus.common.errors import BadRequest, GardenbusError, SettingsInvalid, Unavailable, Unsupported

BATCH_FUNCTIONS = {"put": "put_many"}
"""Functions with a batch variant, which carries out each operation on its own and returns the replies in order."""

FAILOVER_SECONDS = 4.0
"""Longest wait for a reply where another server may be the master by then."""

CONNECTING_SECONDS = 1.5
"""Longest wait for each step of connecting there."""

MAX_BATCH = 50
"""Operations in one call: Redis serves nobody else meanwhile (about 3 ms)."""

JOIN_EVERY_SECONDS = 0.25
"""Shortest interval between two attempts to join a closed store through the other versions."""

_UNVERSIONED = "gardenbus"
"""Name of the library when there was one version at a time; it cannot vouch, and goes."""

_INCAPACITIES = {
    "MISCONF": "Redis cannot write, and goes on by itself once its disk has room",
    "NOREPLICAS": "Redis has too few replicas (min-replicas-to-write), and rejects writes until they are back",
}
"""Errors of a server that lacks something; another one may be the master by then."""

_CONDITIONS = (
    *("OOM", "LOADING", "BUSY", "UNKILLABLE", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "UNBLOCKED"),
    *("NOPERM", "NOAUTH", "WRONGPASS", "ERR Function not found", "ERR Script killed"),
)
"""Beginnings of error replies that are about the server, or this user there, and not about what it was sent."""

_FUNCTIONS = frozenset({"FCALL", "FCALL_RO", *BATCH_FUNCTIONS})

_REPLICAS_REPLIES = ("READONLY", "UNBLOCKED", "MASTERDOWN")

_log = structlog.stdlib.get_logger()
_pack = msgspec.msgpack.Encoder().encode


class _PendingCall(NamedTuple):
    """An operation that leaves with others, and who waits for it."""

    packed: bytes
    future: "asyncio.Future[Any]"


class RedisConnection:
    """The line to Redis, and the functions of one landscape (`prefix`)."""

    def __init__(
        self,
        url: str,
        prefix: str = "garden",
        *,
        timeout_seconds: float = 10.0,
        library: Library = LIBRARY,
        access: RedisAccess = RedisAccess(),  # noqa: B008  a value that nobody can change
        replicas: int = 0,
    ) -> None:
        self.prefix = prefix
        self._library = library
        addresses = _addresses(url)
        self._timeout_seconds = min(timeout_seconds, FAILOVER_SECONDS) if addresses.are_several else timeout_seconds
        connecting_seconds = min(timeout_seconds, CONNECTING_SECONDS) if addresses.are_several else timeout_seconds
        self._pool = connection_pool(
            addresses.url,
            access,
            protocol=2,
            socket_timeout=connecting_seconds,
            socket_connect_timeout=connecting_seconds,
            retry=Retry(NoBackoff(), 0),  # the callers back off; a write must not be sent twice behind their backs
        )
        self._replication = self._replicated(addresses, replicas, access)
        self._shared = self._new_connection()
        self._blocking_connections: list[MultiplexedConnection] = []
        self._connections = [self._shared]
        self._pending: dict[str, list[_PendingCall]] = {}
        self._flushing: set[asyncio.Task[None]] = set()
        self._joining: asyncio.Task[bool] | None = None
        self._join_again_at = 0.0
        self._confirming: asyncio.Task[None] | None = None
        self._replicated_writes = self._writes_to_replicas(replicas)

    def _replicated(self, addresses: RedisAddresses, required: int, access: RedisAccess) -> Replication | None:
        """Replication, where there are several servers or a write has to be on a replica."""
        if not addresses.are_several and not required:
            return None
        finder: MasterFinder | None = None
        opening_key, confirmed_key = self.key("opening"), self.key("confirmed")
        if addresses.sentinels:
            finder = Sentinels(addresses, self._pool, access)
        elif addresses.servers:
            finder = ListedServers(addresses.servers, self._pool, opening_key)
        return Replication(
            self._pool,
            finder,
            required=required,
            opening_key=opening_key,
            confirmed_key=confirmed_key,
            retiring=self._retiring,
        )

    def _writes_to_replicas(self, required: int) -> ReplicatedWrites | None:
        """Writes, where they have to be on a replica."""
        if self._replication is None or not required:
            return None
        return ReplicatedWrites(self._shared.execute, self._replication.commands, self._accept)

    def _retiring(self, epoch: int) -> Sequence[Command]:
        """Commands that close the store of an older master: a write, and where it accepts none what needs none."""
        return [self._function("FCALL", name, _pack({"epoch": epoch})) for name in ("retire", "forget_opening")]

    def _new_connection(self) -> MultiplexedConnection:
        locate = self._replication.locate if self._replication is not None else None
        return MultiplexedConnection(self._pool, timeout_seconds=self._timeout_seconds, locate=locate)

    def key(self, name: str) -> str:
        """A key of this landscape."""
        return f"{self.prefix}:{name}"

    async def command(self, *arguments: str | bytes | float) -> Any:
        """Run one command (none that waits: see `wait`). Raises Unavailable when the server is away."""
        return self._checked((await self._shared.execute((arguments,)))[0], arguments)

    async def wait(self, *arguments: str | bytes | float) -> Any:
        """Run one command that may wait for something to happen, on a connection of its own. Raises Unavailable."""
        if self._blocking_connections:
            connection = self._blocking_connections.pop()
        else:
            connection = self._new_connection()
            self._connections.append(connection)
        try:
            return self._checked((await connection.execute((arguments,)))[0], arguments)
        finally:
            self._blocking_connections.append(connection)

    async def pipeline(self, commands: Sequence[Command]) -> list[Any]:
        """Run several commands in one round trip (no transaction)."""
        if not commands:
            return []
        replies = await self._shared.execute(commands)
        return [self._checked(reply, command) for reply, command in zip(replies, commands, strict=True)]

    async def read(self, commands: Sequence[Command]) -> list[Any]:
        """Run commands that read objects or indexes, in one round trip.

        Raises Unavailable, also while the store is closed: what is not there may only be missing. That is checked last,
        so that a store which is emptied meanwhile does not pass for one without objects.
        """
        if not commands:
            return []
        checked = [*commands, self._function("FCALL_RO", "check_open", _pack({}))]
        *replies, opening = await self._called(checked)
        if _is_closed(opening) and await self._joined():
            *replies, opening = await self._called(checked)
        accepted(opening)
        self._check_opening(opening[1] if len(opening) > 1 else None)
        return replies

    async def call(
        self, function: str, operation: Mapping[str, Any], *, read_only: bool = False, confirm: bool = True
    ) -> list[Any]:
        """Call one of our functions. Raises Unavailable when the server is away, fenced or its outbox is full.

        Raises Unsupported where the function fails on the operation: it always would.

        `confirm=False`: what is written may be lost until a later write counts.
        """
        if function in BATCH_FUNCTIONS:
            return accepted(await self._call_batched(function, _pack(operation)))
        command = self._function("FCALL_RO" if read_only else "FCALL", function, _pack(operation))
        return (await (self._write([command]) if confirm and not read_only else self._unconfirmed([command])))[0]

    async def read_and_write(
        self, reading: tuple[str, Mapping[str, Any]], writing: tuple[str, Mapping[str, Any]] | None = None
    ) -> tuple[list[Any], list[Any]]:
        """Call a function that reads, then one that writes (if any), in one round trip; returns both replies.

        What was read counts as written then, where writes have to be on replicas. Elsewhere nothing is confirmed: only
        for what may be written twice. Raises as `call` does.
        """
        commands = [self._function("FCALL_RO", reading[0], _pack(reading[1]))]
        if writing is not None:
            commands.append(self._function("FCALL", writing[0], _pack(writing[1])))
        is_replicated = self._replicated_writes is not None
        read, *written = await (self._write(commands) if is_replicated else self._unconfirmed(commands))
        return read, written[0] if written else []

    async def call_batch(
        self, function: str, operations: Sequence[Mapping[str, Any]]
    ) -> list[list[Any] | GardenbusError]:
        """Call a function of BATCH_FUNCTIONS with several operations; the failure of one affects no other.

        Raises Unavailable when the server is away.
        """
        command = self._function("FCALL", BATCH_FUNCTIONS[function], *(_pack(operation) for operation in operations))
        (replies,) = await self._write([command])
        return [self._one_of_many(reply, function) for reply in replies]

    def _one_of_many(self, reply: Any, function: str) -> list[Any] | GardenbusError:
        try:
            return accepted(self._checked(reply, (function,)))
        except (Unavailable, Unsupported) as error:
            return error

    async def call_many(self, function: str, operations: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
        """Call one of our functions several times, in order, in one round trip; raises as `call` does.

        When one call fails, the others have been carried out all the same: only for what may be repeated.
        """
        return await self._write([self._function("FCALL", function, _pack(operation)) for operation in operations])

    async def ensure_library(self) -> None:
        """Load our version of the function library if the server has it not."""
        name = self._library.name
        if await self.command("FUNCTION", "LIST", "LIBRARYNAME", name):
            return
        try:
            await self.command("FUNCTION", "LOAD", self._library.source)
        except Unavailable as error:
            if "NOPERM" in error.message:
                raise Unavailable(f"Redis has no functions {name} yet: a relay of this version loads them") from error
            if "already exists" not in error.message:  # otherwise somebody else was faster
                raise
        else:
            await self._shared.execute([("FUNCTION", "DELETE", _UNVERSIONED)])  # fails where there is none
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
        """Have the other versions on the server vouch for the store to ours; returns True if it is open for us.

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
        replies = self._checked((await self._shared.execute(commands))[-1], ("EXEC",))
        _, is_open, is_new = accepted(self._checked(replies[-1], ("EXEC",)))
        if is_new:
            _log.info("functions.joined", library=self._library.name, prefix=self.prefix)
        return bool(is_open)

    @property
    def database(self) -> int:
        """The number of the database on the server."""
        return int(self._pool.connection_kwargs.get("db") or 0)

    async def ensure_ready(self) -> None:
        """Ensure that the server responds, has our functions, and holds no data of a newer format.

        Raises Unavailable. The store may still be closed for writes.
        """
        await self.command("PING")
        await self._load_and_join()

    async def ensure_replicas(self) -> None:
        """Raise Unavailable while fewer replicas than a write has to be on have what was written until now."""
        if self._replicated_writes is not None:
            await self._written_once([])

    async def close(self) -> None:
        """Close all connections."""
        if self._replication is not None:
            await self._replication.close()
        for connection in self._connections:
            await connection.close()
        await self._pool.aclose()

    # ------------------------------------------------------------------------------------------ functions

    def _function(self, command: str, function: str, *operations: bytes) -> Command:
        return (command, self._library.function(function), 1, self.prefix, *operations)

    async def _load_and_join(self) -> None:
        """Load our version, and open the store for it if another version has it open."""
        await self.ensure_library()
        await self._joined()

    async def _called(self, commands: Sequence[Command]) -> list[Any]:
        """Call functions; loads the library first where the server does not have it."""
        try:
            return await self.pipeline(commands)
        except Unavailable as error:
            if "Function not found" not in error.message:
                raise
        await self._load_and_join()
        return await self.pipeline(commands)

    async def _unconfirmed(self, commands: Sequence[Command]) -> list[Any]:
        """Call functions that read, or whose writes need not count yet.

        Once more if the store is closed for us but open for another version.
        """
        opening = [self._replication.opening_command()] if self._replication is not None else []
        replies = await self._called([*commands, *opening])
        if any(map(_is_closed, replies[: len(commands)])) and await self._joined():
            replies = await self._called([*commands, *opening])
        for reply in replies[: len(commands)]:
            accepted(reply)
        for each in replies[len(commands) :]:
            self._check_opening(each)
        return replies[: len(commands)]

    async def _write(self, commands: Sequence[Command]) -> list[Any]:
        """Call functions, and once more if the store is closed for us but open for another version.

        Returns the replies when what was written counts.
        """
        replies = await self._written(commands)
        if any(map(_is_closed, replies)) and await self._joined():
            replies = await self._written(commands)
        return [accepted(reply) for reply in replies]

    async def _written(self, commands: Sequence[Command]) -> Sequence[Any]:
        """Call functions until they count; loads the library first where the server does not have it."""
        try:
            return await self._written_once(commands)
        except Unavailable as error:
            if "Function not found" not in error.message:
                raise
        await self._load_and_join()
        return await self._written_once(commands)

    async def _written_once(self, commands: Sequence[Command]) -> Sequence[Any]:
        if self._replicated_writes is None:
            replies = await self.pipeline(commands)
            await self._confirmed()
            return replies
        written = await self._replicated_writes.write(commands)
        replies = [self._checked(reply, command) for reply, command in zip(written.replies, commands, strict=True)]
        if written.problem is not None:
            raise Unavailable(written.problem.message) from written.problem
        return replies

    async def _confirmed(self) -> None:
        """Return when Redis has written what it replied until now; callers of one turn share the question.

        Raises Unavailable: what was replied is then in the memory of Redis only, and nobody may rely on it.
        """
        if self._confirming is None:
            self._confirming = asyncio.create_task(self._confirm())
            self._confirming.add_done_callback(_retrieved)
        await asyncio.shield(self._confirming)

    async def _confirm(self) -> None:
        self._confirming = None  # who comes from now on may have been replied to after this question
        if self._replication is None:
            self._checked((await self._shared.execute((("PING",),)))[0], ("PING",))
            return
        await self._accept(await self._shared.execute(self._replication.commands()))

    async def _accept(self, replies: Sequence[Any]) -> None:
        """Return if what was written before the replies to `Replication.commands` counts. Raises Unavailable."""
        assert self._replication is not None, "no other caller has commands"
        checked = [
            self._checked(reply, command) for reply, command in zip(replies, self._replication.commands(), strict=True)
        ]
        try:
            await self._replication.accept(checked)
        except Deposed as error:
            self._leave(error)
            raise

    async def sentinels(self) -> Mapping[ServerAddress, bool]:
        """Each Sentinel that is named in the URL, and whether it can take part in a failover."""
        return await self._replication.sentinels() if self._replication is not None else {}

    @property
    def other_servers(self) -> frozenset[ServerAddress]:
        """Servers beside the master, as Sentinels or the URL name them; empty before the first command."""
        return self._replication.others if self._replication is not None else frozenset()

    @property
    def epoch(self) -> int:
        """The highest epoch of a master that was seen; -1 for none."""
        return self._replication.epoch if self._replication is not None else -1

    async def retire_older_masters(self) -> None:
        """Close the stores of servers that were master before this one and can be reached. Raises Unavailable."""
        if self._replication is None:
            return
        self._check_opening(await self.command(*self._replication.opening_command()))
        try:
            await self._replication.probe_others()
        except Deposed as error:
            self._leave(error)
            raise

    def _check_opening(self, opening: Any) -> None:
        """Raise Unavailable where the response of a master is older than one that was seen."""
        if self._replication is None:
            return
        try:
            self._replication.check_opening(opening)
        except Deposed as error:
            self._leave(error)
            raise

    def _leave(self, why: Unavailable) -> None:
        """Leave this server: whoever calls next looks for the master."""
        _log.info("redis.left", reason=why.message)
        for connection in self._connections:
            connection.lose(why.message)

    async def _joined(self) -> bool:
        """Share one `join` between concurrent callers; after a failure not at once again."""
        now = asyncio.get_running_loop().time()
        joining = self._joining
        if joining is None or (joining.done() and (now >= self._join_again_at or _has_joined(joining))):
            self._join_again_at = now + JOIN_EVERY_SECONDS
            joining = self._joining = asyncio.create_task(self.join())
            joining.add_done_callback(_has_joined)
        return await asyncio.shield(joining)

    async def _call_batched(self, function: str, packed: bytes) -> Any:
        """Call a function along with all who call it in this turn of the loop."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        pending = self._pending.setdefault(function, [])
        pending.append(_PendingCall(packed, future))
        if len(pending) == 1:
            flushing = asyncio.create_task(self._flush_batch(function, pending))
            self._flushing.add(flushing)
            flushing.add_done_callback(self._flushing.discard)
        elif len(pending) == MAX_BATCH:
            del self._pending[function]
        return self._checked(await future, (function,))

    def _checked(self, reply: Any, command: Sequence[Any]) -> Any:
        """Return a reply; raises Unavailable for an error of the server, Unsupported for one of a function of ours."""
        if isinstance(reply, hiredis.ReplyError):
            if incapacity := _INCAPACITIES.get(str(reply).partition(" ")[0]):
                if self._replication is not None and (deposed := self._replication.other_master()) is not None:
                    self._leave(deposed)
                raise Unavailable(f"{incapacity}: {reply}")
            if self._replication is not None and str(reply).startswith(_REPLICAS_REPLIES):
                self._leave(Unavailable(f"Redis is a replica by now: {reply}"))
            message = self._library.with_positions(str(reply))
            if command[0] in _FUNCTIONS and not str(reply).startswith(_CONDITIONS):
                raise Unsupported(f"the store cannot carry this out, however often it is sent: {message}")
            raise Unavailable(f"Redis rejected {command[0]!r}: {message}")
        if isinstance(reply, GardenbusError):
            raise reply
        return reply

    async def _flush_batch(self, function: str, pending: list[_PendingCall]) -> None:
        """Carry out a batch and hand each caller its reply."""
        if self._pending.get(function) is pending:
            del self._pending[function]
        wanted = [one for one in pending if not one.future.done()]
        if not wanted:
            return
        command = self._function("FCALL", BATCH_FUNCTIONS[function], *(one.packed for one in wanted))
        try:
            (replies,) = await self._write([command])
        except (Unavailable, Unsupported) as error:  # each caller raises its own
            replies = [type(error)(error.message) for _ in wanted]
        except BaseException:
            for one in wanted:
                one.future.cancel()
            raise
        for one, reply in zip(wanted, replies, strict=True):
            if not one.future.done():
                one.future.set_result(reply)


def _addresses(url: str) -> RedisAddresses:
    try:
        return parse_redis_url(url)
    except BadRequest as error:
        raise SettingsInvalid((f"GARDENBUS_REDIS_URL: {error.message}",)) from error


def _retrieved(task: asyncio.Task[None]) -> None:
    """Retrieve the exception of a task whose callers may all be gone."""
    if not task.cancelled():
        task.exception()


def _has_joined(task: asyncio.Task[bool]) -> bool:
    """Result of an attempt; retrieves its exception, so that an unawaited failure is not logged."""
    return not task.cancelled() and task.exception() is None and task.result()


def _is_closed(reply: Any) -> bool:
    """True if nothing was done because the store is closed: a batch is rejected as a whole."""
    return bool(reply) and (reply[0] == b"fenced" or (isinstance(reply[0], list) and reply[0] == [b"fenced"]))


def accepted(reply: list[Any]) -> list[Any]:
    """Return a function's reply; raises Unavailable when the store serves no reads or accepts no writes."""
    if reply and reply[0] == b"fenced":
        raise store_is_closed()
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
