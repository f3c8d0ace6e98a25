"""Roles of the servers of a local cluster: who is primary, what its replicas lack, and who leads which streams."""

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import aiohttp

from gardenbus.cli.local.directory import LandscapeFile

NATS_SECONDS = 2.0
_NUMBERS = (1, 2, 3)


async def server_roles(landscape: LandscapeFile) -> Mapping[str, str]:
    """Role of each server of a cluster, by its name; empty where there is none. Servers that are away are left out."""
    if "redis-1" not in landscape.ports or "redis+sentinel" not in landscape.redis_url:
        return {}
    redis, nats = await asyncio.gather(_redis_roles(landscape), _nats_roles(landscape))
    return {**redis, **nats}


async def _redis_roles(landscape: LandscapeFile) -> Mapping[str, str]:
    from gardenbus.common.adapters.redis.access import RedisAccess, connection_pool  # noqa: PLC0415  slow to import
    from gardenbus.common.adapters.redis.addresses import ServerAddress, parse_redis_url  # noqa: PLC0415
    from gardenbus.common.adapters.redis.direct import query  # noqa: PLC0415

    pool = connection_pool(parse_redis_url(landscape.redis_url).url, RedisAccess(), protocol=2)
    names = [f"redis-{number}" for number in _NUMBERS]
    places = [ServerAddress("127.0.0.1", landscape.ports[name]) for name in names]
    try:
        found = await asyncio.gather(*(query(pool, place, [("ROLE",)]) for place in places))
    finally:
        await pool.aclose()
    return {name: redis_role(each[0]) for name, each in zip(names, found, strict=True) if each}


def redis_role(role: Any) -> str:
    """A response to ROLE, for people."""
    match role:
        case [b"master", int(end), list()]:
            replicas = cast("list[list[bytes]]", role[2])
            behind = [end - int(replica[2]) for replica in replicas]
            lag = f", at most {max(behind):,} bytes behind" if behind else ""
            return f"primary of {len(behind)} replicas{lag}"
        case [b"slave", bytes(host), int(port), bytes(state), int()]:
            return f"replica of {host.decode()}:{port}, {state.decode()}"
        case _:
            return ""


async def _nats_roles(landscape: LandscapeFile) -> Mapping[str, str]:
    entries = [entry for entry in landscape.services if entry.name.startswith("nats-") and entry.health_url]
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=NATS_SECONDS)) as session:
        pages = await asyncio.gather(*(_page(session, f"{entry.health_url}/jsz?streams=1") for entry in entries))
    servers = [f"gardenbus-{landscape.ports[entry.name]}" for entry in entries]
    each = zip(entries, servers, pages, strict=True)
    return {entry.name: nats_role(server, page) for entry, server, page in each if page}


def nats_role(server: str, page: Mapping[str, Any]) -> str:
    """A server's page `/jsz?streams=1`, for people. Only a leader knows how far the other copies are."""
    accounts: list[dict[str, Any]] = page.get("account_details") or []
    streams: list[dict[str, Any]] = [stream for each in accounts for stream in each.get("stream_detail") or ()]
    clusters: list[dict[str, Any]] = [stream.get("cluster") or {} for stream in streams]
    led = [each for each in clusters if each.get("leader") == server]
    replicas: list[dict[str, Any]] = [replica for each in led for replica in each.get("replicas") or ()]
    behind = sum(not replica.get("current") for replica in replicas)
    return f"leads {len(led)} of {len(streams)} streams{f', {behind} copies behind' if behind else ''}"


async def _page(session: aiohttp.ClientSession, url: str) -> dict[str, Any]:
    try:
        async with session.get(url) as response:
            return cast("dict[str, Any]", await response.json())
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
        return {}
