"""One sender's many large requests neither cut the apiserver off nor keep others from being answered."""

import asyncio
import json
from typing import Any

import msgspec

from gardenbus.common.api.keys import Subjects
from tests.contract.apiserver.conftest import Apiserver, an_idle_apiserver
from tests.support.eventually import HANG_SECONDS
from tests.support.servers import Server

LARGE = 7_900_000
REQUESTS = 20
OBJECTS = 40


async def test_what_a_sender_has_in_flight_is_bounded_and_the_apiserver_stays(
    nats_server: Server, redis_server: Server
) -> None:
    async with an_idle_apiserver(nats_server.url, redis_server.url) as apiserver:
        await apiserver.start()
        each = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"junk": "x" * (LARGE // OBJECTS)}}
        items = [each | {"metadata": {"name": f"large{n}", "namespace": "garden-dev"}} for n in range(OBJECTS)]
        body = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items})
        subject = apiserver.subjects.as_user("flooder", "api.apply")
        flood = [asyncio.create_task(apiserver.client.request(subject, body, timeout=60)) for _ in range(REQUESTS)]
        await asyncio.sleep(0)
        census = await asyncio.wait_for(_census(apiserver, apiserver.subjects), HANG_SECONDS)
        responses = [json.loads(response.data) for response in await asyncio.gather(*flood)]
    assert census["ok"]
    log = (nats_server.directory / "server.log").read_text()
    assert "Slow Consumer" not in log
    too_many = [response["error"] for response in responses if not response["ok"] and response["error"]["code"] == 429]
    assert len(too_many) < REQUESTS
    assert too_many, responses[0]
    assert {(error["reason"], error["retryAfterSeconds"]) for error in too_many} == {("TooManyRequests", 1)}
    assert "32 MB of requests of 'flooder' are in flight" in too_many[0]["message"]


async def _census(apiserver: Apiserver, subjects: Subjects) -> dict[str, Any]:
    response = await apiserver.client.request(subjects.as_user("ann", "api.census"), b"", timeout=60)
    return json.loads(response.data)
