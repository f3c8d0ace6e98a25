"""The bus as the services see it: durable streams, work queues, ordered followers, requests.

Every operation raises `Unavailable` when the server is away or does not answer in time; the outcome of a publish is
then unknown and the caller must be able to repeat it. The JetStream adapter and the memory adapter pass one contract
suite.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Protocol

import msgspec

Headers = Mapping[str, str]


class Message(msgspec.Struct, frozen=True):
    """What is published. `ttl` ends the message on streams that allow it (whole seconds).

    `lines` are further header lines, each ended by CR LF, that only others read: they are not given to our followers.
    """

    subject: str
    body: bytes = b""
    headers: Headers = {}
    ttl: timedelta | None = None
    lines: bytes = b""


class StreamPosition(msgspec.Struct, frozen=True, order=True):
    """Where a stream stands. `created` (ns since the epoch) tells incarnations apart; compare (created, sequence)."""

    created: int
    sequence: int


class Delivered(msgspec.Struct, frozen=True):
    """A message as it stands in a stream. `at` is the server's time of arrival.

    `marker` is set on a delete marker of the server's (`MaxAge`, `Remove`, `Purge`).
    """

    subject: str
    body: bytes
    headers: Headers
    sequence: int
    at: datetime
    marker: str | None = None


class Work(Protocol):
    """One message in hand from a work queue. Exactly one of ack / release / drop ends it."""

    @property
    def message(self) -> Delivered:
        """What was delivered."""
        ...

    @property
    def deliveries(self) -> int:
        """How often it has been delivered, this time included (1 the first time)."""
        ...

    @property
    def queued_ms(self) -> float:
        """Milliseconds between its arrival on the stream and its delivery here."""
        ...

    async def ack(self) -> None:
        """Done; never delivered again. Idempotent; silent when the message was replaced meanwhile."""
        ...

    async def release(self) -> None:
        """Not done; deliver it again at once, to anybody (never with a delay: that would hold a slot)."""
        ...

    async def in_progress(self) -> None:
        """Still at it: restart the acknowledgement timer."""
        ...


class WorkQueue(Protocol):
    """One durable pull consumer, shared by all replicas."""

    async def fetch(self, limit: int, wait_seconds: float) -> Sequence[Work]:
        """Up to `limit` messages; waits at most `wait_seconds` for the first, never for the rest."""
        ...

    async def ack_many(self, works: Sequence[Work]) -> None:
        """Acknowledge a batch, pipelined."""
        ...

    @property
    def depth(self) -> int:
        """How many more messages waited behind those of the last fetch (0 before the first).

        For people: JetStream counts a message a moment after it has acknowledged it.
        """
        ...


class ReplayDone(msgspec.Struct, frozen=True):
    """A follower has delivered all that the stream held when it started (again)."""

    sequence: int


class FollowRestarted(msgspec.Struct, frozen=True):
    """The follower had to start anew: stream recreated, sequence gone back, or too long silent. List again."""

    reason: str


FollowEvent = Delivered | ReplayDone | FollowRestarted


class Follower(Protocol):
    """An ordered consumer that heals itself: every message once, in stream order, with heartbeats watched."""

    def __aiter__(self) -> AsyncIterator[FollowEvent]:
        """Messages as they come; `ReplayDone` once the backlog is through; `FollowRestarted` before a new replay."""
        ...

    @property
    def silent_seconds(self) -> float:
        """Seconds since the last message or heartbeat."""
        ...


Handler = Callable[["Request"], Awaitable[bytes]]


class Request(msgspec.Struct, frozen=True):
    """A request that wants an answer. `subject` as it was called, `body` as sent."""

    subject: str
    body: bytes
    headers: Headers


class ServiceIdentity(msgspec.Struct, frozen=True):
    """What a process says of itself when it is asked who is there. `version` is a semantic one."""

    name: str
    version: str
    description: str = ""
    metadata: Mapping[str, str] = {}


class Bus(Protocol):
    """A connection to NATS with JetStream."""

    async def publish(self, message: Message, *, expected_subject_sequence: int | None = None) -> int:
        """Store one message durably and answer its sequence.

        With `expected_subject_sequence` (0: nothing there) raises Conflict when the subject's last message is another.
        """
        ...

    async def publish_many(self, messages: Sequence[Message]) -> None:
        """Store many, pipelined; order and duplicates do not matter.

        Raises BadRequest when some were refused for good (the others are stored), Unavailable unless all were stored.
        """
        ...

    async def publish_batch(
        self, stream: str, messages: Sequence[Message], *, expected_last_sequence: int, whole: bool = False
    ) -> int:
        """Store at most 1,000 messages in order, nobody else's before or among them; answer the last sequence.

        Raises Conflict when the stream's last sequence is another (somebody else published) or one of several was
        refused; then those before it may have been stored, and nothing after it. Unavailable: the outcome is unknown.
        With `whole` they are stored all or nothing, and what the server refuses for its content (too large) is a
        BadRequest. That costs the server more, unless it syncs each write.
        """
        ...

    async def position(self, stream: str) -> StreamPosition:
        """The stream's incarnation and last sequence."""
        ...

    async def acknowledged_floor(self, stream: str, consumer: str) -> StreamPosition:
        """All messages of the stream up to this one have been acknowledged by the consumer."""
        ...

    async def server_now(self, stream: str) -> datetime:
        """The server's clock."""
        ...

    async def subjects(self, stream: str, subject_filter: str) -> Mapping[str, int]:
        """Live subjects of a stream with their number of messages, paged through."""
        ...

    async def last(self, stream: str, subject: str) -> Delivered | None:
        """The last message on a subject (a marker counts), or None."""
        ...

    async def purge(self, stream: str, subject: str, *, upto_sequence: int | None = None) -> None:
        """Remove all messages on a subject; with `upto_sequence` none that is younger than that one."""
        ...

    async def work_queue(self, stream: str, consumer: str, subject_filter: str) -> WorkQueue:
        """Create (idempotently) and open a durable pull consumer: explicit ack, ack_wait 10 s, no delivery limit."""
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

        After more than `max_silent_seconds` without a message or heartbeat (an outage) it starts anew, and says so.
        """
        ...

    async def request(
        self, subject: str, body: bytes, *, headers: Headers = {}, timeout_seconds: float = 10.0
    ) -> bytes:
        """Ask and wait for the answer. Raises Unavailable when nobody answers in time."""
        ...

    async def register(self, identity: ServiceIdentity) -> None:
        """Be a NATS micro service: answer who this is and how it does. To be called once, before any `serve`."""
        ...

    async def serve(
        self, name: str, version: str, endpoints: Mapping[str, Handler], *, metadata: Mapping[str, str] = {}
    ) -> None:
        """Answer requests: subject filter → handler, in the queue group `name`, so that replicas share them.

        They become endpoints, with that metadata, of the service that was registered, or else of a new one.
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
        """Whether the connection is up now."""
        ...

    async def close(self) -> None:
        """Flush and close."""
        ...
