"""Redis' statistics: a few cheap commands in two round trips, whatever the store holds."""

from collections.abc import Mapping, Sequence
from typing import Any

from gardenbus.common.adapters.redis.connection import RedisConnection
from gardenbus.common.ports.stats import StoreStats


async def store_stats(connection: RedisConnection) -> StoreStats:
    """Count the landscape's store. Raises Unavailable."""
    key = connection.key
    length, oldest, clock, memory, persistence, kinds, schedulers = await connection.pipeline(
        [
            ("XLEN", key("outbox")),
            ("XRANGE", key("outbox"), "-", "+", "COUNT", 1),
            ("TIME",),
            ("INFO", "memory"),
            ("INFO", "persistence"),
            ("SMEMBERS", key("kinds")),
            ("SMEMBERS", key("schedulers")),
        ]
    )
    kind_names, scheduler_names = _texts(kinds), _texts(schedulers)
    counts = await connection.pipeline(
        [
            *(("ZCARD", key(f"list:{kind}")) for kind in kind_names),
            *(("SCARD", key(f"pending:{scheduler}")) for scheduler in scheduler_names),
            *(("HLEN", key(f"waiting:{scheduler}")) for scheduler in scheduler_names),
        ]
    )
    sizes = [int(count) for count in counts]
    first, second = len(kind_names), len(kind_names) + len(scheduler_names)
    facts = _facts(memory)
    return StoreStats(
        outbox_entries=int(length),
        outbox_age_seconds=_age_seconds(oldest, clock),
        objects=dict(zip(kind_names, sizes[:first], strict=True)),
        pending=sum(sizes[first:second]),
        unschedulable_classes=sum(sizes[second:]),
        memory_bytes=int(facts.get("used_memory", "0")),
        memory_limit_bytes=int(facts.get("maxmemory", "0")),
        cannot_write=_facts(persistence).get("aof_last_write_status", "ok").strip() != "ok",
    )


async def outbox_times(connection: RedisConnection) -> tuple[int, int | None]:
    """Redis' clock, and the time of the oldest entry that is not announced yet (None: there is none), in ms."""
    clock, oldest = await connection.pipeline([("TIME",), ("XRANGE", connection.key("outbox"), "-", "+", "COUNT", 1)])
    now = int(clock[0]) * 1000 + int(clock[1]) // 1000
    return now, int(oldest[0][0].decode().partition("-")[0]) if oldest else None


async def replication_info(connection: RedisConnection) -> Mapping[str, str]:
    """Redis' INFO about its replicas. Raises Unavailable."""
    return _facts(await connection.command("INFO", "replication"))


def _age_seconds(oldest: Sequence[Any], clock: Sequence[Any]) -> float:
    """The age of a stream's first entry, whose id begins with the milliseconds of Redis' own clock."""
    if not oldest:
        return 0.0
    now = int(clock[0]) + int(clock[1]) / 1_000_000
    return max(0.0, now - int(oldest[0][0].decode().partition("-")[0]) / 1000)


def _facts(info: bytes) -> dict[str, str]:
    lines = (line.partition(":") for line in info.decode().splitlines())
    return {name: value.strip() for name, colon, value in lines if colon}


def _texts(members: Sequence[bytes]) -> list[str]:
    return sorted(member.decode() for member in members)
