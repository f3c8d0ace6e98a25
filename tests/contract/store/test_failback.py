"""A planned failover and back: the first master's library still remembers who led there, and what was opened."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gardenbus.common.errors import Conflict
from gardenbus.common.ports.bus import StreamPosition
from tests.support.builders import a_project
from tests.support.eventually import eventually
from tests.support.redis_replicas import requested
from tests.support.servers import Server, start_redis
from tests.support.stores import StoreUnderTest, on_redis

PREFIX = "failback"


@pytest.fixture
async def servers(tmp_path: Path) -> AsyncIterator[tuple[Server, Server]]:
    """A master and its replica."""
    first = start_redis(tmp_path / "first")
    second = start_redis(tmp_path / "second", more={"replicaof": f"127.0.0.1 {first.port}"})
    yield first, second
    first.kill()
    second.kill()


async def handed_over(master: Server, replica: Server) -> None:
    """The replica is the master, with all that the old one had, which follows it without reading everything anew."""
    await eventually(lambda: is_linked(replica))
    syncs = full_syncs(replica)
    requested(master, "FAILOVER", "TO", "127.0.0.1", str(replica.port))
    await eventually(lambda: is_master(replica))
    await eventually(lambda: is_linked(master))
    assert full_syncs(replica) == syncs


async def is_linked(replica: Server) -> None:
    assert b"master_link_status:up" in requested(replica, "INFO", "replication")


async def is_master(server: Server) -> None:
    assert requested(server, "ROLE")[0] == b"master"


def full_syncs(server: Server) -> bytes:
    return next(line for line in requested(server, "INFO", "stats").splitlines() if line.startswith(b"sync_full:"))


@pytest.fixture
async def kits(servers: tuple[Server, Server]) -> AsyncIterator[tuple[StoreUnderTest, StoreUnderTest]]:
    """The same relay's lines to both."""
    first, second = (on_redis(server.url, PREFIX) for server in servers)
    yield first, second
    for kit in (first, second):
        assert kit.connection is not None
        await kit.connection.close()


async def test_a_lead_ends_where_another_master_was_opened_meanwhile(
    servers: tuple[Server, Server], kits: tuple[StoreUnderTest, StoreUnderTest]
) -> None:
    """What it had under way would note there what holds elsewhere, and announce anew what was trimmed elsewhere."""
    first, second = kits
    await first.open()
    await first.created(a_project("before"))
    await handed_over(*servers)
    await second.open()
    await second.created(a_project("elsewhere"))
    positions = await second.outbox.positions()
    await handed_over(*reversed(servers))

    with pytest.raises(Conflict):
        await first.outbox.head(10)
    with pytest.raises(Conflict):
        await first.outbox.trim(None, {"OBJECTS": StreamPosition(7, 7)})
    assert await first.outbox.positions() == positions

    leadership = await first.outbox.lead(60)
    assert (leadership.leading, leadership.is_continued, leadership.is_open) == (True, False, False)
    await first.open()
    assert {entry.key.name for entry in await first.changes()} == {"before", "elsewhere"}
    assert (await first.outbox.lead(60)).is_continued
