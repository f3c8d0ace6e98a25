"""Who waits, read from Redis for people: plain reads, in parts, so that nobody else is held up."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from gardenbus.common.adapters.redis_connection import RedisConnection
from gardenbus.common.adapters.redis_line import Command
from gardenbus.common.adapters.store_answers import refused_since
from gardenbus.common.ports.store import WaitingShoot
from gardenbus.common.resources.keys import ObjectKey

READS = 500
"""Commands in one round trip."""


class _Place(NamedTuple):
    """Where a shoot waits; they sort by the gain that stood when it was refused."""

    gain: float
    member: str
    scheduler_name: str


async def waiting_shoots(connection: RedisConnection, scheduler_name: str | None, limit: int) -> Sequence[WaitingShoot]:
    """The shoots that wait for a scheduler (None: for any), those refused on the oldest gain first.

    What changes while it is read may be missing. Raises Unavailable.
    """
    schedulers = [scheduler_name] if scheduler_name is not None else await _schedulers(connection)
    places: list[_Place] = []
    for scheduler in schedulers:
        places += await _places(connection, scheduler, limit)
    places.sort()
    commands: list[Command] = [
        ("HMGET", connection.key(f"o:shoot:{place.member.replace('/', ':', 1)}"), "pmsg", "pend", "tries", "seed")
        for place in places[:limit]
    ]
    found: list[WaitingShoot] = []
    for place, (message, pending, tries, seed) in zip(places, await _replies(connection, commands), strict=False):
        if message is not None and not seed:
            key = ObjectKey("shoot", *place.member.split("/", 1))
            since = refused_since(pending or b"")
            found.append(WaitingShoot(key, place.scheduler_name, message.decode(), since, int(tries or 0)))
    return found


async def _schedulers(connection: RedisConnection) -> list[str]:
    return [name.decode() for name in await connection.command("SMEMBERS", connection.key("waiting"))]


async def _places(connection: RedisConnection, scheduler: str, limit: int) -> list[_Place]:
    """At most `limit` of each class: the oldest of all are among them."""
    key = connection.key(f"waiting:{scheduler}")
    classes = [name.decode() for name in await connection.command("HKEYS", key)]
    commands: list[Command] = [("ZRANGE", f"{key}:{name}", 0, limit - 1, "WITHSCORES") for name in classes]
    return [
        _Place(float(score), member.decode(), scheduler)
        for reply in await _replies(connection, commands)
        for member, score in zip(reply[::2], reply[1::2], strict=True)
    ]


async def _replies(connection: RedisConnection, commands: Sequence[Command]) -> list[Any]:
    replies: list[Any] = []
    for start in range(0, len(commands), READS):
        replies += await connection.pipeline(commands[start : start + READS])
    return replies
