"""Servers die under an apiserver, and nothing that was acknowledged is lost."""

import asyncio
import contextlib

from nats.errors import Error as NatsError

from gardenbus.common.api.keys import ObjectKey
from tests.contract.apiserver.conftest import Apiserver, an_idle_apiserver
from tests.support.builders import a_shoot
from tests.support.eventually import eventually
from tests.support.servers import Server

SHOOTS = 300


async def all_there(apiserver: Apiserver) -> None:
    """Every shoot is stored, nothing is left and nothing was rejected."""

    async def check() -> None:
        with contextlib.suppress(NatsError):
            await apiserver.until_handled()
            keys = [ObjectKey("shoot", "garden-dev", f"s{number}") for number in range(SHOOTS)]
            assert None not in await apiserver.kit.store.get_many(keys)
            assert await apiserver.rejected() == []
            return
        raise AssertionError("NATS is away")

    await eventually(check)


async def test_redis_dies_while_requests_are_taken(nats_server: Server, redis_server: Server) -> None:
    async with an_idle_apiserver(nats_server.url, redis_server.url) as apiserver:
        for number in range(SHOOTS):
            await apiserver.publish("apply", a_shoot(f"s{number}"))
        for _ in range(2):
            await apiserver.start(request_batch=20)
        await asyncio.to_thread(redis_server.kill)
        await asyncio.sleep(0.3)
        await asyncio.to_thread(redis_server.restart)
        await apiserver.kit.open()
        await all_there(apiserver)


async def test_nats_dies_while_requests_are_taken(nats_server: Server, redis_server: Server) -> None:
    async with an_idle_apiserver(nats_server.url, redis_server.url) as apiserver:
        for number in range(SHOOTS):
            await apiserver.publish("apply", a_shoot(f"s{number}"))
        for _ in range(2):
            await apiserver.start(request_batch=20)
        await asyncio.to_thread(nats_server.kill)
        await asyncio.sleep(0.3)
        await asyncio.to_thread(nats_server.restart)
        await all_there(apiserver)

        async def responses() -> None:
            try:
                assert (await apiserver.request("census"))["objects.shoot"] == SHOOTS
            except NatsError as error:
                raise AssertionError(str(error)) from error

        await eventually(responses)
