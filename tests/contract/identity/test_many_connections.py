"""All agents of a large landscape come in again after a restart of NATS, each by its certificate."""

import asyncio
from pathlib import Path

import pytest

from gardenbus.common.api.identity.principals import Principal
from tests.support.eventually import eventually
from tests.support.identities import guarded

AGENTS = 300
"""1,000 in docs/performance.md; each is two sockets of this process, of which it may have 1,024 in some places."""


# A connection that the server ended in the handshake, as on a busy machine, is closed when nats-py forgets it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.slow
async def test_all_gardenlets_are_back_a_minute_after_a_restart_of_nats(tmp_path: Path) -> None:
    async with guarded(tmp_path / "guarded") as landscape:
        agents = [await landscape.connect(Principal("gardenlet", f"seed-{number}")) for number in range(AGENTS)]
        before = {agent.server_id for agent in agents}
        await asyncio.to_thread(landscape.server.stop)
        await asyncio.to_thread(landscape.server.start)

        async def back() -> None:
            assert sum(agent.is_connected and agent.server_id not in before for agent in agents) == AGENTS

        await eventually(back, every=0.5)
