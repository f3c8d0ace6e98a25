"""An agent that starts before the streams are there waits for them, and says so."""

import asyncio
from collections.abc import AsyncIterator

import prometheus_client
import pytest
from structlog.testing import capture_logs

from gardenbus.common.adapters.nats.jetstream import connect
from gardenbus.common.runtime.bus_connection import connect_bus
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.common.runtime.health import Health
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.common.runtime.settings import CommonSettings
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.servers import Server

Context = ServiceContext[CommonSettings]


@pytest.fixture
async def context(nats_server: Server) -> AsyncIterator[Context]:
    settings = CommonSettings(nats_url=nats_server.url)
    health = Health(prometheus_client.CollectorRegistry())
    context = ServiceContext("gardenlet", settings, health=health, clock=SystemClock())
    yield context
    await context.close()


async def test_missing_streams_are_waited_for_and_named(context: Context, nats_server: Server) -> None:
    with capture_logs() as logs:
        starting = asyncio.create_task(connect_bus(context, manages_streams=False, awaited_streams=["LEASES"]))

        async def waiting() -> None:
            assert "waits for streams" in context.start_problem()
            assert "the stream LEASES does not exist yet" in context.start_problem()

        await eventually(waiting)
        async with connect(nats_server.url, "apiserver"):
            await asyncio.wait_for(starting, HANG_SECONDS)

    assert context.start_problem() == "starting"
    assert [each["server"] for each in logs if each["event"] == "server.awaited"] == ["streams"]
