"""Health of the processes of a landscape, probed from outside: by process id and over HTTP."""

import os

import aiohttp

from gardenbus.cli.local.directory import LandscapeFile, ServiceEntry, ServiceStatus, ready_url


async def service_rows(landscape: LandscapeFile) -> list[ServiceStatus]:
    """One row a process of landscape.json."""
    timeout = aiohttp.ClientTimeout(total=2.0)
    rows: list[ServiceStatus] = []
    async with aiohttp.ClientSession(timeout=timeout) as session:
        for entry in landscape.services:
            state, trouble = _state(landscape, entry), ""
            if state == "ready" and entry.health_url is not None:
                state, trouble = await _health(session, entry.name, entry.health_url)
            if entry.note and state in ("ready", "not ready"):
                state, trouble = "not ready", entry.note
            rows.append(ServiceStatus(entry.name, state, entry.pid, entry.restarts, trouble))
    return rows


def _state(landscape: LandscapeFile, entry: ServiceEntry) -> str:
    """`external` for a server that `up` was told to use, `down`, or `ready` as far as its process goes."""
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
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        return "down", type(error).__name__
