"""A master that is killed, paused, or replaced while it lives: no acknowledged write is lost."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from gardenbus.common.adapters.redis.connection import RedisConnection
from gardenbus.common.adapters.redis.store import RedisStore
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Conflict, GardenbusError, Transient, Unavailable
from gardenbus.common.ports.store import RequestOrigin
from gardenbus.diagnostics.replication import assess_replicas, sentinel_facts
from gardenbus.relay.adapters.redis_outbox import RedisOutbox
from gardenbus.relay.adapters.redis_stats import replication_info
from tests.support.builders import a_project
from tests.support.clocks import FakeClock
from tests.support.eventually import eventually
from tests.support.redis_replicas import MASTER, RedisReplicas, requested, start_redis_replicas

WRITERS = 4
READ_TOGETHER = 1000
"""Objects read in one round trip: far from what takes as long as a connection waits."""


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[RedisReplicas]:
    with ExitStack() as stack:
        yield start_redis_replicas(stack, tmp_path)


class Landscape:
    """A relay that opens the store of whichever master there is, and writers that remember what was acknowledged."""

    def __init__(self, servers: RedisReplicas, url: str, *, replicas: int = 1) -> None:
        self.servers = servers
        self._url = url
        self._replicas = replicas
        self.connections: list[RedisConnection] = []
        self.acknowledged: list[ObjectKey] = []
        self.rejected = 0

    def connection(self, url: str | None = None) -> RedisConnection:
        made = RedisConnection(url or self._url, replicas=self._replicas)
        self.connections.append(made)
        return made

    async def lead(self) -> None:
        """Open the store whenever it is closed, as a relay does."""
        outbox = RedisOutbox(self.connection(), FakeClock(), leader="relay")
        while True:
            with suppress(Transient):
                leadership = await outbox.lead(86_400)
                if leadership.leading and not leadership.is_open:
                    await outbox.open(0, 0)
            await asyncio.sleep(0.1)

    async def write(self, writer: int) -> None:
        """Create one object after the other; each again until it is acknowledged."""
        store = RedisStore(self.connection(), FakeClock())
        for number in range(1_000_000):
            document = a_project(f"n-{writer}-{number}")
            while True:
                try:
                    created: Any = await store.create(document)
                except Conflict:
                    break  # an attempt before was carried out: whether it counts is not known
                except GardenbusError:
                    self.rejected += 1
                    await asyncio.sleep(0.05)
                else:
                    self.acknowledged.append(created.key)
                    break

    async def goes_on(self) -> None:
        """Return when more is acknowledged than now."""
        before = len(self.acknowledged)

        async def more() -> None:
            assert len(self.acknowledged) > before + 50

        await eventually(more)

    async def lost(self) -> list[str]:
        """What was acknowledged and is not in the store of the present master."""
        store = RedisStore(self.connection(), FakeClock())

        async def read() -> list[str]:
            written = tuple(self.acknowledged)
            found: list[Any] = []
            try:
                for start in range(0, len(written), READ_TOGETHER):
                    found += await asyncio.gather(*map(store.get, written[start : start + READ_TOGETHER]))
            except Unavailable as error:
                raise AssertionError from error
            return [key.name for key, each in zip(written, found, strict=True) if each is None]

        return await eventually(read)


@asynccontextmanager
async def written_to(servers: RedisReplicas, url: str, *, replicas: int = 1) -> AsyncGenerator[Landscape]:
    async def complete() -> None:
        assert await asyncio.to_thread(servers.are_complete)

    await eventually(complete)
    landscape = Landscape(servers, url, replicas=replicas)
    running = [asyncio.create_task(landscape.lead())]
    running += [asyncio.create_task(landscape.write(number)) for number in range(WRITERS)]
    try:
        await landscape.goes_on()
        yield landscape
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        for connection in landscape.connections:
            await connection.close()


@pytest.mark.long
async def test_no_acknowledged_write_is_lost_when_a_replica_is_promoted_while_the_master_lives(
    servers: RedisReplicas,
) -> None:
    async with written_to(servers, servers.url) as landscape:
        for _ in range(2):
            old = servers.primary()
            await asyncio.to_thread(requested, servers.sentinels[0], "SENTINEL", "FAILOVER", MASTER)

            async def moved(old: Any = old) -> None:
                assert await asyncio.to_thread(servers.primary) is not old

            await eventually(moved)
            await landscape.goes_on()

            async def complete() -> None:
                assert await asyncio.to_thread(servers.are_complete)

            await eventually(complete)
        assert await landscape.lost() == []
        assert landscape.rejected > 0


@pytest.mark.long
async def test_no_acknowledged_write_is_lost_when_the_master_is_killed(servers: RedisReplicas) -> None:
    async with written_to(servers, servers.url) as landscape:
        old = servers.primary()
        await asyncio.to_thread(old.kill)

        async def moved() -> None:
            assert await asyncio.to_thread(servers.primary) is not old

        await eventually(moved, every=0.02)
        await landscape.goes_on()
        assert await landscape.lost() == []


async def test_a_master_that_was_paused_over_its_deposition_takes_no_write_afterwards(servers: RedisReplicas) -> None:
    async with written_to(servers, servers.url) as landscape:
        old = servers.primary()
        old.pause()

        async def moved() -> None:
            assert await asyncio.to_thread(servers.primary) is not old

        await eventually(moved)
        await landscape.goes_on()
        old.resume()
        await landscape.goes_on()
        assert await landscape.lost() == []


@pytest.mark.long
async def test_nobody_reads_from_a_master_that_was_paused_over_its_deposition(servers: RedisReplicas) -> None:
    """Its replicas have left, and so it accepts no write (min-replicas-to-write), that of its closing included."""
    async with written_to(servers, servers.url) as landscape:
        old, stored = servers.primary(), landscape.acknowledged[0]
        reader = RedisStore(landscape.connection(f"redis://127.0.0.1:{old.port}/0"), FakeClock())
        assert await reader.get(stored) is not None
        old.pause()

        async def moved() -> None:
            assert await asyncio.to_thread(servers.primary) is not old

        await eventually(moved)
        await landscape.goes_on()
        old.resume()

        async def is_closed() -> None:
            with pytest.raises(Unavailable, match=r"fenced|EXECABORT"):  # it asks the other versions, which is a write
                await reader.get(stored)

        await eventually(is_closed)
        assert (await asyncio.to_thread(requested, old, "ROLE"))[0] == b"master", "Sentinel was first"


async def test_a_server_of_a_list_that_is_promoted_by_hand_closes_the_one_before(servers: RedisReplicas) -> None:
    async with written_to(servers, servers.listed_url) as landscape:
        for sentinel in servers.sentinels:  # nobody but the operator promotes here
            sentinel.kill()
        old, promoted, other = servers.servers
        await asyncio.to_thread(requested, promoted, "REPLICAOF", "NO", "ONE")
        await asyncio.to_thread(requested, other, "REPLICAOF", "127.0.0.1", str(promoted.port))
        rejected_before = landscape.rejected

        async def rejects() -> None:
            assert landscape.rejected > rejected_before + 2 * WRITERS

        await eventually(rejects)
        await asyncio.to_thread(requested, old, "REPLICAOF", "127.0.0.1", str(promoted.port))
        await landscape.goes_on()
        assert await landscape.lost() == []


async def test_a_write_counts_only_when_as_many_replicas_as_required_have_it(servers: RedisReplicas) -> None:
    async with written_to(servers, servers.url) as landscape:
        paused, other = servers.replicas()
        paused.pause()
        other.kill()
        rejected_before, acknowledged = landscape.rejected, 0

        async def rejects() -> None:
            nonlocal rejected_before, acknowledged
            now = len(landscape.acknowledged)
            is_quiet, acknowledged = now == acknowledged, now
            assert is_quiet
            assert landscape.rejected > rejected_before + WRITERS

        await eventually(rejects, every=1.5)
        paused.resume()
        await landscape.goes_on()
        assert await landscape.lost() == []


@pytest.mark.parametrize("outcome", ["gone", "superseded", "read"])
async def test_what_another_has_written_and_no_replica_has_decides_nothing(
    servers: RedisReplicas, outcome: str
) -> None:
    """A master that is cut off from its replicas still shows what was written there, until another is promoted."""
    async with written_to(servers, servers.url) as landscape:
        writer, other = (RedisStore(landscape.connection(), FakeClock()) for _ in range(2))
        base: Any = await other.get(landscape.acknowledged[0])
        earlier, later = RequestOrigin(1, 6), RequestOrigin(1, 7)
        for replica in servers.replicas():
            replica.pause()
        with pytest.raises(Unavailable):
            await (
                writer.update(base, base.document(), origin=later) if outcome == "superseded" else writer.delete(base)
            )
        if outcome == "read":
            assert await other.get(base.key) is None
        decisions = {
            "gone": lambda: other.delete(base),
            "superseded": lambda: other.update(base, base.document(), origin=earlier),
            "read": other.confirm_reads,
        }
        with pytest.raises(Unavailable, match="Redis replicas"):
            await decisions[outcome]()


async def test_writes_go_on_while_one_of_two_replicas_is_away(servers: RedisReplicas) -> None:
    async with written_to(servers, servers.url) as landscape:
        away = servers.replicas()[0]
        away.kill()
        await landscape.goes_on()
        await asyncio.to_thread(away.start)
        await landscape.goes_on()
        assert await landscape.lost() == []


async def test_a_sentinel_that_hangs_is_found(servers: RedisReplicas) -> None:
    connection = RedisConnection(servers.url)
    hanging, other = servers.sentinels[:2]
    try:

        async def found(state: str, *names: str) -> None:
            facts = {**await replication_info(connection), **sentinel_facts(await connection.sentinels())}
            first, *_ = assess_replicas(facts)
            assert (first.state, all(name in first.found for name in names)) == (state, True), first

        hanging.pause()
        await eventually(lambda: found("warning", f"1 of 3 do not respond (127.0.0.1:{hanging.port})"))
        other.pause()
        await eventually(lambda: found("failed", "2 of 3 do not respond"))
    finally:
        hanging.resume()
        other.resume()
        await connection.close()
