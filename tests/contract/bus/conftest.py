"""One behaviour suite for both adapters."""

from collections.abc import AsyncIterator

import pytest

from tests.support.buses import BusUnderTest, in_memory, on_jetstream
from tests.support.servers import Server


@pytest.fixture(params=["memory", "jetstream"])
async def under_test(request: pytest.FixtureRequest) -> AsyncIterator[BusUnderTest]:
    """Each behaviour on both adapters."""
    if request.param == "memory":
        yield await in_memory()
        return
    server: Server = request.getfixturevalue("shared_nats_server")
    bus = await on_jetstream(server.url)
    yield bus
    await bus.stack.aclose()


@pytest.fixture
async def jetstream(shared_nats_server: Server) -> AsyncIterator[BusUnderTest]:
    """JetStream alone, on the shared server."""
    bus = await on_jetstream(shared_nats_server.url)
    yield bus
    await bus.stack.aclose()


@pytest.fixture
async def own(nats_server: Server) -> AsyncIterator[BusUnderTest]:
    """JetStream on a server that the test may kill (`nats_server`)."""
    bus = await on_jetstream(nats_server.url)
    yield bus
    await bus.stack.aclose()
