"""Connection to the data and functions of this process, in the place of the one to Redis.

Nothing of it waits but `wait`: a call is done when it returns, so that a coroutine that is driven by hand needs no
event loop.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from gardenbus.common.adapters.redis.connection import BATCH_FUNCTIONS, RedisConnection, accepted
from gardenbus.common.adapters.redis.function_library import LIBRARY
from gardenbus.common.adapters.redis.multiplexed_connection import Command
from gardenbus.common.errors import GardenbusError, Unavailable, Unsupported
from tests.support.memory.lua_functions import FunctionError, Functions
from tests.support.memory.redis_data import RedisData

PREFIX = "garden"


class MemoryRedis:
    """Data with a loaded library: what all connections of one store share."""

    def __init__(self, data: RedisData) -> None:
        self.data = data
        self.functions = Functions(data, LIBRARY)
        self.called = ""
        self.conflicts: float = 0
        """So many of the next updates are rejected, whatever they are based on."""

    def reload(self) -> None:
        """Load the library anew, as a start of Redis does: it knows no opening, and of nobody who leads."""
        self.functions = Functions(self.data, LIBRARY)

    def call(self, function: str, *operations: Mapping[str, Any]) -> Any:
        """Call a function. Raises Unsupported where it fails on the operation."""
        if self.conflicts > 0 and function == "put" and operations[0]["base"]:
            self.conflicts -= 1
            return [b"conflict", b"0"]
        self.called = function.removesuffix("_many")
        try:
            return self.functions.call(function, PREFIX, *operations)
        except FunctionError as error:
            raise Unsupported(f"the store cannot carry this out, however often it is sent: {error}") from error
        finally:
            self.called = ""


def _accepted(reply: Any) -> list[Any] | GardenbusError:
    """A reply of one of many."""
    if isinstance(reply, FunctionError):
        return Unsupported(f"the store cannot carry this out, however often it is sent: {reply}")
    try:
        return accepted(reply)
    except (Unavailable, Unsupported) as error:
        return error


class MemoryConnection(RedisConnection):
    """See the module."""

    def __init__(self, redis: MemoryRedis) -> None:  # there is no server to connect to
        self.prefix = PREFIX
        self._redis = redis

    async def command(self, *arguments: str | bytes | float) -> Any:
        return self._redis.data.execute(*arguments)

    async def wait(self, *arguments: str | bytes | float) -> Any:
        """Wait for an entry: the one command that does."""
        data, block, (key, last) = self._redis.data, arguments.index("BLOCK"), arguments[-2:]
        added = data.entry_added
        if data.has_entry_after(str(key).encode(), str(last).encode()):
            return
        try:
            await asyncio.wait_for(added.wait(), float(arguments[block + 1]) / 1000)
        except TimeoutError:
            return

    async def pipeline(self, commands: Sequence[Command]) -> list[Any]:
        return [self._redis.data.execute(*command) for command in commands]

    async def read(self, commands: Sequence[Command]) -> list[Any]:
        replies = [self._redis.data.execute(*command) for command in commands]
        if commands:
            accepted(self._redis.call("check_open", {}))
        return replies

    async def call(
        self, function: str, operation: Mapping[str, Any], *, read_only: bool = False, confirm: bool = True
    ) -> list[Any]:
        return accepted(self._redis.call(function, operation))

    async def read_and_write(
        self, reading: tuple[str, Mapping[str, Any]], writing: tuple[str, Mapping[str, Any]] | None = None
    ) -> tuple[list[Any], list[Any]]:
        read = accepted(self._redis.call(*reading))
        return read, accepted(self._redis.call(*writing)) if writing is not None else []

    async def call_batch(
        self, function: str, operations: Sequence[Mapping[str, Any]]
    ) -> list[list[Any] | GardenbusError]:
        if self._redis.conflicts > 0:
            return [self._replied(function, operation) for operation in operations]
        return [_accepted(reply) for reply in self._redis.call(BATCH_FUNCTIONS[function], *operations)]

    def _replied(self, function: str, operation: Mapping[str, Any]) -> list[Any] | GardenbusError:
        try:
            return accepted(self._redis.call(function, operation))
        except (Unavailable, Unsupported) as error:
            return error

    async def call_many(self, function: str, operations: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
        return [accepted(self._redis.call(function, operation)) for operation in operations]

    async def join(self) -> bool:
        return False

    async def ensure_ready(self) -> None:
        return

    async def ensure_replicas(self) -> None:
        return

    async def retire_older_masters(self) -> None:
        return

    async def close(self) -> None:
        return

    @property
    def database(self) -> int:
        return 0

    @property
    def epoch(self) -> int:
        return -1
