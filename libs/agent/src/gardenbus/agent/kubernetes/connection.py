"""Connection to a cluster by its kubeconfig, which is read again when it has changed, expires or is not accepted."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import aiohttp

from gardenbus.agent.kubernetes.client import KubernetesClient
from gardenbus.agent.kubernetes.discovery import Discovery
from gardenbus.agent.kubernetes.errors import Unauthorized
from gardenbus.agent.kubernetes.kubeconfig import Access, parse_kubeconfig, read_kubeconfig
from gardenbus.common.ports.clock import Clock

RENEWED_AT = 0.8
"""Share of the life of an obtained kubeconfig after which another is obtained."""

_MISSING = -1


class ClusterConnection(NamedTuple):
    """One cluster, by one kubeconfig."""

    client: KubernetesClient
    discovery: Discovery


class KubeconfigSource(NamedTuple):
    """A file; or, while there is none, a function that obtains a kubeconfig."""

    file: Path | None
    obtain: Callable[[], Awaitable[str]] | None = None


class Connector:
    """See the module."""

    def __init__(self, source: KubeconfigSource, clock: Clock, *, timeout_seconds: float) -> None:
        self._source = source
        self._clock = clock
        self._timeout_seconds = timeout_seconds
        self._session: aiohttp.ClientSession | None = None
        self._connection: ClusterConnection | None = None
        self._stamp = _MISSING
        self._renew_at: datetime | None = None
        self._expires_at: datetime | None = None
        self._lock = asyncio.Lock()

    def open(self) -> None:
        """Make the session; a loop must run."""
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30))

    async def close(self) -> None:
        """Close the session."""
        self._connection = None
        if self._session is not None:
            await self._session.close()
            self._session = None

    def forget(self) -> None:
        """Read the kubeconfig anew for the next connection: the cluster does not accept it."""
        self._connection = None

    async def connection(self) -> ClusterConnection:
        """The connection; a new one if the kubeconfig has changed. Raises GardenbusError."""
        async with self._lock:
            if self._connection is None or self.is_outdated():
                access = await self._access()
                assert self._session is not None
                client = access.client(self._session, timeout_seconds=self._timeout_seconds)
                self._expires_at = access.expires_at
                self._connection = ClusterConnection(client, Discovery(client))
            self._check_life()
            return self._connection

    def is_outdated(self) -> bool:
        """True if there is another kubeconfig than the connection's, or it is time for another."""
        if self._stamp != _stamp(self._source.file):
            return True
        return self._renew_at is not None and self._clock.now() >= self._renew_at

    async def _access(self) -> Access:
        self._stamp, self._renew_at = _stamp(self._source.file), None
        if self._source.file is not None and (self._source.obtain is None or self._stamp != _MISSING):
            return await asyncio.to_thread(read_kubeconfig, self._source.file)
        assert self._source.obtain is not None
        text = await self._source.obtain()
        access = await asyncio.to_thread(parse_kubeconfig, text, source="the obtained kubeconfig")
        now = self._clock.now()
        life = access.expires_at - now if access.expires_at is not None else timedelta(hours=1)
        self._renew_at = now + life * RENEWED_AT
        return access

    def _check_life(self) -> None:
        if self._expires_at is not None and self._clock.now() >= self._expires_at:
            expired = f"the client certificate expired at {self._expires_at:%Y-%m-%dT%H:%M:%SZ}"
            raise Unauthorized(f"{self._source.file or 'kubeconfig'}: {expired}: write a new kubeconfig there")


def _stamp(file: Path | None) -> int:
    try:
        return file.stat().st_mtime_ns if file is not None else _MISSING
    except OSError:
        return _MISSING
