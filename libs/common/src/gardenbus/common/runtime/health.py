"""Health over HTTP: `/livez`, `/readyz` and `/metrics` of one process.

A service registers named checks. A check returns None when all is well, else why not in a few words. `/livez` responds
200 as long as the process responds at all, `/readyz` states whether it can do its work now, with 200 or 503; both with
`{"ok": …, "checks": {"<name>": "ok" | "<why not>"}}`.

A process of several agents (a gardenlet's seeds) also serves `/healthz`, `/healthz/<agent>` and `/readyz/<agent>`. The
bare paths fail when all agents do, because only what they share (the process, its connections) fails them all;
restarting it for one agent would interrupt the others.
"""

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

import msgspec
import prometheus_client
from aiohttp import web
from aiohttp.typedefs import Handler
from prometheus_client.exposition import CONTENT_TYPE_LATEST

ReadinessCheck = Callable[[], "str | Awaitable[str | None] | None"]
"""None when all is well, else why not."""

PageSource = Callable[[], "tuple[int, str] | Awaitable[tuple[int, str]]"]
"""HTTP status and text of one more page."""

Agents = Callable[[], "Mapping[str, str | None]"]
"""Every agent of the process by name: None when all is well with it, else why not."""

CHECK_TIMEOUT_SECONDS = 2.0
_UNHEALTHY = 500
_MISDIRECTED = 421
_LOOPBACK = re.compile(r"127(\.\d{1,3}){3}")
_PORT = re.compile(r":\d+$")


class HealthReport(NamedTuple):
    """Results of all checks: `checks` holds "ok" or why not."""

    ok: bool
    checks: Mapping[str, str]


class _AgentChecks(NamedTuple):
    """Checks of a process's agents."""

    name: str
    healthy: Agents
    ready: Agents


class Health:
    """The health server of one process."""

    def __init__(self, registry: prometheus_client.CollectorRegistry = prometheus_client.REGISTRY) -> None:
        self._registry = registry
        self._readiness: dict[str, ReadinessCheck] = {}
        self._pages: dict[str, PageSource] = {}
        self._agents: _AgentChecks | None = None
        self._runner: web.AppRunner | None = None

    def add_readiness(self, name: str, check: ReadinessCheck) -> None:
        """Register a check of `/readyz` (replaces one of the same name)."""
        self._readiness[name] = check

    def remove_readiness(self, name: str) -> None:
        """Forget a check of `/readyz`."""
        self._readiness.pop(name, None)

    def add_page(self, path: str, page: PageSource) -> None:
        """Serve one more path, before or after the start (the gardenlet's `/seeds`)."""
        self._pages[path] = page

    def add_agents(self, name: str, *, healthy: Agents, ready: Agents) -> None:
        """Serve the health and readiness of the process's agents, and register the check `name` of `/readyz`."""
        self._agents = _AgentChecks(name, healthy, ready)
        self.add_readiness(name, lambda: _problem_of_all(ready()) or None)

    async def readyz(self) -> HealthReport:
        """Run all readiness checks."""
        return await _run_checks(self._readiness)

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> str:
        """Listen (port 0: a free one) and return the base URL. Raises OSError when the port is in use."""
        application = web.Application(middlewares=[_only_by_its_address] if is_loopback(host) else [])
        application.router.add_get("/livez", self._serve_livez)
        application.router.add_get("/readyz", self._serve_readyz)
        application.router.add_get("/readyz/{agent}", self._serve_agent_readyz)
        application.router.add_get("/healthz", self._serve_healthz)
        application.router.add_get("/healthz/{agent}", self._serve_agent_healthz)
        application.router.add_get("/", self._serve_readyz)
        application.router.add_get("/metrics", self._serve_metrics)
        application.router.add_get("/{path:.*}", self._serve_page)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.2)
        await self._runner.setup()
        await web.TCPSite(self._runner, host, port).start()
        bound_port: int = self._runner.addresses[0][1]
        shown_host = "127.0.0.1" if host in {"0.0.0.0", "::", ""} else host  # noqa: S104 - only compared
        return f"http://{f'[{shown_host}]' if ':' in shown_host else shown_host}:{bound_port}"

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _serve_livez(self, _request: web.Request) -> web.Response:
        return _response(HealthReport(ok=True, checks={}))

    async def _serve_readyz(self, _request: web.Request) -> web.Response:
        return _response(await self.readyz())

    async def _serve_agent_readyz(self, request: web.Request) -> web.Response:
        if self._agents is None:
            return _not_found()
        agent, statuses = request.match_info["agent"], self._agents.ready()
        if agent not in statuses:
            return _not_found()
        return _response(await _run_checks({**self._readiness, self._agents.name: lambda: statuses[agent]}))

    async def _serve_healthz(self, _request: web.Request) -> web.Response:
        if self._agents is None:
            return _not_found()
        statuses = self._agents.healthy()
        if problem := _problem_of_all(statuses):
            return web.Response(status=_UNHEALTHY, text=f"{problem}\n")
        problems = _problems(statuses)
        return web.Response(text=f"ok, except {problems}\n" if problems else "ok\n")

    async def _serve_agent_healthz(self, request: web.Request) -> web.Response:
        if self._agents is None:
            return _not_found()
        agent, statuses = request.match_info["agent"], self._agents.healthy()
        if agent not in statuses:
            return _not_found()
        problem = statuses[agent]
        return web.Response(status=_UNHEALTHY, text=f"{problem}\n") if problem else web.Response(text="ok\n")

    async def _serve_metrics(self, _request: web.Request) -> web.Response:
        body = prometheus_client.generate_latest(self._registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _serve_page(self, request: web.Request) -> web.Response:
        page = self._pages.get(request.path)
        if page is None:
            return _not_found()
        response = page()
        status, text = await response if inspect.isawaitable(response) else response
        return web.Response(status=status, text=text)


async def _run_checks(checks: Mapping[str, ReadinessCheck]) -> HealthReport:
    checks_now = dict(checks)  # more may be registered meanwhile, or fewer
    responses = await asyncio.gather(*(_run_check(check) for check in checks_now.values()))
    shown = {name: response or "ok" for name, response in zip(checks_now, responses, strict=True)}
    return HealthReport(ok=not any(responses), checks=shown)


async def _run_check(check: ReadinessCheck) -> str | None:
    try:
        response = check()
        if not inspect.isawaitable(response):
            return response
        async with asyncio.timeout(CHECK_TIMEOUT_SECONDS):
            return await response
    except TimeoutError:
        return f"no response within {CHECK_TIMEOUT_SECONDS:g} s"
    except Exception as error:  # noqa: BLE001 - a check that fails is a result, not a crash
        return f"{type(error).__name__}: {error}"


def _problems(statuses: Mapping[str, str | None]) -> str:
    return ", ".join(f"{agent}: {problem}" for agent, problem in sorted(statuses.items()) if problem)


def _problem_of_all(statuses: Mapping[str, str | None]) -> str:
    """Problems of the agents when none of them is well; "" otherwise, and when there are no agents."""
    return _problems(statuses) if all(statuses.values()) else ""


def _not_found() -> web.Response:
    return web.Response(status=404, text="not found\n")


def is_loopback(host: str) -> bool:
    """True if a name or address is this machine's own, whatever its case."""
    name = host.lower().strip("[]")
    return name in ("localhost", "::1") or _LOOPBACK.fullmatch(name) is not None


@web.middleware
async def _only_by_its_address(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Reject requests by another name: a page whose name was pointed at this machine would read what it serves."""
    host = request.headers.get("Host", "")
    if not is_loopback(_PORT.sub("", host)):
        return web.Response(status=_MISDIRECTED, text=f"{host[:100]!r} is not where this listens: use 127.0.0.1\n")
    return await handler(request)


def _response(report: HealthReport) -> web.Response:
    body = msgspec.json.encode({"ok": report.ok, "checks": report.checks})
    return web.Response(status=200 if report.ok else 503, body=body, content_type="application/json")
