"""Unschedulable shoots, read from Redis for people: in parts, so that no other client is delayed."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from gardenbus.common.adapters.redis.connection import RedisConnection
from gardenbus.common.adapters.redis.multiplexed_connection import Command
from gardenbus.common.adapters.store_responses import unschedulable_since
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.store import UnschedulableStatus

READS = 500
"""Commands in one round trip."""


class _Position(NamedTuple):
    """Position of an unschedulable shoot; sorts by the unblock index at which it was marked."""

    unblock_index: float
    member: str
    scheduler_name: str


_STATUS = ("pmsg", "pend", "tries", "seed", "bd")


async def unschedulable_shoots(
    connection: RedisConnection, scheduler_name: str | None, limit: int
) -> Sequence[UnschedulableStatus]:
    """Unschedulable shoots of a scheduler (None: of any), those with the oldest unblock index first.

    What changes while it is read may be missing. Raises Unavailable.
    """
    schedulers = [scheduler_name] if scheduler_name is not None else await _schedulers(connection)
    positions: list[_Position] = []
    for scheduler in schedulers:
        positions += await _positions(connection, scheduler, limit)
    positions.sort()
    commands: list[Command] = [
        ("HMGET", connection.key(f"o:shoot:{position.member.replace('/', ':', 1)}"), *_STATUS)
        for position in positions[:limit]
    ]
    found: list[UnschedulableStatus] = []
    for position, (message, pending, tries, seed, band) in zip(
        positions, await _replies(connection, commands), strict=False
    ):
        if message is not None and not seed:
            key = ObjectKey("shoot", *position.member.split("/", 1))
            since = unschedulable_since(pending or b"")
            scheduler, attempts = position.scheduler_name, int(tries or 0)
            found.append(UnschedulableStatus(key, scheduler, message.decode(), since, attempts, (band or b"").decode()))
    return found


async def _schedulers(connection: RedisConnection) -> list[str]:
    return [name.decode() for name in (await connection.read([("SMEMBERS", connection.key("waiting"))]))[0]]


async def _positions(connection: RedisConnection, scheduler: str, limit: int) -> list[_Position]:
    """At most `limit` of each class: the oldest of all are among them."""
    key = connection.key(f"waiting:{scheduler}")
    classes = [name.decode() for name in (await connection.read([("HKEYS", key)]))[0]]
    commands: list[Command] = [("ZRANGE", f"{key}:{name}", 0, limit - 1, "WITHSCORES") for name in classes]
    return [
        _Position(float(score), member.decode(), scheduler)
        for reply in await _replies(connection, commands)
        for member, score in zip(reply[::2], reply[1::2], strict=True)
    ]


async def _replies(connection: RedisConnection, commands: Sequence[Command]) -> list[Any]:
    replies: list[Any] = []
    for start in range(0, len(commands), READS):
        replies += await connection.read(commands[start : start + READS])
    return replies
