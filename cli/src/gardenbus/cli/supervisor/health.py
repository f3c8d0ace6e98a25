"""How the processes of a landscape are, asked from outside: by process id and over HTTP."""

import aiohttp

from gardenbus.cli.supervisor.directory import LandscapeFile, ServiceEntry, ready_url
from gardenbus.cli.supervisor.picture import ServiceRow
from gardenbus.cli.supervisor.processes import is_alive


async def service_rows(landscape: LandscapeFile) -> list[ServiceRow]:
    """One row a process of landscape.json."""
    timeout = aiohttp.ClientTimeout(total=2.0)
    rows: list[ServiceRow] = []
    async with aiohttp.ClientSession(timeout=timeout) as session:
        for entry in landscape.services:
            state, trouble = _state(landscape, entry), ""
            if state == "ready" and entry.health_url is not None:
                state, trouble = await _health(session, entry.name, entry.health_url)
            rows.append(ServiceRow(entry.name, state, entry.pid, entry.restarts, trouble))
    return rows


def _state(landscape: LandscapeFile, entry: ServiceEntry) -> str:
    """`external` for a server that `up` was told to use, `down`, or `ready` as far as its process goes."""
    if entry.pid is None:
        return "external" if entry.name in ("nats", "redis") and landscape.state == "ready" else "down"
    return "ready" if is_alive(entry.pid) else "down"


async def _health(session: aiohttp.ClientSession, name: str, url: str) -> tuple[str, str]:
    try:
        async with session.get(ready_url(name, url)) as response:
            if response.ok:
                return "ready", ""
            return "not ready", (await response.text())[:200]
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        return "down", type(error).__name__
