"""How the processes of a landscape are, asked from outside: by process id and over HTTP."""

from gardenbus.cli.supervisor.directory import LandscapeFile, ServiceEntry, ready_url
from gardenbus.cli.supervisor.picture import ServiceRow
from gardenbus.cli.supervisor.processes import ANSWER_SECONDS, is_alive
from gardenbus.common.runtime.http_client import HttpClient, http_client


async def service_rows(landscape: LandscapeFile) -> list[ServiceRow]:
    """One row a process of landscape.json."""
    rows: list[ServiceRow] = []
    async with http_client(timeout_seconds=ANSWER_SECONDS) as http:
        for entry in landscape.services:
            state, trouble = _state(landscape, entry), ""
            if state == "ready" and entry.health_url is not None:
                state, trouble = await _health(http, entry.name, entry.health_url)
            rows.append(ServiceRow(entry.name, state, entry.pid, entry.restarts, trouble))
    return rows


def _state(landscape: LandscapeFile, entry: ServiceEntry) -> str:
    """`external` for a server that `up` was told to use, `down`, or `ready` as far as its process goes."""
    if entry.pid is None:
        return "external" if entry.name in ("nats", "redis") and landscape.state == "ready" else "down"
    return "ready" if is_alive(entry.pid) else "down"


async def _health(http: HttpClient, name: str, url: str) -> tuple[str, str]:
    try:
        answer = await http.ask(ready_url(name, url))
    except OSError as error:
        return "down", type(error).__name__
    return ("ready", "") if answer.is_good else ("not ready", answer.text[:200])
