"""Requests to a real API server and to the landscape's: the same responses, or a difference that has its reason."""

from pathlib import Path

import aiohttp

from gardenbus.agent.kubernetes.kubeconfig import parse_kubeconfig
from gardenbus.common.api.document import Document
from tests.support.compared_requests import REQUESTS, Compared, comparable
from tests.support.kube_apis import a_kube_api
from tests.support.kube_clusters import real_clusters

LEAST_EQUAL = 100


async def test_requests_have_the_responses_of_a_real_api_server_or_a_reason_why_not(
    tmp_path: Path, binaries: str
) -> None:
    async with (
        real_clusters(tmp_path, binaries, ["one"]) as (real,),
        a_kube_api() as ours,
        aiohttp.ClientSession() as http,
    ):
        access = parse_kubeconfig(real.kubeconfig, source="one")

        async def both(request: Compared) -> tuple[Document, Document]:
            url = f"{access.server}{request.path}"
            async with http.request(
                request.method, url, data=request.sent, headers=request.headers, ssl=access.tls
            ) as response:
                wanted = comparable(response.status, response.headers, await response.text())
            async with ours.request(
                request.method, request.path, data=request.sent, headers=request.headers
            ) as response:
                return wanted, comparable(response.status, response.headers, await response.text())

        unexplained: list[str] = []
        equal = 0
        for request in REQUESTS:
            wanted, found = await both(request)
            equal += wanted == found
            if (wanted == found) is bool(request.differs):
                unexplained.append(f"{request.method} {request.path} {request.body}: {found}, not {wanted}")
        assert not unexplained, "\n".join(unexplained)
        assert equal > LEAST_EQUAL
