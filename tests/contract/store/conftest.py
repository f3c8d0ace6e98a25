"""One store for each test, twice: in memory and on Redis."""

from collections.abc import AsyncIterator

import pytest

from tests.support.servers import Server
from tests.support.stores import StoreUnderTest, in_memory, on_redis


@pytest.fixture(params=["memory", "redis"])
async def closed(request: pytest.FixtureRequest) -> AsyncIterator[StoreUnderTest]:
    """A store that no relay has opened."""
    if request.param == "memory":
        yield in_memory(is_open=False)
        return
    server: Server = request.getfixturevalue("shared_redis_server")
    kit = on_redis(server.url)
    yield kit
    await kit.store.close()


@pytest.fixture
async def kit(closed: StoreUnderTest) -> StoreUnderTest:
    """A store that is open and empty, with a relay that leads."""
    await closed.open()
    return closed
