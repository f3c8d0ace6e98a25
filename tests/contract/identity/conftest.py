"""Agents' landscapes on a server that lets in only whom it knows."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from gardenbus.agent import connections
from gardenbus.common.adapters.nats import own_follower
from tests.support.gardenlets import Garden, a_garden
from tests.support.identities import Guarded, guarded


@pytest.fixture
async def agents_landscape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Guarded]:
    """A guarded server; what is missing is missed soon."""
    monkeypatch.setattr(own_follower, "HEARTBEAT_SECONDS", 0.5)
    monkeypatch.setattr(connections, "WATCH_SECONDS", 0.1)
    async with guarded(tmp_path, session=timedelta(seconds=5)) as landscape:
        yield landscape


@pytest.fixture
async def garden(agents_landscape: Guarded, tmp_path: Path) -> AsyncIterator[Garden]:
    """The services, each with credentials of its own; in the end the server has refused nothing."""
    server = agents_landscape.server
    async with a_garden(server.url, "garden", tmp_path / "state", agents_landscape.credentials) as garden:
        yield garden
    log = (server.directory / "server.log").read_text()
    assert not [line for line in log.splitlines() if "iolation - S" in line]
