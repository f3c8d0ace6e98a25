"""Every service of a landscape is a NATS micro service."""

import asyncio
import json
from typing import Any

import pytest
from nats.aio.msg import Msg

from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.landscape import Landscape

SERVICES = {
    "apiserver",
    "scheduler",
    "lifecycle",
    "controllermanager",
    "managedseedset",
    "autoscaler",
    "placement",
    "relay",
}


async def who_is_there(landscape: Landscape) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    async def take(message: Msg) -> None:
        found.append(json.loads(message.data))

    inbox = landscape.client.new_inbox()
    subscription = await landscape.client.subscribe(inbox, cb=take)  # pyright: ignore[reportUnknownMemberType]
    await landscape.client.publish("$SRV.INFO", b"", reply=inbox)
    await asyncio.sleep(0.5)
    await subscription.unsubscribe()
    return found


@pytest.mark.slow
async def test_every_service_says_who_it_is_and_what_it_answers(hosting: Landscape) -> None:
    async def all_there() -> list[dict[str, Any]]:
        found = await who_is_there(hosting)
        assert {each["name"] for each in found} >= SERVICES
        return found

    found = await eventually(all_there)
    assert len({each["id"] for each in found}) == len(found)
    for each in found:
        assert each["description"], each["name"]
        assert each["version"].count(".") == 2
        assert each["metadata"]["prefix"] == "garden"
    (api,) = next(each for each in found if each["name"] == "apiserver" and each["endpoints"])["endpoints"][:1]
    assert (api["subject"], api["queue_group"]) == ("garden.api.>", "apiserver")
    assert api["metadata"]
    scheduler = next(each for each in found if each["name"] == "scheduler")
    explain = scheduler["endpoints"][0]
    assert explain["subject"] == "garden.scheduler.default-scheduler.explain.>"
    assert explain["queue_group"] == "scheduler-default-scheduler"
    assert explain["metadata"]
    before = json.loads((await hosting.client.request("$SRV.STATS.apiserver", b"", timeout=HANG_SECONDS)).data)[
        "endpoints"
    ][0]
    await hosting.query("census")
    after = json.loads((await hosting.client.request("$SRV.STATS.apiserver", b"", timeout=HANG_SECONDS)).data)[
        "endpoints"
    ][0]
    assert after["num_requests"] >= before["num_requests"]
    assert after["processing_time"] >= before["processing_time"]
