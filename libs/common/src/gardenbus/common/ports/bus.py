"""Protocols of the bus: durable streams, work queues, ordered followers, requests.

Every operation raises `Unavailable` when the server is away or does not respond in time; the outcome of a publish is
then unknown and the caller must be able to repeat it. The JetStream adapter and the memory adapter pass one contract
suite.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Any, Protocol

import msgspec

Headers = Mapping[str, str]

TOMBSTONE_TTL = timedelta(hours=1)
"""Life of a tombstone on OBJECTS. An informer that was away for half of it lists again."""


class Message(msgspec.Struct, frozen=True):
    """A message to publish. `ttl` ends the message on streams that allow it (whole seconds).

    `lines` are further header lines, each ended by CR LF, for readers outside: our followers do not get them.
    """

    subject: str
    body: bytes = b""
    headers: Headers = {}
    ttl: timedelta | None = None
    lines: bytes = b""


class StreamPosition(msgspec.Struct, frozen=True, order=True):
    """Incarnation of a stream (`created`, ns since the epoch) and a sequence in it; compare (created, sequence)."""

    created: int
    sequence: int


class StreamMessage(msgspec.Struct, frozen=True):
    """A message stored in a stream. `at` is the time of its arrival by the server's clock.

    `marker` is set on the server's delete markers (`MaxAge`, `Remove`, `Purge`).
    """

    subject: str
    body: bytes
    headers: Headers
    sequence: int
    at: datetime
    marker: str | None = None


class QueueMessage(Protocol):
    """A message fetched from a work queue and not yet acknowledged. Exactly one of ack / release ends it."""

    @property
    def message(self) -> StreamMessage:
        """The stored message."""
        ...

    @property
    def deliveries(self) -> int:
        """Number of deliveries, this one included (1 the first time)."""
        ...

    @property
    def queued_ms(self) -> float:
        """Milliseconds between its arrival on the stream and its delivery."""
        ...

    @property
    def is_held_over(self) -> bool:
        """True if the connection was lost since it was fetched: its stream may have gone back meanwhile."""
        ...

    async def ack(self) -> None:
        """Acknowledge: it is never delivered again. Idempotent; no error when the message was replaced meanwhile."""
        ...

    async def release(self) -> None:
        """Negative acknowledgement: redeliver at once, to any replica (a delay would occupy a slot)."""
        ...

    async def in_progress(self) -> None:
        """Extend the ack deadline."""
        ...


class WorkQueue(Protocol):
    """A durable pull consumer, shared by all replicas."""

    async def fetch(self, limit: int, wait_seconds: float) -> Sequence[QueueMessage]:
        """Fetch up to `limit` messages; waits at most `wait_seconds` for the first, never for the rest."""
        ...

    async def ack_many(self, works: Sequence[QueueMessage]) -> None:
        """Acknowledge a batch, pipelined."""
        ...

    @property
    def depth(self) -> int:
        """Messages that were pending behind those of the last fetch (0 before the first).

        About so many: JetStream counts a message a moment after it has acknowledged it.
        """
        ...


class ReplayDone(msgspec.Struct, frozen=True):
    """The follower has delivered everything that the stream held when it (re)started."""

    sequence: int


class FollowRestarted(msgspec.Struct, frozen=True):
    """The follower started anew: stream recreated, sequence gone back, or too long silent. List again."""

    reason: str


FollowEvent = StreamMessage | ReplayDone | FollowRestarted


class Follower(Protocol):
    """A self-healing ordered consumer: every message once, in stream order, with heartbeats watched."""

    def __aiter__(self) -> AsyncIterator[FollowEvent]:
        """Messages as they come; `ReplayDone` once the backlog is through; `FollowRestarted` before a new replay."""
        ...

    @property
    def silent_seconds(self) -> float:
        """Seconds since the last message or heartbeat."""
        ...


Handler = Callable[["Request"], Awaitable[bytes]]


class Request(msgspec.Struct, frozen=True):
    """A request that expects a response. `subject` as it was called, `body` as sent."""

    subject: str
    body: bytes
    headers: Headers


class ServiceIdentity(msgspec.Struct, frozen=True):
    """Identity of a NATS micro service. `version` is a semantic version."""

    name: str
    version: str
    description: str = ""
    metadata: Mapping[str, str] = {}


class Bus(Protocol):
    """A connection to NATS with JetStream."""

    async def publish(self, message: Message, *, expected_subject_sequence: int | None = None) -> int:
        """Store one message durably and return its sequence.

        With `expected_subject_sequence` (0: nothing there) raises Conflict when the subject's last message is another.
        """
        ...

    async def publish_many(self, messages: Sequence[Message]) -> None:
        """Store many, pipelined; order and duplicates do not matter.

        Raises BadRequest when some were rejected for good (the others are stored), Unavailable unless all were stored.
        """
        ...

    async def publish_batch(
        self, stream: str, messages: Sequence[Message], *, expected_last_sequence: int, whole: bool = False
    ) -> int:
        """Store at most 1,000 messages in order with nobody else's before or among them; return the last sequence.

        Raises Conflict when the stream's last sequence is another (somebody else published) or one of several was
        rejected; then those before it may have been stored, and nothing after it. Unavailable: the outcome is unknown.
        With `whole` they are stored all or nothing, and content that the server rejects (too large) is a BadRequest.
        That costs the server more, unless it syncs each write.
        """
        ...

    async def position(self, stream: str) -> StreamPosition:
        """Read the stream's incarnation and last sequence."""
        ...

    async def copies(self, stream: str) -> int:
        """Number of servers that have a copy of the stream. Raises NotFound, Unavailable."""
        ...

    async def last_stored_at(self, stream: str) -> datetime | None:
        """Read when the stream's last message was stored, by the server's clock; None if there was none."""
        ...

    async def acknowledged_floor(self, stream: str, consumer: str) -> StreamPosition:
        """Read the position up to which the consumer has acknowledged all messages of the stream."""
        ...

    async def server_now(self, stream: str) -> datetime:
        """Read the server's clock."""
        ...

    async def subjects(self, stream: str, subject_filter: str) -> Mapping[str, int]:
        """Count the messages of each live subject of a stream, paged through."""
        ...

    async def last(self, stream: str, subject: str) -> StreamMessage | None:
        """Read the last message on a subject (a marker counts), or None."""
        ...

    async def first_from(self, stream: str, sequence: int) -> StreamMessage | None:
        """Read the first message that is stored at a sequence or behind it, or None. Raises NotFound without stream."""
        ...

    async def messages_from(
        self, stream: str, subject_filter: str, sequence: int, limit: int
    ) -> Sequence[StreamMessage]:
        """Read messages of OBJECTS, BINDINGS, QUEUES or LEASES at a sequence and behind it; none: there are no more.

        There may be fewer than the limit, and the newest may be missing. Raises Unavailable.
        """
        ...

    async def purge(self, stream: str, subject: str, *, upto_sequence: int | None = None) -> None:
        """Remove all messages on a subject; with `upto_sequence` none younger than that one."""
        ...

    async def work_queue(self, stream: str, consumer: str, subject_filter: str, *, fetch_bytes: int = 0) -> WorkQueue:
        """Create (idempotently) and open a durable pull consumer: explicit ack, ack_wait 10 s, no delivery limit.

        With `fetch_bytes` a fetch has no more of messages than that, as the server counts them, or one that is larger.
        """
        ...

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
        """Follow a stream: from the start, after a sequence, or from the last message of each subject.

        After more than `max_silent_seconds` without a message or heartbeat (an outage) it restarts with
        FollowRestarted.
        """
        ...

    async def request(
        self, subject: str, body: bytes, *, headers: Headers = {}, timeout_seconds: float = 10.0
    ) -> bytes:
        """Send a request and wait for the response. Raises Unavailable: NoResponse where somebody may have got it."""
        ...

    def notify(self, subject: str, body: bytes) -> None:
        """Publish a message that no stream stores: whoever subscribes now gets it, at most once. Never waits or fails.

        While the server is away it is dropped.
        """
        ...

    async def subscribe(self, subject: str, group: str, callback: Callable[[bytes], None]) -> None:
        """Have the bodies of such messages handed over; of the subscribers in a (queue) group one gets each.

        Survives reconnects. Raises Unavailable.
        """
        ...

    async def register(self, identity: ServiceIdentity) -> None:
        """Register as a NATS micro service. To be called once, before any `serve`."""
        ...

    def report_stats(self, data: Callable[[], Mapping[str, Any]]) -> None:
        """Have the STATS of the registered service hold what this returns, as its `data`."""
        ...

    async def serve(
        self, name: str, version: str, endpoints: Mapping[str, Handler], *, metadata: Mapping[str, str] = {}
    ) -> None:
        """Serve requests: subject filter → handler, in the queue group `name`, so that replicas share them.

        They become endpoints, with that metadata, of the registered service, or else of a new one.
        """
        ...

    async def ensure_streams(self) -> None:
        """Create or upgrade every stream of the landscape; idempotent; called again after each reconnect."""
        ...

    def on_reconnect(self, callback: Callable[[], Awaitable[None]]) -> None:
        """Call back after each reconnect (after the streams were ensured)."""
        ...

    @property
    def connected(self) -> bool:
        """The connection is up."""
        ...

    async def close(self) -> None:
        """Flush and close."""
        ...
