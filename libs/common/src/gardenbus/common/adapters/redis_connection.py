"""The connection to Redis and its function library: calls in, answers or our errors out."""

from collections.abc import Awaitable, Mapping, Sequence
from importlib import resources
from typing import Any, cast

import msgspec
import structlog
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError

from gardenbus.common.adapters.store_answers import fenced, outbox_is_full
from gardenbus.common.errors import Unavailable

LIBRARY_NAME = "gardenbus"
SOURCE = resources.files("gardenbus.common.adapters").joinpath("functions.lua").read_text(encoding="utf-8")

_log = structlog.stdlib.get_logger()
_pack = msgspec.msgpack.Encoder().encode


class RedisConnection:
    """A pool of connections, and the functions of one landscape (`prefix`)."""

    def __init__(self, url: str, prefix: str = "garden", *, timeout_seconds: float = 10.0) -> None:
        self.prefix = prefix
        self._redis = Redis.from_url(  # pyright: ignore[reportUnknownMemberType]
            url,
            socket_timeout=timeout_seconds,
            socket_connect_timeout=timeout_seconds,
            max_connections=64,
            retry=Retry(NoBackoff(), 0),  # the callers back off; a write must not be sent twice behind their backs
        )

    def key(self, name: str) -> str:
        """A key of this landscape."""
        return f"{self.prefix}:{name}"

    async def command(self, *arguments: str | bytes | float) -> Any:
        """Run one command. Raises Unavailable when the server is away."""
        try:
            return await cast("Awaitable[Any]", self._redis.execute_command(*arguments))  # pyright: ignore[reportUnknownMemberType]
        except ResponseError as error:
            raise Unavailable(f"Redis refused {arguments[0]!r}: {error}") from error
        except (RedisError, OSError) as error:
            raise Unavailable(f"Redis is out of reach: {error}") from error

    async def pipeline(self, commands: list[tuple[str | bytes | float, ...]]) -> list[Any]:
        """Run several commands in one round trip (no transaction)."""
        pipeline = self._redis.pipeline(transaction=False)
        for command in commands:
            pipeline.execute_command(*command)  # pyright: ignore[reportUnknownMemberType]
        try:
            return await pipeline.execute()
        except (RedisError, OSError) as error:
            raise Unavailable(f"Redis is out of reach: {error}") from error

    async def call(self, function: str, operation: Mapping[str, Any], *, read_only: bool = False) -> list[Any]:
        """Call one of our functions. Raises Unavailable when the server is away, fenced or its outbox is full."""
        arguments = ("FCALL_RO" if read_only else "FCALL", f"gb_{function}", 1, self.prefix, _pack(operation))
        try:
            reply = await self.command(*arguments)
        except Unavailable as error:
            if "Function not found" not in error.message:
                raise
            await self.ensure_library()
            reply = await self.command(*arguments)
        return _taken(reply)

    async def call_many(self, function: str, operations: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
        """Call one of our functions several times, in order, in one round trip; raises as `call` does.

        When one call fails, the others have been carried out all the same: only for what may be repeated.
        """
        commands: list[tuple[str | bytes | float, ...]] = [
            ("FCALL", f"gb_{function}", 1, self.prefix, _pack(operation)) for operation in operations
        ]
        try:
            replies = await self.pipeline(commands)
        except Unavailable as error:
            if "Function not found" not in error.message:
                raise
            await self.ensure_library()
            replies = await self.pipeline(commands)
        return [_taken(reply) for reply in replies]

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
        await self._redis.aclose()


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
