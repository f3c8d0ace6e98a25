"""The bus under test, on JetStream or in memory, with what a test needs around it."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from gardenbus.common.adapters.nats.jetstream import JetStreamBus, connect
from gardenbus.common.adapters.nats.streams import StreamSettings
from gardenbus.common.api.keys import Subjects
from gardenbus.common.ports.bus import (
    Bus,
    Follower,
    FollowEvent,
    Message,
    QueueMessage,
    ReplayDone,
    StreamMessage,
    WorkQueue,
)
from gardenbus.common.runtime.clock import SystemClock
from tests.support.eventually import HANG_SECONDS
from tests.support.memory.bus import MemoryBus, MemoryServer

LEASE_SECONDS = 1.0
_prefixes = (f"test{number}" for number in itertools.count())


@dataclass
class BusUnderTest:
    """A bus, a second connection to the same one, and short cuts."""

    name: str
    bus: Bus
    another: Bus
    subjects: Subjects
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    def stream(self, name: str) -> str:
        """A stream's name in this landscape."""
        return self.subjects.stream(name)

    def work(self, name: str, controller: str = "look") -> str:
        """A place in a queue."""
        return self.subjects.queue(controller, "ns", name)

    def change(self, name: str) -> str:
        """Where a shoot's changes are announced."""
        return f"{self.subjects.prefix}.changed.shoot.ns.{name}"

    async def queue(self, controller: str = "look", bus: Bus | None = None) -> WorkQueue:
        """A controller's queue."""
        return await (bus or self.bus).work_queue(self.stream("QUEUES"), controller, self.subjects.queue_of(controller))

    async def counted(self, number: int, controller: str = "look") -> None:
        """Wait until the server has counted what waits for a controller; JetStream does that after acknowledging."""
        if not isinstance(self.bus, JetStreamBus):
            return
        bus = self.bus

        async def has_counted() -> bool:
            return any(each.name == controller and each.pending == number for each in (await bus.stats()).consumers)

        await until_true(has_counted)

    async def is_in_hand_alone(self, queue: WorkQueue, work: QueueMessage) -> None:
        """Work is neither ended nor delivered to anybody else, until it is ended itself."""
        assert await queue.fetch(1, 0.3) == []
        assert list(await self.bus.subjects(self.stream("QUEUES"), ">")) == [work.message.subject]
        await work.ack()
        await self.until_done()

    async def until_done(self) -> None:
        """Wait until all work is ended."""

        async def nothing_is_left() -> bool:
            return not await self.bus.subjects(self.stream("QUEUES"), ">")

        await until_true(nothing_is_left)

    async def recreate(self, name: str) -> None:
        """Lose a stream with all that is in it, on connections that stand."""
        if isinstance(self.bus, MemoryBus):
            self.bus.server.recreate(self.stream(name))
        else:
            await self.another.request(f"$JS.API.STREAM.DELETE.{self.stream(name)}", b"")
            await self.bus.ensure_streams()

    async def announce(self, *names: str, body: bytes = b"{}") -> int:
        """Announce changes of shoots, in one batch."""
        position = await self.bus.position(self.stream("OBJECTS"))
        return await self.bus.publish_batch(
            self.stream("OBJECTS"),
            [Message(self.change(name), body) for name in names],
            expected_last_sequence=position.sequence,
        )


async def in_memory() -> BusUnderTest:
    """Two connections to a server in memory."""
    prefix, clock = next(_prefixes), SystemClock()
    server = MemoryServer(clock, prefix=prefix, lease_seconds=LEASE_SECONDS)
    return BusUnderTest("memory", MemoryBus(clock, server=server), MemoryBus(clock, server=server), Subjects(prefix))


async def on_jetstream(url: str, prefix: str | None = None) -> BusUnderTest:
    """Two connections to a nats-server, below a prefix of their own; only the first groups what it publishes.

    Close the stack at the end.
    """
    prefix, stack = prefix or next(_prefixes), AsyncExitStack()
    settings = StreamSettings(lease_seconds=LEASE_SECONDS)
    bus = await stack.enter_async_context(connect(url, "test", prefix, streams=settings, syncs_always=True))
    another = await stack.enter_async_context(connect(url, "another", prefix, streams=settings))
    return BusUnderTest("jetstream", bus, another, Subjects(prefix), stack)


def names(works: Sequence[QueueMessage]) -> list[str]:
    """The last words of the subjects of work."""
    return [work.message.subject.rpartition(".")[2] for work in works]


async def fetch_until(queue: WorkQueue, number: int) -> list[QueueMessage]:
    """Fetch until so much work is in hand."""
    works: list[QueueMessage] = []
    async with asyncio.timeout(HANG_SECONDS):
        while len(works) < number:
            works.extend(await queue.fetch(number - len(works), 1.0))
    return works


async def replay(follower: Follower) -> list[StreamMessage]:
    """What the stream held when the follower started."""
    messages: list[StreamMessage] = []
    async with asyncio.timeout(HANG_SECONDS):
        async for event in follower:
            if isinstance(event, ReplayDone):
                break
            assert isinstance(event, StreamMessage), event
            messages.append(event)
    return messages


async def next_event(follower: Follower) -> FollowEvent:
    """The follower's next event."""
    async with asyncio.timeout(HANG_SECONDS):
        async for event in follower:
            return event
    raise AssertionError("the follower ended")


async def until_true(check: Callable[[], Awaitable[bool]]) -> None:
    """Ask until the answer is yes."""
    async with asyncio.timeout(HANG_SECONDS):
        while not await check():
            await asyncio.sleep(0.02)
