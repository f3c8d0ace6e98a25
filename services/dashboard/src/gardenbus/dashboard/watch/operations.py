"""State of servers, queues and services, read at most once in a while for all browsers together."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NoReturn

from gardenbus.common.adapters.nats.credentials import NO_CREDENTIALS, Credentials
from gardenbus.common.api.document import Document
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.clock import Clock, timestamp
from gardenbus.dashboard.api_client import GardenApiClient
from gardenbus.dashboard.domain.services import services_of
from gardenbus.dashboard.watch.landscape import DashboardCache
from gardenbus.diagnostics.admin import AdminClient, connect_admin
from gardenbus.diagnostics.checks import CHECKS, examine
from gardenbus.diagnostics.findings import DiagnosticFinding, worst
from gardenbus.diagnostics.servers import replicas_by_relays
from gardenbus.diagnostics.target import DiagnosticsTarget
from gardenbus.diagnostics.work_queues import work_rows

CHECKS_SECONDS = 10.0
"""Age from which on a page has the checks made anew; they look at the queues twice."""

QUEUES_SECONDS = 1.0

RATE_SECONDS = 30.0
"""Longest time over which a rate is a rate of now."""

CONNECT_SECONDS = 3.0

ELSEWHERE = (DiagnosticFinding("redis", "skipped", "the dashboard has no connection to it", "gardenbus doctor"),)
"""Findings that only the command line can have."""


class AdminConnection:
    """Admin client of the bus, which connects when the page of operations is first opened."""

    def __init__(self) -> None:
        self._wanted = asyncio.Event()
        self._connected = asyncio.Event()
        self._client: AdminClient | None = None

    async def run(self, nats_url: str, credentials: Credentials = NO_CREDENTIALS) -> NoReturn:
        """Connect as soon as somebody requires it, and keep the connection for ever."""
        await self._wanted.wait()
        async with connect_admin(nats_url, "dashboard-operations", credentials) as self._client:
            self._connected.set()
            while True:
                await asyncio.Event().wait()
        raise AssertionError

    async def required(self) -> AdminClient:
        """Return the client. Raises Unavailable when it is not connected in time."""
        self._wanted.set()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await self._connected.wait()
        except TimeoutError as error:
            raise Unavailable(f"no NATS within {CONNECT_SECONDS:g} s") from error
        assert self._client is not None, "it is there before the event"
        return self._client


class OperationsApi:
    """The API as checks need it; names of seeds come from the cache, so that no check lists them all."""

    def __init__(self, api: GardenApiClient, cache: DashboardCache) -> None:
        self._api = api
        self._cache = cache
        self.bus = api.bus
        self.subjects = api.subjects

    async def census(self, *, timeout_seconds: float = 8.0) -> dict[str, int]:
        """Counts of everything."""
        return await self._api.census(timeout_seconds=timeout_seconds)

    async def seed_names(self) -> Sequence[str]:
        """Names of all seeds."""
        return [row.name for row in self._cache.seeds.values()]


class OperationsCache:
    """Checks, queues and services of the landscape. All methods raise Unavailable."""

    def __init__(self, api: OperationsApi, admin: AdminConnection, clock: Clock) -> None:
        self._api = api
        self._admin = admin
        self._clock = clock
        self._checks = _Reading(clock, CHECKS_SECONDS, self._examine)
        self._queues = _Reading(clock, QUEUES_SECONDS, self._read_queues)
        self._delivered: dict[str, tuple[float, int]] = {}

    async def checks(self) -> Document:
        """Findings of the checks, their worst state, and when they were made."""
        return await self._checks.latest()

    async def queues(self) -> Document:
        """Work queues, each with the messages a second that were handed out since the reading before."""
        return await self._queues.latest()

    async def services(self) -> Document:
        """Services with their versions and replicas."""
        responses = await (await self._admin.required()).request_many("$SRV.STATS")
        return {"items": services_of(responses, self._api.subjects.prefix)}

    async def _examine(self) -> Document:
        target = DiagnosticsTarget(self._api, await self._admin.required(), None)
        findings = await examine(target, {**CHECKS, "redis": replicas_by_relays})
        rows: list[Mapping[str, str]] = [each.row for each in (*findings, *ELSEWHERE)]
        return {"state": worst(findings), "findings": rows, "at": timestamp(self._clock.now())}

    async def _read_queues(self) -> Document:
        rows: list[Document] = []
        now = self._clock.monotonic()
        for row in await work_rows(self._api):
            at, delivered = self._delivered.get(row.queue, (now, row.delivered))
            is_comparable = 0 < now - at <= RATE_SECONDS and row.delivered >= delivered
            rate = (row.delivered - delivered) / (now - at) if is_comparable else None
            self._delivered[row.queue] = (now, row.delivered)
            rows.append(row._asdict() | {"perSecond": rate})
        return {"items": rows}


class _Reading:
    """A value that is read anew when it is older than some time; concurrent requests share one reading."""

    def __init__(self, clock: Clock, lasts_seconds: float, read: Callable[[], Awaitable[Document]]) -> None:
        self._clock = clock
        self._lasts_seconds = lasts_seconds
        self._read = read
        self._lock = asyncio.Lock()
        self._value: dict[str, Any] | None = None
        self._read_at = 0.0

    async def latest(self) -> Document:
        async with self._lock:
            if self._value is None or self._clock.monotonic() - self._read_at >= self._lasts_seconds:
                self._value = await self._read()
                self._read_at = self._clock.monotonic()
            return self._value
