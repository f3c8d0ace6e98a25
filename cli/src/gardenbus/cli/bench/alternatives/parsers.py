"""Reading Redis' replies: hiredis, as the line has it, against redis-py's parser in Python.

The bytes are those of `get_many`; nothing is sent, so that the parsers are compared and not the way to them.
"""

import asyncio
import importlib
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import hiredis

from gardenbus.cli.bench.alternatives.shoots import documents, write_records
from gardenbus.cli.bench.alternatives.spending import Row, Size, Spent, alternate, compared, spent
from gardenbus.cli.bench.rig import BenchFailed, Rig
from gardenbus.common.adapters.redis_records import PARTS, PRIVATE

SHOOTS = 200
REPEATS = 20
RECEIVED_BYTES = 65_536
"""What a socket hands over at once, about."""

_NOTHING = object()


async def parsers(rig: Rig, size: Size, _durability: str) -> list[Row]:
    """The replies for so many shoots, over and over."""
    keys = await write_records(rig, documents("parsed", SHOOTS))
    commands = [("HMGET", rig.redis.key(f"o:{key.stored}"), *PARTS, *PRIVATE) for key in keys]
    replies = await rig.redis.pipeline(commands)
    received = b"".join(_as_sent(reply) for reply in replies)
    repeats = size.of(REPEATS)

    async def compiled() -> None:
        for _ in range(repeats):
            _check(_parsed_by_hiredis(received), replies)

    async def interpreted() -> None:
        for _ in range(repeats):
            _check(await _parsed_by_redis_py(received), replies)

    async def spent_compiled() -> Spent:
        return await spent(rig, (), repeats * SHOOTS, compiled)

    async def spent_interpreted() -> Spent:
        return await spent(rig, (), repeats * SHOOTS, interpreted)

    ours, other = "hiredis", "redis-py's in Python"
    taken = await alternate(size, {ours: spent_compiled, other: spent_interpreted})
    what = f"parser: {SHOOTS} shoots, {len(received) / 1000 / SHOOTS:.1f} KB each"
    return [compared(what, taken, ours=ours, other=other, unit="shoots", kept="hiredis")]


def _as_sent(values: Sequence[bytes | None]) -> bytes:
    """An array of bulk strings in Redis' protocol, version 2."""
    parts = [b"$-1\r\n" if value is None else b"$%d\r\n%b\r\n" % (len(value), value) for value in values]
    return b"*%d\r\n" % len(parts) + b"".join(parts)


def _parsed_by_hiredis(received: bytes) -> list[Any]:
    reader = hiredis.Reader(notEnoughData=_NOTHING)
    replies: list[Any] = []
    for start in range(0, len(received), RECEIVED_BYTES):
        reader.feed(received[start : start + RECEIVED_BYTES])
        while (reply := reader.gets()) is not _NOTHING:
            replies.append(reply)
    return replies


async def _parsed_by_redis_py(received: bytes) -> list[Any]:
    """Parse by what redis-py falls back to without hiredis; it is internal to it, hence found by name."""
    parser: Any = importlib.import_module("redis._parsers")._AsyncRESP2Parser(RECEIVED_BYTES)  # noqa: SLF001
    stream = asyncio.StreamReader()
    stream.feed_data(received)
    parser.on_connect(SimpleNamespace(_reader=stream, encoder=None))
    return [await parser.read_response(disable_decoding=True) for _ in range(SHOOTS)]


def _check(parsed: list[Any], expected: list[Any]) -> None:
    if parsed != expected:
        raise BenchFailed("the parser read something else")
