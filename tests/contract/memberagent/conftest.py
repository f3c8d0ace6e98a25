"""A landscape for each test, on one nats-server for all."""

import itertools
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.gardenlets import Garden, a_garden
from tests.support.servers import Server

_prefixes = (f"member{number}" for number in itertools.count())


@pytest.fixture
async def garden(shared_nats_server: Server, tmp_path: Path) -> AsyncIterator[Garden]:
    """A landscape without agents yet."""
    async with a_garden(shared_nats_server.url, next(_prefixes), tmp_path / "state") as landscape:
        yield landscape
