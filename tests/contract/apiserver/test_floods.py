"""One sender's many large requests neither cut the apiserver off nor keep others from being answered."""

import asyncio
import json
from typing import Any

import msgspec

from gardenbus.common.api.keys import Subjects
from tests.contract.apiserver.conftest import Apiserver, an_idle_apiserver
from tests.support.servers import Server

LARGE = 7_900_000
REQUESTS = 15
"""Together less than NATS' `max_pending` of 128 MiB: one that gets no processor for a while reads none of it."""

OBJECTS = 40
HANG = 360.0
"""Seconds that end a hang: what floods take follows what else the machine does."""


async def test_what_a_sender_has_in_flight_is_bounded_and_the_apiserver_stays(
    nats_server: Server, redis_server: Server
) -> None:
    async with an_idle_apiserver(nats_server.url, redis_server.url) as apiserver:
        await apiserver.start()
        each = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"junk": "x" * (LARGE // OBJECTS)}}
        items = [each | {"metadata": {"name": f"large{n}", "namespace": "garden-dev"}} for n in range(OBJECTS)]
        body = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items})
        subject = apiserver.subjects.as_user("flooder", "api.apply")
        flood = [asyncio.create_task(apiserver.client.request(subject, body, timeout=HANG)) for _ in range(REQUESTS)]
        await asyncio.sleep(0)
        census = await asyncio.wait_for(_census(apiserver, apiserver.subjects), HANG)
        responses = [json.loads(response.data) for response in await asyncio.gather(*flood)]
    assert census["ok"]
    log = (nats_server.directory / "server.log").read_text()
    assert "Slow Consumer" not in log
    too_many = [response["error"] for response in responses if not response["ok"] and response["error"]["code"] == 429]
    assert len(too_many) < REQUESTS
    assert too_many, responses[0]
    assert {(error["reason"], error["retryAfterSeconds"]) for error in too_many} == {("TooManyRequests", 1)}
    assert "'flooder' has used up its budget of bytesInFlight (32Mi)" in too_many[0]["message"]
    assert too_many[0]["limit"] == "bytesInFlight"


async def test_one_request_does_not_wait_for_many_of_another_user(nats_server: Server, redis_server: Server) -> None:
    async with an_idle_apiserver(nats_server.url, redis_server.url) as apiserver:
        await apiserver.start()
        subject = apiserver.subjects.as_user("eve", "api.apply")
        bodies = [_config_maps(200, f"eve{request}") for request in range(60)]
        flood = [asyncio.create_task(apiserver.client.request(subject, body, timeout=HANG)) for body in bodies]
        await asyncio.wait(flood, return_when=asyncio.FIRST_COMPLETED)
        before = sum(task.done() for task in flood)
        assert (await asyncio.wait_for(_census(apiserver, apiserver.subjects), HANG))["ok"]
        meanwhile = sum(task.done() for task in flood) - before
        for task in flood:
            task.cancel()
        await asyncio.gather(*flood, return_exceptions=True)
    assert meanwhile <= 12, "it waited for more than those that were worked on"


def _config_maps(count: int, name: str) -> bytes:
    metadata = [{"name": f"{name}-{number}", "namespace": "garden-dev"} for number in range(count)]
    items = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": each} for each in metadata]
    return msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items})


async def _census(apiserver: Apiserver, subjects: Subjects) -> dict[str, Any]:
    response = await apiserver.client.request(subjects.as_user("ann", "api.census"), b"", timeout=HANG)
    return json.loads(response.data)
