"""A real API server and the landscape's, to which the same requests are sent."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import aiohttp

from gardenbus.agent.kubernetes.kubeconfig import Access, parse_kubeconfig
from tests.support.kube_apis import KubeApi, a_kube_api
from tests.support.kube_clusters import real_clusters


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
