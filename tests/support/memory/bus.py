"""Bus in memory: the same behaviour as on JetStream, without a server, for tests and simulations.

Several `MemoryBus` connections share a `MemoryServer`. `cut` and `mend` disconnect and reconnect one;
`MemoryServer.recreate` does to a stream what a lost disk does, `copy_streams` and `restore_streams` what an older copy
of the disk does.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from functools import lru_cache, partial
from typing import Any

import msgspec

from gardenbus.common.adapters.error_responses import error_response
from gardenbus.common.api.keys import Subjects
from gardenbus.common.errors import BadRequest, Conflict, NoResponse, NotFound, Unavailable
from gardenbus.common.ports.bus import (
    Follower,
    FollowEvent,
    FollowRestarted,
    Handler,
    Headers,
    Message,
    QueueMessage,
    ReplayDone,
    Request,
    ServiceIdentity,
    StreamMessage,
    StreamPosition,
)
from gardenbus.common.ports.clock import Clock
from tests.support.memory.streams import (
    MemoryConsumer,
    MemoryStream,
    StreamCopy,
    StreamKind,
    stream_kinds,
    subject_matches,
)

BATCH_LIMIT = 1000
_AWAY = "the bus is unreachable"


class MemoryServer:
    """The streams and services that connections share."""

    def __init__(self, clock: Clock, *, prefix: str = "garden", lease_seconds: float = 40.0) -> None:
        self.clock = clock
        self.services: list[tuple[str, Handler]] = []
        self.subscriptions: list[tuple[MemoryBus, str, str, Callable[[bytes], None]]] = []
        self._incarnation = int(clock.now().timestamp()) * 1_000_000_000
        self.starts = 1
        self.copies = 1
        self._waiters: dict[str, dict[asyncio.Future[None], None]] = {}  # in order: who waited first is woken first
        kinds = stream_kinds(Subjects(prefix), timedelta(seconds=lease_seconds))
        self._streams = {kind.name: self._made(kind, self._incarnation) for kind in kinds}
        self._stream_names: dict[str, str] = {}

    def stream(self, name: str) -> MemoryStream:
        """A stream, caught up with the clock. Raises NotFound."""
        if name not in self._streams:
            raise NotFound(f"there is no stream {name}")
        stream = self._streams[name]
        stream.tick()
        return stream

    def stream_of(self, subject: str) -> MemoryStream | None:
        """The stream that keeps a subject's messages."""
        if subject not in self._stream_names:
            kinds = (stream.kind for stream in self._streams.values())
            matching = (kind.name for kind in kinds if any(subject_matches(each, subject) for each in kind.filters))
            self._stream_names[subject] = next(matching, "")
        name = self._stream_names[subject]
        return self.stream(name) if name else None

    def recreate(self, name: str) -> None:
        """Lose a stream with all that is in it; followers notice."""
        self._incarnation += 1
        self.starts += 1
        self._streams[name] = self._made(self._streams[name].kind, self._incarnation)
        self.notify_waiters()

    def remove(self, name: str) -> None:
        """Lose a stream for good, as in a landscape of an older version."""
        del self._streams[name]
        self._stream_names.clear()

    def copy_streams(self) -> Mapping[str, StreamCopy]:
        """A copy of every stream, as a copy of the server's disk holds them."""
        return {name: stream.copied() for name, stream in self._streams.items()}

    def restore_streams(self, copies: Mapping[str, StreamCopy]) -> None:
        """Start again on an older copy of some streams: what was in flight is delivered again, followers resume."""
        self.starts += 1
        for name, copy in copies.items():
            stream = self._streams[name] = self._made(self._streams[name].kind, copy.created)
            stream.fill(copy)
        self.notify_waiters()

    def restart(self) -> None:
        """Start again on what is on disk."""
        self.restore_streams(self.copy_streams())

    def next_due_at(self) -> datetime | None:
        """Instant of the next expiry, timer or redelivery of any stream."""
        due = [at for stream in self._streams.values() if (at := stream.next_due_at()) is not None]
        return min(due, default=None)

    def tick(self) -> None:
        """Let happen what is due in any stream."""
        for stream in self._streams.values():
            stream.tick()

    def _made(self, kind: StreamKind, created: int) -> MemoryStream:
        return MemoryStream(kind, self.clock, created, partial(self._notify, kind.name))

    def notify_waiters(self) -> None:
        """Wake everybody who waits for messages."""
        for name in tuple(self._waiters):
            self._notify(name)

    def _notify(self, name: str) -> None:
        for future in self._waiters.get(name, ()):
            if not future.done():
                future.set_result(None)

    def waiter(self, name: str) -> "asyncio.Future[None]":
        """A future that is done when something in a stream changed; give it back with `forget_waiter`."""
        changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(name, {})[changed] = None
        return changed

    def forget_waiter(self, name: str, changed: "asyncio.Future[None]") -> None:
        """Wait no more."""
        self._waiters[name].pop(changed, None)

    async def wait(self, stream: MemoryStream, seconds: float | None) -> None:
        """Wait until something changed, something is due in a stream, or so many seconds went by."""
        due_at = stream.next_due_at()
        waits = [] if seconds is None else [seconds]
        if due_at is not None:
            waits.append(max(0.0, (due_at - self.clock.now()).total_seconds()))
        changed = self.waiter(stream.kind.name)
        timer = asyncio.ensure_future(self.clock.sleep(min(waits))) if waits else None
        try:
            await asyncio.wait([changed, *([timer] if timer else [])], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.forget_waiter(stream.kind.name, changed)
            if timer is not None:
                timer.cancel()


class MemoryQueueMessage:
    """Message in flight from a work queue."""

    def __init__(self, queue: "MemoryQueue", message: StreamMessage, deliveries: int) -> None:
        self._queue = queue
        self._connection = queue.connection
        self.message = message
        self.deliveries = deliveries
        self.queued_ms = max(0.0, (queue.now() - message.at).total_seconds() * 1000)

    @property
    def is_held_over(self) -> bool:
        """The connection, or the server, was lost since."""
        return self._queue.connection != self._connection

    async def ack(self) -> None:
        """Done."""
        if self._is_of_this_stream():
            self._queue.end(self.message.sequence)

    async def release(self) -> None:
        """Not done: deliver it again at once."""
        if self._is_of_this_stream():
            self._queue.redeliver(self.message.sequence)

    async def in_progress(self) -> None:
        """Still at it."""
        if self._is_of_this_stream():
            self._queue.extend_deadline(self.message.sequence)

    def _is_of_this_stream(self) -> bool:
        """After a start of the server its number may be another message's."""
        return self._queue.connection[1] == self._connection[1]


class MemoryQueue:
    """A durable pull consumer."""

    def __init__(self, bus: "MemoryBus", stream: str, consumer: str, subject_filter: str, fetch_bytes: int = 0) -> None:
        self._bus = bus
        self._stream = stream
        self._name = consumer
        self._filter = subject_filter
        self._fetch_bytes = fetch_bytes
        self.depth = 0
        self._consumer()

    async def fetch(self, limit: int, wait_seconds: float) -> Sequence[QueueMessage]:
        """See the port."""
        server = self._bus.server
        deadline = server.clock.monotonic() + wait_seconds
        while True:
            stream, consumer = self._consumer()
            claimed = stream.claim(consumer, limit, self._fetch_bytes)
            left = deadline - server.clock.monotonic()
            if claimed or left <= 0:
                self.depth = len(consumer.ready) if claimed else 0
                return [MemoryQueueMessage(self, message, deliveries) for message, deliveries in claimed]
            await server.wait(stream, left)

    async def ack_many(self, works: Sequence[QueueMessage]) -> None:
        """See the port."""
        for work in works:
            await work.ack()

    @property
    def connection(self) -> tuple[int, int]:
        """Number of the connection, and of the server's start."""
        return self._bus.losses, self._bus.server.starts

    def has_ready(self) -> bool:
        """Whether a fetch would return something at once."""
        return bool(self._consumer()[1].ready)

    def now(self) -> datetime:
        """The server's clock."""
        return self._bus.server.clock.now()

    def end(self, sequence: int) -> None:
        """Acknowledge; silent when the message was replaced or the bus is away."""
        if self._bus.connected:
            self._consumer()[0].remove(sequence)

    def redeliver(self, sequence: int) -> None:
        """Deliver again."""
        if self._bus.connected:
            stream, consumer = self._consumer()
            stream.redeliver(consumer, sequence)

    def extend_deadline(self, sequence: int) -> None:
        """Restart the acknowledgement timer."""
        if self._bus.connected:
            stream, consumer = self._consumer()
            stream.extend_deadline(consumer, sequence)

    def _consumer(self) -> tuple[MemoryStream, MemoryConsumer]:
        self._bus.require()
        stream = self._bus.server.stream(self._stream)
        return stream, stream.consumer(self._name, self._filter)


class MemoryFollower:
    """An ordered consumer."""

    def __init__(
        self,
        bus: "MemoryBus",
        name: str,
        filters: Sequence[str],
        *,
        after_sequence: int | None,
        last_per_subject: bool,
        headers_only: bool,
    ) -> None:
        self._bus = bus
        self._name = name
        self._filters = filters or [">"]
        self._last_per_subject = last_per_subject
        self._headers_only = headers_only
        self._received: deque[StreamMessage] = deque()
        self._stream = bus.server.stream(name)
        self._replaying = 0
        self._replayed = False
        self._last = after_sequence or 0
        self._last_at: datetime | None = None
        self._stream_last = self._stream.last_sequence
        self._last_activity_at = bus.server.clock.monotonic()
        self._start()

    @property
    def silent_seconds(self) -> float:
        """Seconds since the last message; a connection that is up counts as a heartbeat."""
        now = self._bus.server.clock.monotonic()
        if self._bus.connected:
            self._last_activity_at = now
        return now - self._last_activity_at

    def close(self) -> None:
        """Follow no more."""
        if self._receive in self._stream.taps:
            self._stream.taps.remove(self._receive)

    def __aiter__(self) -> AsyncIterator[FollowEvent]:
        """See the port."""
        return self._events()

    async def _events(self) -> AsyncIterator[FollowEvent]:
        server = self._bus.server
        while True:
            if not self._bus.connected:
                await server.wait(self._stream, None)
                continue
            if self._stream is not server.stream(self._name):
                if (reason := self._resume()) is not None:
                    yield FollowRestarted(reason)
                continue
            if self._received:
                message = self._received.popleft()
                self._last, self._last_at = message.sequence, message.at
                yield message
                self._replaying -= 1
            elif self._replayed:
                await server.wait(self._stream, None)
            if self._replaying <= 0 and not self._replayed:
                self._replayed = True
                yield ReplayDone(self._last)

    def _resume(self) -> str | None:
        """Follow the stream that is there now: from the start, for the reason returned, or where it was."""
        self.close()
        stream = self._bus.server.stream(self._name)
        existing, at_last = max(self._last, self._stream_last), stream.messages.get(self._last)
        reason = None
        if stream.created != self._stream.created:
            reason = "the stream was created anew"
        elif stream.last_sequence < existing:
            reason = f"the stream went back from {existing} to {stream.last_sequence}"
        elif existing and (at_last is None or at_last.at != self._last_at):
            reason = f"the server restarted, and does not have message {self._last} as it was"
        if reason is not None:
            self._last, self._last_at, self._replayed = 0, None, False
        self._stream, self._stream_last = stream, stream.last_sequence
        self._start()
        return reason

    def _start(self) -> None:
        self._received.clear()
        for sequence, message in self._stream.messages.items():
            is_last = self._stream.last_on(message.subject) is message
            if sequence > self._last and (is_last or not self._last_per_subject):
                self._receive(message)
        self._replaying = len(self._received)
        self._stream.taps.append(self._receive)

    def _receive(self, message: StreamMessage) -> None:
        if any(subject_matches(each, message.subject) for each in self._filters):
            self._received.append(msgspec.structs.replace(message, body=b"") if self._headers_only else message)


class MemoryBus:
    """`ports.bus.Bus` on a `MemoryServer`; without one it has its own."""

    def __init__(self, clock: Clock, *, server: MemoryServer | None = None, prefix: str = "garden") -> None:
        self.server = server or MemoryServer(clock, prefix=prefix)
        self._connected = True
        self.losses = 0
        self._callbacks: list[Callable[[], Awaitable[None]]] = []

    def require(self) -> None:
        """Raise Unavailable unless the connection is up."""
        if not self._connected:
            raise Unavailable(_AWAY)

    def cut(self) -> None:
        """Lose the connection."""
        self._connected = False
        self.losses += 1
        self.server.notify_waiters()

    async def mend(self) -> None:
        """Get it back; the callbacks run."""
        self._connected = True
        self.server.notify_waiters()
        for callback in self._callbacks:
            await callback()

    async def publish(self, message: Message, *, expected_subject_sequence: int | None = None) -> int:
        """See the port."""
        self.require()
        _check_subject(message.subject)
        stream = self.server.stream_of(message.subject)
        if stream is None:
            raise Unavailable(f"no responder on {message.subject}")
        stream.check(message, expected_subject_sequence)
        return stream.append(message)

    async def publish_many(self, messages: Sequence[Message]) -> None:
        """See the port."""
        problems: list[BadRequest] = []
        for message in messages:
            try:
                await self.publish(message)
            except BadRequest as error:
                problems.append(error)
        if problems:
            raise problems[0]

    async def publish_batch(
        self, stream: str, messages: Sequence[Message], *, expected_last_sequence: int, whole: bool = False
    ) -> int:
        """See the port."""
        self.require()
        target = self.server.stream(stream)
        if len(messages) > BATCH_LIMIT or not target.kind.allows_batches:
            raise BadRequest(f"{stream} does not take a batch of {len(messages)} messages")
        if messages and target.last_sequence != expected_last_sequence:
            raise Conflict(f"the last sequence of {stream} is {target.last_sequence}, not {expected_last_sequence}")
        for message in messages:
            _check_subject(message.subject)
        if whole or len(messages) == 1:
            for message in messages:
                self._check_fits(message, target)
        last = expected_last_sequence
        for message in messages:
            try:
                self._check_fits(message, target)
            except BadRequest as error:
                raise Conflict(f"not all of {len(messages)} messages were stored: {error.message}") from error
            last = target.append(message)
        return last

    def _check_fits(self, message: Message, target: MemoryStream) -> None:
        if self.server.stream_of(message.subject) is not target:
            raise BadRequest(f"{message.subject} is no subject of {target.kind.name}")
        target.check(message)

    async def copies(self, stream: str) -> int:
        """See the port."""
        self.require()
        self.server.stream(stream)
        return self.server.copies

    async def position(self, stream: str) -> StreamPosition:
        """See the port."""
        self.require()
        found = self.server.stream(stream)
        return StreamPosition(found.created, found.last_sequence)

    async def last_stored_at(self, stream: str) -> datetime | None:
        """See the port."""
        self.require()
        return self.server.stream(stream).last_stored_at

    async def acknowledged_floor(self, stream: str, consumer: str) -> StreamPosition:
        """See the port."""
        self.require()
        found = self.server.stream(stream)
        if consumer not in found.consumers:
            raise NotFound(f"{stream} has no consumer {consumer}")
        return StreamPosition(found.created, found.floor(found.consumers[consumer]))

    async def server_now(self, stream: str) -> datetime:
        """See the port."""
        self.require()
        return self.server.clock.now()

    async def subjects(self, stream: str, subject_filter: str) -> Mapping[str, int]:
        """See the port."""
        self.require()
        return self.server.stream(stream).counts(subject_filter)

    async def last(self, stream: str, subject: str) -> StreamMessage | None:
        """See the port."""
        self.require()
        return self.server.stream(stream).last_on(subject)

    async def first_from(self, stream: str, sequence: int) -> StreamMessage | None:
        """See the port."""
        self.require()
        return self.server.stream(stream).first_from(sequence)

    async def messages_from(
        self, stream: str, subject_filter: str, sequence: int, limit: int
    ) -> Sequence[StreamMessage]:
        """See the port."""
        self.require()
        return self.server.stream(stream).messages_from(subject_filter, sequence, limit)

    async def purge(self, stream: str, subject: str, *, upto_sequence: int | None = None) -> None:
        """See the port."""
        self.require()
        self.server.stream(stream).purge(subject, upto_sequence=upto_sequence)

    async def work_queue(self, stream: str, consumer: str, subject_filter: str, *, fetch_bytes: int = 0) -> MemoryQueue:
        """See the port."""
        if self.connected:
            self.server.stream(stream).consumer(consumer, subject_filter).narrow(subject_filter)
        return MemoryQueue(self, stream, consumer, subject_filter, fetch_bytes)

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
            self.require()
            follower = MemoryFollower(
                self,
                stream,
                subject_filters,
                after_sequence=after_sequence,
                last_per_subject=last_per_subject,
                headers_only=headers_only,
            )
            try:
                yield follower
            finally:
                follower.close()

        return opened()

    async def request(
        self, subject: str, body: bytes, *, headers: Headers = {}, timeout_seconds: float = 10.0
    ) -> bytes:
        """See the port; a subject of a stream responds with the stream's acknowledgement."""
        self.require()
        stream = self.server.stream_of(subject)
        if stream is not None:
            sequence = await self.publish(Message(subject, body, headers))
            return msgspec.json.encode({"stream": stream.kind.name, "seq": sequence})
        for subject_filter, handler in self.server.services:
            if subject_matches(subject_filter, subject):
                try:
                    async with asyncio.timeout(timeout_seconds):
                        return await handler(Request(subject, body, headers))
                except TimeoutError as error:
                    raise NoResponse(f"no response on {subject} within {timeout_seconds:g} s") from error
                except Exception as error:  # noqa: BLE001  (whatever a handler raises is a response)
                    return error_response(error, "of-this-request")[2]
        raise Unavailable(f"no responder on {subject}")

    def notify(self, subject: str, body: bytes) -> None:
        """See the port; the members of a group get it in turn."""
        subscriptions, groups = self.server.subscriptions, set[str]()
        for subscription in tuple(subscriptions) if self._connected else ():
            bus, subscribed, group, callback = subscription
            if bus.connected and subscribed == subject and group not in groups:
                groups.add(group)
                subscriptions.remove(subscription)
                subscriptions.append(subscription)
                callback(body)

    async def subscribe(self, subject: str, group: str, callback: Callable[[bytes], None]) -> None:
        """See the port."""
        self.require()
        self.server.subscriptions.append((self, subject, group, callback))

    async def register(self, identity: ServiceIdentity) -> None:
        """See the port."""
        self.require()

    def report_stats(self, data: Callable[[], Mapping[str, Any]]) -> None:
        """See the port; nobody requests STATS here."""

    async def serve(
        self,
        name: str,
        version: str,
        endpoints: Mapping[str, Handler],
        *,
        metadata: Mapping[str, str] = {},
    ) -> None:
        """See the port."""
        self.require()
        self.server.services.extend(endpoints.items())

    async def ensure_streams(self) -> None:
        """See the port; they are always there."""
        self.require()

    def on_reconnect(self, callback: Callable[[], Awaitable[None]]) -> None:
        """See the port."""
        self._callbacks.append(callback)

    @property
    def connected(self) -> bool:
        """See the port."""
        return self._connected

    async def close(self) -> None:
        """See the port."""
        self._connected = False
        self.server.notify_waiters()


@lru_cache(maxsize=1 << 12)
def _check_subject(subject: str) -> None:
    words = subject.split(".")
    if not all(words) or any(c.isspace() or c in "*>" for c in subject):
        raise BadRequest(f"{subject[:200]!r} is no subject to publish on")
