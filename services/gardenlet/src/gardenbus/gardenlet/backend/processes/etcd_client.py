"""Client of a shoot's etcd, by its JSON gateway: no more of it than backups and defragmentation need."""

import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager

import aiohttp
import msgspec

from gardenbus.common.api.document import Document
from gardenbus.common.errors import Unavailable
from gardenbus.gardenlet.domain.etcd_events import (
    Changes,
    EtcdEvent,
    events_in,
    lease_request,
    transaction_request,
    watch_request,
)

_OK = 200
_TIMEOUT = aiohttp.ClientTimeout(total=60, sock_read=20)
_DEFRAGMENTATION_TIMEOUT = aiohttp.ClientTimeout(total=300)
_LEASE_EXISTS = "lease already exists"


class _GatewayHeader(msgspec.Struct, frozen=True):
    revision: int = 0


class _GatewayStatus(msgspec.Struct, frozen=True, rename="camel"):
    db_size: int


class _GatewayResponse(msgspec.Struct, frozen=True):
    header: _GatewayHeader = _GatewayHeader()


class EtcdClient:
    """All methods raise Unavailable."""

    def __init__(self, session: aiohttp.ClientSession, url: str, tls: ssl.SSLContext) -> None:
        self._session = session
        self._url = url
        self._tls = tls

    async def revision(self) -> int:
        """The latest revision."""
        return await self._post("/v3/kv/range", {"key": "AA==", "count_only": True})

    async def changes(self, after: int) -> AsyncIterator[Changes]:
        """Changes above a revision, up to what is the latest one now. Raises Compacted when some are gone."""
        until = await self.revision()
        if until <= after:
            return
        rest = b""
        async with self._request("/v3/watch", watch_request(after)) as response:
            async for chunk in response.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for events in map(_events, lines):
                    if events:
                        yield Changes(events[-1].kv.mod_revision, events)
                        if events[-1].kv.mod_revision >= until:
                            return
        raise Unavailable(f"{self._url} has ended a watch before revision {until}")

    async def transact(self, events: Sequence[EtcdEvent]) -> int:
        """Carry events out in one transaction; returns its revision."""
        return await self._post("/v3/kv/txn", transaction_request(events))

    async def grant(self, lease: int) -> None:
        """Have a lease of this number; one that is there stays."""
        try:
            await self._post("/v3/lease/grant", lease_request(lease))
        except Unavailable as error:
            if _LEASE_EXISTS not in error.message:
                raise

    async def database_bytes(self) -> int:
        """Size of the database's file."""
        async with self._request("/v3/maintenance/status", {}) as response:
            return msgspec.json.decode(await response.read(), type=_GatewayStatus, strict=False).db_size

    async def defragment(self) -> None:
        """Write the database anew, without the room of what was removed; etcd responds to nobody meanwhile."""
        async with self._request("/v3/maintenance/defragment", {}, _DEFRAGMENTATION_TIMEOUT) as response:
            await response.read()

    async def _post(self, path: str, body: Document) -> int:
        async with self._request(path, body) as response:
            return msgspec.json.decode(await response.read(), type=_GatewayResponse, strict=False).header.revision

    @asynccontextmanager
    async def _request(
        self, path: str, body: Document, within: aiohttp.ClientTimeout = _TIMEOUT
    ) -> AsyncGenerator[aiohttp.ClientResponse]:
        url = f"{self._url}{path}"
        try:
            async with self._session.post(
                url, data=msgspec.json.encode(body), ssl=self._tls, timeout=within
            ) as response:
                if response.status != _OK:
                    raise Unavailable(
                        f"{url} responded with {response.status}: {' '.join((await response.text()).split())[:300]}"
                    )
                yield response
        except (aiohttp.ClientError, TimeoutError, OSError, msgspec.MsgspecError) as error:
            reason = str(getattr(error, "os_error", error)) or type(error).__name__  # aiohttp's own text names objects
            raise Unavailable(f"{url} does not respond as it should: {reason}") from error


def _events(line: bytes) -> tuple[EtcdEvent, ...]:
    if not line:
        return ()
    try:
        return events_in(line)
    except ValueError as error:
        raise Unavailable(str(error)) from error
