"""A real API server and the landscape's, to which the same requests are sent."""

import json
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from gardenbus.agent.kubernetes.kubeconfig import Access, parse_kubeconfig
from gardenbus.common.api.document import Document
from tests.support.eventually import eventually
from tests.support.kube_apis import KubeApi, a_kube_api
from tests.support.kube_clusters import real_clusters

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_OK, _CREATED = 200, 201


class HttpResponse(NamedTuple):
    """A response, read whole."""

    code: int
    headers: Mapping[str, str]
    text: str


class BothApis:
    """Sends a request to both."""

    def __init__(self, access: Access, http: aiohttp.ClientSession, ours: KubeApi) -> None:
        self._access = access
        self._http = http
        self._ours = ours

    async def store(self, documents: Iterable[Document]) -> None:
        """Store objects in the landscape alone."""
        for each in documents:
            await self._ours.store.create(each)

    async def define(self, definition: Mapping[str, Any], path: str) -> None:
        """Have the real one serve a kind, which the landscape knows."""
        headers, url = {"Content-Type": "application/json"}, f"{self._access.server}{DEFINITIONS}"
        body = json.dumps(definition)
        async with self._http.post(url, data=body, headers=headers, ssl=self._access.tls) as response:
            assert response.status == _CREATED, await response.text()

        async def is_served() -> None:
            async with self._http.get(f"{self._access.server}{path}", ssl=self._access.tls) as response:
                assert response.status == _OK

        await eventually(is_served)

    async def send(
        self, method: str, path: str, body: bytes | str | None, headers: Mapping[str, str]
    ) -> tuple[HttpResponse, HttpResponse]:
        """The response of the real one, and that of the landscape's."""
        url = f"{self._access.server}{path}"
        async with self._http.request(method, url, data=body, headers=headers, ssl=self._access.tls) as response:
            wanted = HttpResponse(response.status, response.headers, await response.text())
        async with self._ours.request(method, path, data=body, headers=dict(headers)) as response:
            return wanted, HttpResponse(response.status, response.headers, await response.text())


@asynccontextmanager
async def both_apis(directory: Path, binaries: str) -> AsyncGenerator[BothApis]:
    """Both, until the end of the block."""
    async with (
        real_clusters(directory, binaries, ["one"]) as (real,),
        a_kube_api() as ours,
        aiohttp.ClientSession() as http,
    ):
        yield BothApis(parse_kubeconfig(real.kubeconfig, source="one"), http, ours)
