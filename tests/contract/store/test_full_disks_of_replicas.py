"""A full disk among replicas: of one of them, and of the primary. Nothing acknowledged is lost, and doctor says it."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from gardenbus.common.adapters.redis.connection import RedisConnection
from gardenbus.common.errors import Unavailable
from gardenbus.diagnostics.replication import assess_replicas, sentinel_facts
from gardenbus.relay.adapters.redis_stats import replication_info
from tests.contract.store.test_failover import written_to
from tests.support.disks import SmallDisk, small_disk
from tests.support.eventually import eventually
from tests.support.redis_replicas import RedisReplicas, start_redis_replicas

KEEPS_ITS_ROLE: Mapping[str, str] = {"rename-command": 'SLAVEOF ""'}
"""Sentinel cannot make a replica of such a server: its clients have to leave it by themselves."""


class Site(NamedTuple):
    """Servers, each with a small disk of its own; the first is the primary."""

    servers: RedisReplicas
    disks: list[SmallDisk]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def site(stack: ExitStack, tmp_path: Path) -> Callable[..., Site]:
    def start(appendfsync: str, **of_primary: str) -> Site:
        disks = [stack.enter_context(small_disk(tmp_path / f"redis-{number}", megabytes=48)) for number in range(3)]
        more = {name.replace("_", "-"): value for name, value in of_primary.items()}
        return Site(start_redis_replicas(stack, tmp_path, appendfsync=appendfsync, of_primary=more), disks)

    return start


async def until_doctor_reports(url: str, state: str, text: str) -> None:
    """Wait for the finding about replicas, as who connects now has it."""

    async def reported() -> None:
        connection = RedisConnection(url)
        try:
            info = await replication_info(connection)
            facts = {**info, **sentinel_facts(await connection.sentinels(), connection.other_servers)}
        except Unavailable as error:
            raise AssertionError(error.message) from error
        finally:
            await connection.close()
        found = {finding.check: finding for finding in assess_replicas(facts)}
        assert (found["redis replicas"].state, text in found["redis replicas"].found) == (state, True), found

    await eventually(reported)


@pytest.mark.parametrize("appendfsync", ["no", "always"])
async def test_a_replica_whose_disk_is_full_ends_and_is_named_while_writes_go_on(
    site: Callable[..., Site], appendfsync: str
) -> None:
    servers, disks = site(appendfsync)
    full = servers.replicas()[0]
    disk = disks[servers.servers.index(full)]
    async with written_to(servers, servers.url) as landscape:
        await until_doctor_reports(servers.url, "ok", "online")
        disk.fill()
        assert full.process is not None
        await asyncio.to_thread(full.process.wait, 20)
        await landscape.goes_on()
        await until_doctor_reports(servers.url, "warning", f"127.0.0.1:{full.port}: not connected")

        disk.free()
        await asyncio.to_thread(full.restart)
        await until_doctor_reports(servers.url, "ok", "online")
        await landscape.goes_on()
        assert await landscape.lost() == []


@pytest.mark.parametrize("of_primary", [{"appendfsync": "always"}, {"appendfsync": "no", **KEEPS_ITS_ROLE}])
async def test_a_primary_whose_disk_is_full_is_replaced_and_left_while_its_disk_is_full(
    site: Callable[..., Site], of_primary: Mapping[str, str]
) -> None:
    servers, disks = site(**of_primary)
    old = servers.primary()
    async with written_to(servers, servers.url) as landscape:
        disks[0].fill()

        async def replaced() -> None:
            assert await asyncio.to_thread(servers.primary) is not old

        await eventually(replaced)
        await landscape.goes_on()
        assert await landscape.lost() == []
