"""NATS in a cluster of five, with five copies of each stream: two servers may go at once."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from gardenbus.common.adapters.nats.jetstream import JetStreamBus, connect
from gardenbus.common.adapters.nats.streams import StreamSettings
from gardenbus.common.api.keys import Subjects
from tests.support.eventually import eventually
from tests.support.nats_cluster import NAMES, NatsCluster, start_nats_cluster
from tests.support.nats_traffic import SUBJECTS, current, traffic


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsCluster]:
    with ExitStack() as stack:
        yield start_nats_cluster(stack, tmp_path_factory.mktemp("cluster"), size=5)


async def copies(bus: JetStreamBus, prefix: str) -> dict[str, tuple[int, int]]:
    """Copies of each stream: as many as are configured, and servers that have one."""
    found: dict[str, tuple[int, int]] = {}
    for name in NAMES:
        info: Any = await bus._call(f"STREAM.INFO.{Subjects(prefix).stream(name)}")  # pyright: ignore[reportPrivateUsage]
        found[name] = int(info["config"]["num_replicas"]), 1 + len(info["cluster"].get("replicas", ()))
    return found


async def copies_of_consumer(bus: JetStreamBus, stream: str) -> int:
    info: Any = await bus._call(f"CONSUMER.INFO.{stream}.apiserver")  # pyright: ignore[reportPrivateUsage]
    return 1 + len(info["cluster"].get("replicas", ()))


async def test_streams_are_made_with_five_copies_or_get_five_and_consumers_follow(cluster: NatsCluster) -> None:
    streams = {each: Subjects("copies").stream(each) for each in ("REPORTS", "REQUESTS")}
    subjects = {"REPORTS": "copies.report.>", "REQUESTS": "copies.apply"}
    async with connect(cluster.url, "first", "copies", streams=StreamSettings(replicas=3)) as bus:
        assert set((await copies(bus, "copies")).values()) == {(3, 3)}
        for name, stream in streams.items():
            await bus.work_queue(stream, "apiserver", subjects[name])
            assert await copies_of_consumer(bus, stream) == 3
    async with connect(cluster.url, "second", "copies", streams=StreamSettings(replicas=5)) as bus:

        async def have_grown() -> None:
            assert set((await copies(bus, "copies")).values()) == {(5, 5)}
            for stream in streams.values():
                assert await copies_of_consumer(bus, stream) == 5

        await eventually(have_grown)
    async with connect(cluster.url, "new", "made", streams=StreamSettings(replicas=5)) as bus:
        assert set((await copies(bus, "made")).values()) == {(5, 5)}
        await bus.work_queue(Subjects("made").stream("REPORTS"), "apiserver", "made.report.>")
        assert await copies_of_consumer(bus, Subjects("made").stream("REPORTS")) == 5


@pytest.mark.long
async def test_nothing_is_lost_when_two_of_five_servers_are_killed_at_once_and_come_back(cluster: NatsCluster) -> None:
    async with traffic(cluster) as running:
        first = await asyncio.to_thread(cluster.leader_of, SUBJECTS.stream("REPORTS"))
        second = await asyncio.to_thread(cluster.leader_of, SUBJECTS.stream("OBJECTS"))
        if second is first:
            second = next(each for each in cluster.servers if each is not first)
        await asyncio.gather(*(asyncio.to_thread(each.kill) for each in (first, second)))
        await running.has_settled()
        await asyncio.gather(*(asyncio.to_thread(each.start) for each in (first, second)))
        await current(cluster)
        await running.has_settled()
