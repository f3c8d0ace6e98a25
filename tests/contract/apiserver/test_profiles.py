"""Merged profiles follow their parents through a real relay."""

import asyncio
import contextlib

from gardenbus.common.runtime.clock import SystemClock
from gardenbus.relay.relay import Relay
from tests.contract.apiserver.conftest import Apiserver
from tests.support.builders import a_cloudprofile, a_namespaced_cloudprofile
from tests.support.eventually import eventually

OWN = "get.namespacedcloudprofile.garden-dev.own"


async def test_every_replica_may_see_a_parent_change_and_the_child_follows_once(idle_apiserver: Apiserver) -> None:
    bus = await idle_apiserver.start()
    await idle_apiserver.start()
    relay = asyncio.create_task(Relay(idle_apiserver.kit.outbox, bus, idle_apiserver.subjects, SystemClock()).run())
    await idle_apiserver.request("apply", a_cloudprofile())
    await idle_apiserver.request("apply", a_namespaced_cloudprofile(status=None))
    selector = {"matchLabels": {"env": "prod"}}
    await idle_apiserver.request("apply", a_cloudprofile(spec={"seedSelector": selector}))

    async def followed() -> int:
        profile = await idle_apiserver.request(OWN)
        assert profile["status"]["cloudProfileSpec"].get("seedSelector") == selector
        assert profile["status"]["observedGeneration"] == profile["metadata"]["generation"]
        return int(profile["metadata"]["resourceVersion"])

    version = await eventually(followed, every=0.02)
    await asyncio.sleep(0.3)
    assert await followed() == version
    relay.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await relay
