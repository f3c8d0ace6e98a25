"""Checks of the clusters of Plants, by their kubeconfigs.

Anybody who has a project can register a server here, so that all of it is bounded: seconds, bytes, nodes. Redirects are
not followed, nothing is decompressed, no cookie is kept, and only what a status needs is decoded.
"""

import asyncio
import base64
import binascii
from collections.abc import AsyncGenerator
from typing import NamedTuple

import aiohttp
import msgspec

from gardenbus.agent.kubernetes.client import KubernetesClient
from gardenbus.agent.kubernetes.errors import KubeconfigInvalid
from gardenbus.agent.kubernetes.kubeconfig import Access, parse_kubeconfig
from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import StoredObject, section
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import GardenbusError, Unavailable
from gardenbus.controllermanager.domain.plants import (
    NO_KUBECONFIG,
    PlantFacts,
    PlantFinding,
    PlantFindings,
    PlantNode,
    facts_of,
    first_problem,
    healthz_failed,
    healthz_finding,
    nodes_finding,
    nodes_not_checked,
    not_reachable,
)

CHECK_SECONDS = 10.0
"""The longest that one step of a check takes: /healthz, then nodes and version."""

_LARGEST_KUBECONFIG = 1 << 16
_LARGEST_HEALTHZ = 1 << 14
_LARGEST_PAGE = 1 << 22
_MOST_PAGES = 200
_NODES_OF_A_PAGE = 50
_HTTP_OK = 200


class _ListMetadata(msgspec.Struct, frozen=True):
    continuation: str | None = msgspec.field(name="continue", default=None)


class _NodeList(msgspec.Struct, frozen=True):
    metadata: _ListMetadata = _ListMetadata()
    items: list[PlantNode] | None = None


class _VersionInfo(msgspec.Struct, frozen=True):
    git_version: str = msgspec.field(name="gitVersion", default="")


_node_list = json_decoder(_NodeList)
_version = json_decoder(_VersionInfo)


class _Parsed(NamedTuple):
    version: int
    access: Access


class PlantClusters:
    """Checks clusters on one session; a kubeconfig is parsed when its Secret changes."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._parsed: dict[ObjectKey, _Parsed] = {}

    async def run(self) -> None:
        """Close the session when cancelled."""
        try:
            await asyncio.Event().wait()
        finally:
            if self._session is not None:
                await self._session.close()

    def forget(self, secret: ObjectKey) -> None:
        """Drop the credentials of a Secret that no Plant names any more."""
        self._parsed.pop(secret, None)

    async def check(self, secret: StoredObject) -> PlantFindings:
        """Check a cluster by the Secret with its kubeconfig; whatever the server does is a finding."""
        try:
            access = await self._access(secret)
        except KubeconfigInvalid as error:
            return not_reachable(error.message)
        client = access.client(self._opened(), timeout_seconds=CHECK_SECONDS)
        try:
            api_server = healthz_finding(*await client.content("/healthz", most_bytes=_LARGEST_HEALTHZ))
        except GardenbusError as error:
            return PlantFindings(healthz_failed(error.message), nodes_not_checked(error.message), None)
        nodes, facts = await _nodes_and_facts(client)
        return PlantFindings(api_server, nodes, facts)

    async def _access(self, secret: StoredObject) -> Access:
        """The way to a cluster. Raises KubeconfigInvalid."""
        parsed = self._parsed.get(secret.key)
        if parsed is None or parsed.version != secret.version:
            text = _kubeconfig(secret)
            access = await asyncio.to_thread(parse_kubeconfig, text, source="failed to get plant client")
            parsed = self._parsed[secret.key] = _Parsed(secret.version, access)
        return parsed.access

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"Accept-Encoding": "identity"},
            )
        return self._session


def _kubeconfig(secret: StoredObject) -> str:
    """The kubeconfig in a Secret. Raises KubeconfigInvalid."""
    encoded = section(secret.document(), "data").get("kubeconfig")
    if not encoded:
        raise KubeconfigInvalid(NO_KUBECONFIG)
    try:
        content = base64.b64decode(str(encoded), validate=True)
        if len(content) > _LARGEST_KUBECONFIG:
            raise KubeconfigInvalid(f"Plant secret has a kubeconfig of more than {_LARGEST_KUBECONFIG >> 10} KiB.")
        return content.decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise KubeconfigInvalid("Plant secret has a kubeconfig that is no base64 of UTF-8.") from error


async def _nodes_and_facts(client: KubernetesClient) -> tuple[PlantFinding, PlantFacts | None]:
    first: PlantNode | None = None
    problem: str | None = None
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            version = await _get(client, "/version")
            async for page in _pages(client):
                first = first if first is not None else next(iter(page), None)
                problem = problem if problem is not None else first_problem(page)
            facts = facts_of(first, _version(version).git_version)
    except GardenbusError as error:
        return nodes_not_checked(error.message), None
    except TimeoutError:
        return nodes_not_checked(f"the nodes were not listed within {CHECK_SECONDS:g} seconds"), None
    except msgspec.DecodeError as error:
        return nodes_not_checked(f"the response is no list of nodes, or no version: {error}"), None
    return nodes_finding(problem), facts


async def _pages(client: KubernetesClient) -> AsyncGenerator[list[PlantNode]]:
    """The nodes, page by page. Raises GardenbusError, msgspec.DecodeError."""
    query = {"limit": str(_NODES_OF_A_PAGE)}
    for _ in range(_MOST_PAGES):
        page = _node_list(await _get(client, "/api/v1/nodes", **query))
        yield page.items or []
        if not page.metadata.continuation:
            return
        query["continue"] = page.metadata.continuation
    raise Unavailable(f"the list of nodes has more than {_MOST_PAGES} pages")


async def _get(client: KubernetesClient, path: str, **query: str) -> bytes:
    code, content = await client.content(path, most_bytes=_LARGEST_PAGE, **query)
    if code != _HTTP_OK:
        raise Unavailable(f"GET {path}: {code} {content[:1200].decode(errors='replace')}")
    return content
