"""Health of the processes of a landscape, probed from outside: by process id, over HTTP, and by a PING of Redis."""

import asyncio
import os

import aiohttp

from gardenbus.cli.local.directory import LandscapeFile, ServiceEntry, ServiceStatus, ready_url

PROBE_SECONDS = 2.0
_SILENT = f"it runs, and does not respond within {PROBE_SECONDS:g} s"


async def service_rows(landscape: LandscapeFile) -> list[ServiceStatus]:
    """One row a process of landscape.json; all are probed at once."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=PROBE_SECONDS)) as session:
        return await asyncio.gather(*(_row(session, landscape, entry) for entry in landscape.services))


async def _row(session: aiohttp.ClientSession, landscape: LandscapeFile, entry: ServiceEntry) -> ServiceStatus:
    state, trouble = _state(landscape, entry), ""
    if state == "ready" and entry.health_url is not None:
        state, trouble = await _health(session, entry.name, entry.health_url)
    elif state == "ready" and entry.name.partition("-")[0] in ("redis", "sentinel"):
        state, trouble = await _redis_health(landscape, entry.name)
    if entry.note and state in ("ready", "not ready"):
        state, trouble = "not ready", entry.note
    return ServiceStatus(entry.name, state, entry.pid, entry.restarts, trouble)


def _state(landscape: LandscapeFile, entry: ServiceEntry) -> str:
    """`external` for a server that `up` was given, `down`, or `ready` as far as its process goes."""
    if entry.pid is None:
        return "external" if entry.name in ("nats", "redis") and landscape.state == "ready" else "down"
    return "ready" if is_alive(entry.pid) else "down"


def is_alive(pid: int) -> bool:
    """True when the process exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


async def _health(session: aiohttp.ClientSession, name: str, url: str) -> tuple[str, str]:
    try:
        async with session.get(ready_url(name, url)) as response:
            if response.ok:
                return "ready", ""
            return "not ready", (await response.text())[:200]
    except TimeoutError:
        return "not ready", _SILENT
    except (aiohttp.ClientError, OSError) as error:
        return "down", type(error).__name__


async def _redis_health(landscape: LandscapeFile, name: str) -> tuple[str, str]:
    from gardenbus.common.adapters.redis.access import RedisAccess, connection_pool  # noqa: PLC0415  slow to import
    from gardenbus.common.adapters.redis.addresses import ServerAddress, parse_redis_url  # noqa: PLC0415
    from gardenbus.common.adapters.redis.direct import query  # noqa: PLC0415

    port = landscape.ports.get(name)
    pool = connection_pool(parse_redis_url(landscape.redis_url).url, RedisAccess(), protocol=2)
    try:
        place = ServerAddress("127.0.0.1", port) if port else None
        responses = await query(pool, place, [("PING",)], seconds=PROBE_SECONDS)
    finally:
        await pool.aclose()
    return ("ready", "") if responses else ("not ready", _SILENT)
