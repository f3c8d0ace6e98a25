"""Traffic on a cluster of NATS that goes on while its servers do not, and remembers what was acknowledged."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

from gardenbus.common.adapters.nats.jetstream import connect
from gardenbus.common.adapters.nats.streams import StreamSettings
from gardenbus.common.api.keys import Subjects
from gardenbus.common.errors import GardenbusError
from gardenbus.common.ports.bus import Message, ReplayDone, StreamMessage
from tests.support.eventually import eventually
from tests.support.nats_cluster import NatsCluster

SUBJECTS = Subjects("garden")


class Traffic:
    """A publisher of work and announcements, a consumer, and a follower, each on a connection of its own."""

    def __init__(self, cluster: NatsCluster) -> None:
        self.cluster = cluster
        self.tasks: list[asyncio.Task[None]] = []
        self.acknowledged: list[str] = []
        self.consumed: set[str] = set()
        self.announced: list[str] = []
        self.followed: set[str] = set()

    def bus(self, name: str) -> Any:
        """A connection to all servers."""
        return connect(self.cluster.url, name, streams=StreamSettings(replicas=len(self.cluster.servers)))

    async def publish(self) -> None:
        """Publish work, one by one."""
        async with self.bus("publisher") as bus:
            for number in range(1_000_000):
                name = f"n{number}"
                with suppress(GardenbusError):
                    await bus.publish(Message(f"garden.report.seed-a.shoot.ns.{name}", b"{}"))
                    self.acknowledged.append(name)
                await asyncio.sleep(0.01)

    async def announce(self) -> None:
        """Publish batches, as a relay does."""
        stream = SUBJECTS.stream("OBJECTS")
        async with self.bus("relay") as bus:
            highest = 0
            for number in range(1_000_000):
                name = f"n{number}"
                with suppress(GardenbusError):
                    last = (await bus.position(stream)).sequence
                    assert last >= highest, "a server that does not lead the stream has answered"
                    highest = last
                    messages = [Message(f"garden.changed.{kind}.ns.{name}", b"{}") for kind in ("seed", "shoot")]
                    await bus.publish_batch(stream, messages, expected_last_sequence=last)
                    self.announced.append(name)
                await asyncio.sleep(0.02)

    async def consume(self) -> None:
        """Take work, and acknowledge it."""
        async with self.bus("apiserver") as bus:
            queue = await bus.work_queue(SUBJECTS.stream("REPORTS"), "apiserver", "garden.report.>")
            while True:
                with suppress(GardenbusError):
                    works = await queue.fetch(100, 1.0)
                    self.consumed.update(work.message.subject.rpartition(".")[2] for work in works)
                    await queue.ack_many(works)
                await asyncio.sleep(0.01)

    async def follow(self) -> None:
        """Read announcements, and go on from the last one."""
        async with self.bus("informer") as bus:
            last = 0
            while True:
                with suppress(GardenbusError):
                    stream = SUBJECTS.stream("OBJECTS")
                    async with bus.follow(stream, ["garden.changed.>"], after_sequence=last) as follower:
                        async for event in follower:
                            if isinstance(event, StreamMessage):
                                self.followed.add(event.subject.rpartition(".")[2])
                                last = max(last, event.sequence)
                            else:
                                assert isinstance(event, ReplayDone)
                await asyncio.sleep(0.1)

    async def has_settled(self) -> None:
        """Return when all that was acknowledged has arrived, and more is."""
        count, announced = len(self.acknowledged) + 20, len(self.announced) + 20

        async def arrived() -> None:
            for task in self.tasks:
                assert not task.done() or task.result()
            assert len(self.acknowledged) > count
            assert len(self.announced) > announced
            assert set(self.acknowledged[:count]) <= self.consumed
            assert set(self.announced[:announced]) <= self.followed

        await eventually(arrived)


@asynccontextmanager
async def traffic(cluster: NatsCluster) -> AsyncGenerator[Traffic]:
    """Traffic that has begun, with a copy of each stream at each server."""
    running = Traffic(cluster)
    running.tasks = tasks = [
        asyncio.create_task(each()) for each in (running.publish, running.announce, running.consume, running.follow)
    ]
    try:
        await running.has_settled()
        await current(cluster)
        yield running
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def current(cluster: NatsCluster) -> None:
    """Wait until all copies are there."""

    async def are_current() -> None:
        assert await asyncio.to_thread(cluster.are_current)

    await eventually(are_current)
