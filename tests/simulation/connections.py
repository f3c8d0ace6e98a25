"""Connections of an actor to the twins of Redis and NATS: every call goes through the network.

Each class has the methods of its port. What a twin answers at once is one request; a fetch that finds nothing waits and
asks again when something in the stream has changed; a followed message arrives when the network delivers it.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from typing import Any

from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.bus import Follower, FollowEvent, Message, QueueMessage, StreamMessage
from gardenbus.relay.ports.outbox import IndexedUpTo
from tests.simulation.actor import Actor
from tests.simulation.event_loop import SimulationLoop
from tests.simulation.network import Network
from tests.support.memory.bus import MemoryBus, MemoryFollower, MemoryQueue, MemoryQueueMessage
from tests.support.memory.outbox import MemoryOutbox
from tests.support.memory.store import MemoryStore

NATS, REDIS = "nats", "redis"
START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class SimulationClock:
    """A `ports.clock.Clock` on the time of the loop."""

    def __init__(self, loop: SimulationLoop) -> None:
        self._loop = loop

    def now(self) -> datetime:
        return START + timedelta(seconds=self._loop.now)

    def monotonic(self) -> float:
        return self._loop.now

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _Connection:
    """Every coroutine method of a twin, through the network."""

    def __init__(self, actor: Actor, network: Network, twin: Any, server: str) -> None:
        self._actor, self._network, self._twin, self._server = actor, network, twin, server

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self._twin, name)

        async def called(*args: Any, **named: Any) -> Any:
            return await self._network.call(self._actor, self._server, name, lambda: method(*args, **named))

        self.__dict__[name] = called
        return called


class SimulatedStore(_Connection):
    """A `ports.store.Store`."""

    def __init__(self, actor: Actor, network: Network, store: MemoryStore) -> None:
        super().__init__(actor, network, store, REDIS)

    async def close(self) -> None:
        """Nothing to release."""


class SimulatedOutbox(_Connection):
    """A `ports.outbox.Outbox`."""

    def __init__(self, actor: Actor, network: Network, outbox: MemoryOutbox) -> None:
        super().__init__(actor, network, outbox, REDIS)

    async def wait(self, seconds: float) -> None:
        """Wait until there is an entry."""
        await self._twin.wait(seconds)

    async def index_older(self, after: int) -> IndexedUpTo:
        """Likewise."""
        return IndexedUpTo(after, is_end=True)

    async def count_older(self) -> bool:
        """Nothing to do, and no choice point: there is no older version."""
        return False


class SimulatedQueueMessage:
    """A message in flight; the acknowledgement is written, and nobody waits for it."""

    def __init__(self, actor: Actor, network: Network, inner: MemoryQueueMessage) -> None:
        self._actor, self._network, self.inner = actor, network, inner
        self.message: StreamMessage = inner.message
        self.deliveries = inner.deliveries
        self.queued_ms = inner.queued_ms

    @property
    def is_held_over(self) -> bool:
        return self.inner.is_held_over

    async def ack(self) -> None:
        self._network.post(self._actor, NATS, "ack", self.inner.ack)

    async def release(self) -> None:
        self._network.post(self._actor, NATS, "release", self.inner.release)

    async def in_progress(self) -> None:
        self._network.post(self._actor, NATS, "in_progress", self.inner.in_progress)


class SimulatedQueue:
    """A `ports.bus.WorkQueue`."""

    def __init__(self, bus: "SimulatedBus", stream: str, queue: MemoryQueue) -> None:
        self._bus, self._stream, self._queue = bus, stream, queue

    @property
    def depth(self) -> int:
        return self._queue.depth

    async def fetch(self, limit: int, wait_seconds: float) -> Sequence[QueueMessage]:
        """See the port."""
        bus, server = self._bus, self._bus.twin.server
        deadline = bus.loop.now + wait_seconds
        while True:
            changed = server.waiter(self._stream)
            try:
                if self._queue.has_ready() or wait_seconds <= 0:
                    found = await bus.call(f"fetch {self._stream}", lambda: self._queue.fetch(limit, 0))
                    if found or wait_seconds <= 0:
                        for each in found:
                            bus.on_delivery(self._stream, each)
                        return [SimulatedQueueMessage(bus.actor, bus.network, each) for each in found]
                if bus.loop.now >= deadline:
                    return ()
                timer = bus.loop.call_at(deadline, _finish, changed)
                await changed
                timer.cancel()
            finally:
                server.forget_waiter(self._stream, changed)

    async def ack_many(self, works: Sequence[QueueMessage]) -> None:
        """Acknowledge them in one write, which may arrive in part."""
        inner = [work.inner for work in works if isinstance(work, SimulatedQueueMessage)]

        async def ack_all() -> None:
            for each in inner:
                await each.ack()

        if inner:
            self._bus.network.post(self._bus.actor, NATS, f"ack {len(inner)}", ack_all)


class SimulatedFollower:
    """A `ports.bus.Follower`: each event takes its time."""

    def __init__(self, bus: "SimulatedBus", stream: str, follower: MemoryFollower) -> None:
        self._bus, self._stream, self._follower = bus, stream, follower

    @property
    def silent_seconds(self) -> float:
        return self._follower.silent_seconds

    def __aiter__(self) -> AsyncIterator[FollowEvent]:
        return self._events()

    async def _events(self) -> AsyncIterator[FollowEvent]:
        async for event in self._follower:
            with contextlib.suppress(Unavailable):  # the connection was lost behind it: what has arrived counts
                await self._bus.network.call(self._bus.actor, "", f"followed {self._stream}", _nothing)
            yield event


def _note_nothing(_stream: str, _message: QueueMessage) -> None:
    return


class SimulatedBus:
    """A `ports.bus.Bus`."""

    def __init__(self, actor: Actor, network: Network, twin: MemoryBus, loop: SimulationLoop) -> None:
        self.on_delivery: Callable[[str, QueueMessage], None] = _note_nothing
        self.actor, self.network, self.twin, self.loop = actor, network, twin, loop

    async def call(self, label: str, work: Callable[[], Any], *, is_repeatable: bool = False) -> Any:
        """Have the server do something."""
        return await self.network.call(self.actor, NATS, label, work, is_repeatable=is_repeatable)

    async def publish(self, message: Message, *, expected_subject_sequence: int | None = None) -> int:
        """See the port."""
        work = lambda: self.twin.publish(message, expected_subject_sequence=expected_subject_sequence)  # noqa: E731
        return await self.call(f"publish {message.subject}", work, is_repeatable=expected_subject_sequence is None)

    async def publish_many(self, messages: Sequence[Message]) -> None:
        """See the port; each travels on its own."""
        results = await asyncio.gather(*(self.publish(each) for each in messages), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def publish_batch(
        self, stream: str, messages: Sequence[Message], *, expected_last_sequence: int, whole: bool = False
    ) -> int:
        """See the port."""
        return await self.call(
            f"publish {len(messages)} on {stream}",
            lambda: self.twin.publish_batch(
                stream, messages, expected_last_sequence=expected_last_sequence, whole=whole
            ),
        )

    async def work_queue(
        self, stream: str, consumer: str, subject_filter: str, *, fetch_bytes: int = 0
    ) -> SimulatedQueue:
        """See the port."""
        queue = await self.call(
            "work_queue", lambda: self.twin.work_queue(stream, consumer, subject_filter, fetch_bytes=fetch_bytes)
        )
        return SimulatedQueue(self, stream, queue)

    def follow(
        self,
        stream: str,
        subject_filters: Sequence[str],
        *,
        after_sequence: int | None = None,
        last_per_subject: bool = False,
        headers_only: bool = False,
        max_silent_seconds: float = 1800.0,
    ) -> AbstractAsyncContextManager[Follower]:
        """See the port."""

        @contextlib.asynccontextmanager
        async def opened() -> AsyncGenerator[Follower, None]:
            follower = await self.call(
                f"follow {stream}",
                lambda: MemoryFollower(
                    self.twin,
                    stream,
                    subject_filters,
                    after_sequence=after_sequence,
                    last_per_subject=last_per_subject,
                    headers_only=headers_only,
                ),
            )
            try:
                yield SimulatedFollower(self, stream, follower)
            finally:
                follower.close()

        return opened()

    def notify(self, subject: str, body: bytes) -> None:
        """See the port; it travels like anything else, and nobody learns whether it arrived."""

        async def sent() -> None:
            with contextlib.suppress(Unavailable):
                await self.call(f"notify {subject}", lambda: self.twin.notify(subject, body))

        if self.actor.is_alive:
            self.actor.spawn(sent())

    async def subscribe(self, subject: str, group: str, callback: Callable[[bytes], None]) -> None:
        """See the port."""

        def received(body: bytes) -> None:
            if self.actor.is_alive:
                callback(body)

        await self.call("subscribe", lambda: self.twin.subscribe(subject, group, received))

    def on_reconnect(self, callback: Callable[[], Any]) -> None:
        """See the port."""
        self.actor.when_reconnected.append(callback)

    @property
    def connected(self) -> bool:
        """See the port."""
        return True

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self.twin, name)

        async def called(*args: Any, **named: Any) -> Any:
            return await self.call(name, lambda: method(*args, **named))

        self.__dict__[name] = called
        return called


def connected_outbox(actor: Actor, network: Network, store: MemoryStore) -> SimulatedOutbox:
    """An outbox whose relay has the name of its actor's life."""
    return SimulatedOutbox(actor, network, MemoryOutbox(store, leader=f"{actor.name} {actor.life}"))


async def _nothing() -> None:
    return


def _finish(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
