"""One store for each test, twice: in memory, and on Redis as its users (users.py)."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.servers import Server, start_redis
from tests.support.stores import StoreUnderTest, in_memory, on_redis_as_services


@pytest.fixture(scope="session")
def store_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A redis-server of the stores' tests' own: some load the function library anew, which fences every landscape."""
    server = start_redis(tmp_path_factory.mktemp("redis"))
    yield server
    server.stop()


@pytest.fixture(params=["memory", "redis"])
async def closed(request: pytest.FixtureRequest) -> AsyncIterator[StoreUnderTest]:
    """A store that no relay has opened."""
    if request.param == "memory":
        yield in_memory(is_open=False)
        return
    server: Server = request.getfixturevalue("store_server")
    async with on_redis_as_services(server.url) as kit:
        yield kit


@pytest.fixture
async def kit(closed: StoreUnderTest) -> StoreUnderTest:
    """A store that is open and empty, with a relay that leads."""
    await closed.open()
    return closed
