"""Server-side apply by several managers: what a real API server and the landscape's make of the same requests."""

import json
import os
import random
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gardenbus.agent.kubernetes.kubeconfig import parse_kubeconfig
from gardenbus.common.api.document import Document
from tests.support.kube_apis import a_kube_api
from tests.support.kube_clusters import real_clusters
from tests.support.managed_requests import A_NAMESPACE, Given, drawn, observed, sent_to

SEQUENCES, REQUESTS = 120, 12
RECORDED = "GARDENBUS_RECORD_APPLIES"
"""File into which the responses of the real API server are written, for the test that needs none."""


@pytest.mark.slow
async def test_managers_come_by_the_same_fields_and_conflicts_as_on_a_real_api_server(
    tmp_path: Path, binaries: str
) -> None:
    async with (
        real_clusters(tmp_path, binaries, ["one"]) as (real,),
        a_kube_api() as ours,
        aiohttp.ClientSession() as http,
    ):
        access = parse_kubeconfig(real.kubeconfig, source="one")

        async def to_real(given: Given) -> tuple[int, Document]:
            headers = {"Content-Type": given.content_type}
            url = f"{access.server}{given.path}"
            async with http.request(
                given.method, url, data=json.dumps(given.body), headers=headers, ssl=access.tls
            ) as response:
                return response.status, await response.json()

        async def to_ours(given: Given) -> tuple[int, Document]:
            return await sent_to(ours, given)

        recorded: list[list[Any]] = []
        assert [(await send(A_NAMESPACE))[0] for send in (to_real, to_ours)] == [201, 201]
        for seed in range(SEQUENCES):
            chance = random.Random(seed)
            recorded.append([])
            for _ in range(REQUESTS):
                given = drawn(chance, f"map-{seed}")
                expected, found = [observed(*await send(given)) for send in (to_real, to_ours)]
                recorded[-1].append((given, expected))
                assert found == expected, json.dumps(recorded[-1])
    if file := os.environ.get(RECORDED):
        Path(file).write_text(json.dumps(recorded[:20], separators=(",", ":")) + "\n")
