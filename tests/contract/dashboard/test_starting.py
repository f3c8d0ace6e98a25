"""A dashboard that starts before the streams are there is not ready until they are."""

import asyncio

import prometheus_client

from gardenbus.common.adapters.nats.jetstream import connect
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.common.runtime.health import Health
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.dashboard.app import build
from gardenbus.dashboard.settings import DashboardSettings
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.servers import Server, free_port


async def test_it_is_ready_only_once_the_streams_are_there(nats_server: Server) -> None:
    settings = DashboardSettings(nats_url=nats_server.url, prefix="young", dashboard_port=free_port())
    health = Health(prometheus_client.CollectorRegistry())
    context = ServiceContext("dashboard", settings, health=health, clock=SystemClock())
    starting = asyncio.create_task(build(context))

    async def waiting() -> None:
        assert "the stream OBJECTS does not exist yet" in context.start_problem()

    try:
        await eventually(waiting)
        async with connect(nats_server.url, "apiserver", "young"):
            await asyncio.wait_for(starting, HANG_SECONDS)
    finally:
        starting.cancel()
        await context.close()
