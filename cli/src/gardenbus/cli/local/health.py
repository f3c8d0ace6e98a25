"""Health of the processes of a landscape, probed from outside: by process id, over HTTP, and by a PING of Redis."""

import asyncio
import os
from http import HTTPStatus
from urllib.parse import urlsplit

from gardenbus.cli.local.directory import LandscapeFile, ServiceEntry, ServiceStatus, ready_url

PROBE_SECONDS = 2.0
_LONGEST_PAGE = 65_536
_SILENT = f"it runs, and does not respond within {PROBE_SECONDS:g} s"


async def service_rows(landscape: LandscapeFile) -> list[ServiceStatus]:
    """One row a process of landscape.json; all are probed at once."""
    return await asyncio.gather(*(_row(landscape, entry) for entry in landscape.services))


async def _row(landscape: LandscapeFile, entry: ServiceEntry) -> ServiceStatus:
    state, trouble = _state(landscape, entry), ""
    if state == "ready" and entry.health_url is not None:
        state, trouble = await _health(entry.name, entry.health_url)
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


async def _health(name: str, url: str) -> tuple[str, str]:
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            code, text = await _page(ready_url(name, url))
    except TimeoutError:
        return "not ready", _SILENT
    except (OSError, ValueError) as error:
        return "down", type(error).__name__
    return ("ready", "") if code < HTTPStatus.BAD_REQUEST else ("not ready", text[:200])


async def _page(url: str) -> tuple[int, str]:
    """Status code and text of a page on the loopback, by HTTP/1.0. Raises OSError, ValueError for another protocol."""
    where = urlsplit(url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    try:
        writer.write(f"GET {where.path or '/'} HTTP/1.0\r\nHost: {where.netloc}\r\n\r\n".encode())
        content = b""
        while len(content) < _LONGEST_PAGE and (more := await reader.read(_LONGEST_PAGE)):
            content += more
    finally:
        writer.close()
    head, _, body = content.decode(errors="replace").partition("\r\n\r\n")
    return int(head.partition(" ")[2][:3]), body


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
