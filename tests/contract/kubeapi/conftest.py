"""A landscape with the Kubernetes API on servers that a test may kill: relay, apiserver and kubeapi, over HTTPS."""

import contextlib
import ssl
from collections.abc import AsyncGenerator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import prometheus_client
import pytest

from gardenbus.apiserver.app import start_apiserver
from gardenbus.apiserver.settings import ApiserverSettings
from gardenbus.common.adapters.nats import follower
from gardenbus.common.errors import SettingsInvalid
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.common.runtime.connections import connect_all
from gardenbus.common.runtime.health import Health
from gardenbus.common.runtime.service import ServiceContext, SettingsT
from gardenbus.credentials.certificates import Authority, new_authority
from gardenbus.kubeapi import app as kubeapi
from gardenbus.kubeapi.settings import KubeApiSettings
from gardenbus.kubeapi.watch import caches
from gardenbus.relay import app as relay
from gardenbus.relay import settled
from gardenbus.relay.settings import RelayServiceSettings
from tests.support.eventually import eventually
from tests.support.http_watching import HttpWatcher
from tests.support.servers import Server, free_port

HOST = "127.0.0.1"
OPERATOR = {"Authorization": 'Bearer {"user":"operator","password":"any"}'}
"""Whoever says so: these servers of NATS let in everybody."""

MAPS = "/api/v1/namespaces/dev/configmaps"


def a_map(name: str, **data: str) -> dict[str, Any]:
    """A ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "dev"}, "data": data}


class Response(NamedTuple):
    """A response, read whole."""

    status: int
    retry_after: str
    body: dict[str, Any]


class KubeLandscape:
    """Services in this process, each on connections of its own, and a client."""

    def __init__(self, servers: Mapping[str, Any], directory: Path, session: aiohttp.ClientSession) -> None:
        self._servers = servers
        self._directory = directory
        self._session = session
        self._contexts: dict[str, ServiceContext[Any]] = {}
        authority = new_authority("ours", datetime.now(UTC))
        own = Authority(authority).server([HOST], datetime.now(UTC))
        for name, text in (("ca", authority.certificate), ("certificate", own.certificate), ("key", own.key)):
            (directory / f"{name}.pem").write_bytes(text)
        self._tls = ssl.create_default_context(cafile=str(directory / "ca.pem"))
        self.port = free_port()

    def _context(self, name: str, settings: SettingsT) -> ServiceContext[SettingsT]:
        health = Health(prometheus_client.CollectorRegistry())
        made = ServiceContext(name, settings, health=health, clock=SystemClock())
        self._contexts[name] = made
        return made

    async def start_relay(self) -> None:
        """Start a relay."""
        settings = RelayServiceSettings(**self._servers, relay_lead_ttl_seconds=1.0, instance="relay")
        await relay.build(self._context("relay", settings))

    async def start_apiserver(self) -> None:
        """Start an apiserver."""
        context = self._context("apiserver", ApiserverSettings(**self._servers))
        await start_apiserver(context, await connect_all(context, reporter="apiserver"))

    async def start_kubeapi(self) -> None:
        """Start a kubeapi."""
        settings = KubeApiSettings(
            nats_url=self._servers["nats_url"],
            kubeapi_port=self.port,
            kubeapi_certificate=str(self._directory / "certificate.pem"),
            kubeapi_key=str(self._directory / "key.pem"),
        )
        await kubeapi.build(self._context("kubeapi", settings))

    async def start(self) -> None:
        """Start everything, and wait until it responds."""
        for start in (self.start_relay, self.start_apiserver, self.start_kubeapi):
            await start()
        await self.until_created("first")
        assert await self.names() == ["first"]
        cached = await self.request("GET", f"{MAPS}/first", params={"resourceVersion": "0"})
        assert cached.status == 200, cached  # who may read what counts for a while

    async def stop(self, name: str) -> None:
        """Stop a service."""
        with contextlib.suppress(SettingsInvalid):
            await self._contexts.pop(name).close()

    async def close(self) -> None:
        """Stop everything."""
        for name in [*self._contexts][::-1]:
            await self.stop(name)

    @property
    def options(self) -> dict[str, Any]:
        """Options of a client's requests."""
        return {"ssl": self._tls, "headers": OPERATOR}

    def url(self, path: str) -> str:
        """The address of a path."""
        return f"https://{HOST}:{self.port}{path}"

    async def request(self, method: str, path: str, *, headers: dict[str, str] | None = None, **more: Any) -> Response:
        """Send a request as an operator."""
        options: dict[str, Any] = {**self.options, "headers": {**OPERATOR, **(headers or {})}, **more}
        async with self._session.request(method, self.url(path), **options) as response:
            return Response(response.status, response.headers.get("Retry-After", ""), await response.json())

    async def page(self, path: str) -> tuple[int, str]:
        """Status and text of a page of health."""
        async with self._session.get(self.url(path), ssl=self._tls) as response:
            return response.status, await response.text()

    async def until_created(self, name: str) -> None:
        """Create a ConfigMap, as soon as that is possible; it may be there from an attempt before."""

        async def created() -> None:
            response = await self.request("POST", MAPS, json=a_map(name))
            assert response.status in (201, 409), response

        await eventually(created)

    async def names(self, version: str = "") -> list[str]:
        """Names of the ConfigMaps, as soon as they can be listed: the newest, or (`0`) as they are cached."""

        async def listed() -> list[str]:
            response = await self.request("GET", MAPS, params={"resourceVersion": version} if version else {})
            assert response.status == 200, response
            return [each["metadata"]["name"] for each in response.body["items"]]

        return await eventually(listed)

    async def versions(self) -> dict[str, str]:
        """Versions of the ConfigMaps as they are stored, read one by one."""
        found: dict[str, str] = {}
        for name in await self.names():
            response = await self.request("GET", f"{MAPS}/{name}")
            assert response.status == 200, response
            found[f"dev/{name}"] = response.body["metadata"]["resourceVersion"]
        return found

    def watcher(self) -> HttpWatcher:
        """A client that follows the ConfigMaps."""
        return HttpWatcher(self._session, self.url(MAPS), self.options)


@contextlib.asynccontextmanager
async def a_kube_landscape(servers: Mapping[str, Any], directory: Path) -> AsyncGenerator[KubeLandscape]:
    """A landscape that responds. `servers`: the settings by which services find NATS and Redis."""
    async with aiohttp.ClientSession() as session:
        landscape = KubeLandscape(servers, directory, session)
        try:
            await landscape.start()
            yield landscape
        finally:
            await landscape.close()


@pytest.fixture
async def landscape(
    nats_server: Server, redis_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[KubeLandscape]:
    """The same on servers of the test's own; it finds out sooner than others that something lags."""
    for module, name in ((follower, "HEARTBEAT_SECONDS"), (caches, "WAIT_SECONDS"), (settled, "WAIT_SECONDS")):
        monkeypatch.setattr(module, name, 0.5)
    servers = {"nats_url": nats_server.url, "redis_url": redis_server.url}
    async with a_kube_landscape(servers, tmp_path) as found:
        yield found
