"""Work queue: one durable pull consumer, with one request a fetch.

The request has `no_wait` *and* `expires`: the server delivers what is there and ends it at once; when nothing is
there it waits for the first message. So a fetch is one round trip, and nothing that was requested arrives later. With
`fetch_bytes` it ends where the next message would be too much; a message that is larger alone is fetched without. Where
messages have exactly that size the server says nothing at the end (2.14), so that the bytes are counted here too; what
it still sends for such a request comes with the next fetch.
Acknowledgements are written without waiting: one that is lost leads to a redelivery, which every handler must accept.
To a cluster they are written together, some times a second: its servers agree on each write, and on what it removes,
which costs them more than the messages, and nobody waits for it. What came back is acknowledged at once there too:
should a message of them kill the process, the others must not count another delivery.

The server knows what an acknowledgement is about by the message's number alone, and a stream that is lost, or restored
from an older copy, gives numbers again. So nothing is written about a message of another process of the server (where
there is one server, only another process has a stream with another past, unless it was removed by request), nor about
one of a consumer that is known to have been removed since: a fetch says so, or its deliveries are counted from the
beginning. Such a message is delivered again, if it is there.
"""

import asyncio
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import structlog

from gardenbus.common.adapters.nats.api import AckSubject, JetStreamError, call, delivered, read_ack_subject
from gardenbus.common.adapters.nats.connection import Connection
from gardenbus.common.adapters.nats.messages import RawMessage, publish_command
from gardenbus.common.errors import SettingsInvalid, Unavailable
from gardenbus.common.ports.bus import QueueMessage, StreamMessage

ACK_WAIT_SECONDS = 10.0
"""Ack deadline: work of a replica that died comes back after this; longer handlers extend it (`in_progress`)."""

MAX_ACK_PENDING = 20_000
ACK_INTERVAL_SECONDS = 0.1
"""Time for which acknowledgements to a cluster are collected: little against ACK_WAIT_SECONDS."""

GRACE_SECONDS = 2.0
"""Grace period of a fetch for the server's final status before the server counts as gone."""

_SECOND = 1_000_000_000
_NO_MESSAGES = 404
_TIMED_OUT = 408
_CONFLICT = 409
_NOBODY = 503
_ACK, _NAK, _PROGRESS = b"+ACK", b"-NAK", b"+WPI"

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


def consumer_name(name: str) -> str:
    """A consumer's name in JetStream: without dots."""
    return name.replace(".", "-")


class JetStreamQueueMessage:
    """Message in flight from a work queue."""

    __slots__ = (
        "_ack_subject",
        "_acknowledgements",
        "_connection",
        "_consumer",
        "_ended",
        "_message",
        "_origin",
        "_raw",
        "queued_ms",
    )

    def __init__(self, consumer: "_ConsumerLife", raw: RawMessage, acknowledgements: "_Acknowledgements") -> None:
        connection = acknowledgements.connection
        self._acknowledgements = acknowledgements
        self._connection = connection
        self._consumer = consumer
        self._raw = raw
        self._ack_subject: AckSubject = read_ack_subject(raw.reply)
        consumer.observe(self._ack_subject.consumer_sequence)
        self._origin = _Origin(connection.losses, connection.server_id, consumer.restarts)
        self._message: StreamMessage | None = None
        self._ended = False
        self.queued_ms: float = max(0.0, time.time() * 1000 - self._ack_subject.at_nanoseconds / 1_000_000)

    @property
    def message(self) -> StreamMessage:
        """The delivered message."""
        if self._message is None:
            self._message = delivered(self._raw, self._ack_subject)
        return self._message

    @property
    def deliveries(self) -> int:
        """Deliveries so far."""
        return self._ack_subject.deliveries

    @property
    def is_held_over(self) -> bool:
        """See the port."""
        origin = self._origin
        return self._connection.losses != origin.losses or self._consumer.restarts != origin.restarts

    @property
    def pending(self) -> int:
        """Messages that waited behind it when it was delivered."""
        return self._ack_subject.pending

    async def ack(self) -> None:
        """Done."""
        self._acknowledgements.add((self,))

    async def release(self) -> None:
        """Not done: deliver it again at once."""
        self.release_nowait()

    def release_nowait(self) -> None:
        """See `release`."""
        if self.end() and (command := self.final_command(_NAK)) is not None:
            self._connection.send_nowait((command,))

    async def in_progress(self) -> None:
        """Still at it."""
        if not self._ended and self._is_of_this_stream():
            self._connection.send_nowait((publish_command(self._raw.reply, _PROGRESS),))

    def end(self) -> bool:
        """Note that it is acknowledged or released; False when it was, or its number may be another's by now."""
        if self._ended or not self._is_of_this_stream():
            return False
        self._ended = True
        return True

    def final_command(self, word: bytes) -> bytes | None:
        """The command that ends it; None when its number may be another message's by now."""
        return publish_command(self._raw.reply, word) if self._is_of_this_stream() else None

    def _is_of_this_stream(self) -> bool:
        origin = self._origin
        return (self._connection.server_id, self._consumer.restarts) == (origin.server_id, origin.restarts)


class _Origin(NamedTuple):
    """The session, process of the server and life of a consumer that a message came with."""

    losses: int
    server_id: str
    restarts: int


class _ConsumerLife:
    """Notices that a consumer was removed, and another is there under its name."""

    def __init__(self) -> None:
        self.restarts = 0
        self._sequence = 0

    def observe(self, sequence: int) -> None:
        """A delivery: each has a higher number than the one before it, in the order of their arrival."""
        if sequence <= self._sequence:
            self.restart()
        self._sequence = sequence

    def restart(self) -> None:
        """The server says that it is gone."""
        self.restarts += 1
        self._sequence = 0


class _Acknowledgements:
    """Acknowledgements of a queue: written at once to a server that is alone, collected for a while for a cluster."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._collected: list[JetStreamQueueMessage] = []

    def add(self, works: Iterable[JetStreamQueueMessage]) -> None:
        """Acknowledge messages, now or soon."""
        is_first = not self._collected
        self._collected += [work for work in works if work.end()]
        if not self.connection.is_clustered or any(work.deliveries > 1 for work in self._collected):
            self.write()
        elif is_first and self._collected:
            asyncio.get_running_loop().call_later(ACK_INTERVAL_SECONDS, self.write)

    def write(self) -> None:
        """Write what was collected, but for messages whose numbers may be others' by now."""
        collected, self._collected = self._collected, []
        commands = [work.final_command(_ACK) for work in collected]
        self.connection.send_nowait([command for command in commands if command is not None])


class _FetchInbox:
    """Reply subject of one request at a time; kept for the next one."""

    def __init__(self, subject: str, consumer: _ConsumerLife, acknowledgements: _Acknowledgements) -> None:
        self.subject = subject
        self.number = 0
        self.messages: list[JetStreamQueueMessage] = []
        self._consumer = consumer
        self._acknowledgements = acknowledgements
        self.status: RawMessage | None = None
        self.done: asyncio.Future[None] | None = None
        self._request_number = 0
        self._limit = 0
        self._bytes_left = 0
        self._is_abandoned = False

    def arm(self, limit: int, max_bytes: int) -> tuple[str, "asyncio.Future[None]"]:
        """Make ready for one request: its reply subject, and the future that ends with the server's last word."""
        self._request_number += 1
        self._limit = limit
        self._bytes_left = max_bytes or sys.maxsize
        self.status = None
        self.done = asyncio.get_running_loop().create_future()
        return f"{self.subject}.{self._request_number}", self.done

    def receive(self, message: RawMessage) -> None:
        """Messages come on their own subjects, the last word on the reply subject of its request."""
        if not message.status:
            work = JetStreamQueueMessage(self._consumer, message, self._acknowledgements)
            if self._is_abandoned:
                work.release_nowait()
            else:
                self.messages.append(work)
                self._bytes_left -= len(message.subject) + len(message.reply) + len(message.header) + len(message.body)
        elif message.subject == f"{self.subject}.{self._request_number}":
            self.status = message
            if _is_removal(message):
                self._consumer.restart()
        is_full = len(self.messages) >= self._limit or self._bytes_left <= 0
        if (self.status or is_full) and self.done is not None and not self.done.done():
            self.done.set_result(None)

    def take(self) -> list[JetStreamQueueMessage]:
        """The messages that have arrived; what comes later is the next fetch's."""
        taken, self.messages = self.messages, []
        return taken

    def abandon(self) -> None:
        """Release what was fetched, and what may still arrive: nobody fetches any more."""
        self._is_abandoned = True
        for work in self.messages:
            work.release_nowait()

    def fail(self) -> None:
        """The connection was lost."""
        if self.done is not None and not self.done.done():
            self.done.set_exception(Unavailable("the connection to NATS was lost"))
            self.done.exception()


def _is_removal(status: RawMessage) -> bool:
    """True if the last word on a request is that there is no such consumer, or none any more."""
    return status.status == _NOBODY or (status.status == _CONFLICT and "Deleted" in status.description)


def _is_too_large(status: RawMessage) -> bool:
    """True if the last word on a request is that the next message is larger than what is left of its bytes."""
    return status.status == _CONFLICT and "MaxBytes" in status.description


class JetStreamQueue:
    """See the module. Any number of fetches may run at once."""

    def __init__(
        self, connection: Connection, stream: str, consumer: str, subject_filter: str, *, fetch_bytes: int = 0
    ) -> None:
        self._connection = connection
        self._stream = stream
        self._consumer = consumer_name(consumer)
        self._filter = subject_filter
        self._fetch_bytes = fetch_bytes
        self._free: list[_FetchInbox] = []
        self._busy: set[_FetchInbox] = set()
        self._life = _ConsumerLife()
        self._acknowledgements = _Acknowledgements(connection)
        self._depth = 0
        connection.when_lost(self._on_lost_connection)

    @property
    def depth(self) -> int:
        """Messages that waited at the last fetch."""
        return self._depth

    async def ensure(self) -> None:
        """Create the consumer, or bring it up to date; idempotent."""
        settings = {
            "name": self._consumer,
            "durable_name": self._consumer,
            "description": f"the replicas of {self._consumer}",
            "deliver_policy": "all",
            "ack_policy": "explicit",
            "ack_wait": int(ACK_WAIT_SECONDS * _SECOND),
            "max_deliver": -1,
            "max_ack_pending": MAX_ACK_PENDING,
            "filter_subject": self._filter,
        }
        endpoint = f"CONSUMER.CREATE.{self._stream}.{self._consumer}.{self._filter}"
        try:
            await call(self._connection, endpoint, {"stream_name": self._stream, "config": settings})
        except JetStreamError as api_error:
            error = api_error.translated()
            if isinstance(error, Unavailable):
                raise error from api_error
            if api_error.code == _NO_MESSAGES:
                raise Unavailable(f"the stream {self._stream} does not exist yet") from api_error
            raise SettingsInvalid((f"consumer {self._consumer} of {self._stream}: {api_error}",)) from api_error

    async def fetch(self, limit: int, wait_seconds: float) -> Sequence[QueueMessage]:
        """See the port. Raises Unavailable when the server is away or silent."""
        deadline = time.monotonic() + wait_seconds
        max_bytes = self._fetch_bytes
        while True:
            works, status = await self._request_batch(limit, max(0.0, deadline - time.monotonic()), max_bytes)
            if works or status is None or status.status in (_NO_MESSAGES, _TIMED_OUT):
                self._depth = works[-1].pending if works else 0
                return works
            if _is_removal(status):
                log.warning("consumer.recreated", stream=self._stream, consumer=self._consumer)
                await self.ensure()
                continue
            if max_bytes and _is_too_large(status):
                limit, max_bytes = 1, 0
                continue
            raise Unavailable(f"{self._stream} {self._consumer}: {status.status} {status.description}")

    async def ack_many(self, works: Sequence[QueueMessage]) -> None:
        """Acknowledge a batch in one write."""
        self._acknowledgements.add([work for work in works if isinstance(work, JetStreamQueueMessage)])

    def write_acknowledgements(self) -> None:
        """Write those that are collected still: the connection is about to be closed."""
        self._acknowledgements.write()

    async def _request_batch(
        self, limit: int, wait_seconds: float, max_bytes: int
    ) -> tuple[list[JetStreamQueueMessage], RawMessage | None]:
        """Request one batch: the messages, and the server's final status if there was one."""
        self._connection.require_connected()
        inbox = self._free.pop() if self._free else await self._new_inbox()
        self._busy.add(inbox)
        reply, done = inbox.arm(limit, max_bytes)
        request: dict[str, Any] = {"batch": limit, "no_wait": True}
        if max_bytes:
            request["max_bytes"] = max_bytes
        if wait_seconds > 0:
            request["expires"] = int(wait_seconds * _SECOND)
        subject = f"{self._connection.jetstream_api}.CONSUMER.MSG.NEXT.{self._stream}.{self._consumer}"
        try:
            await self._connection.send((publish_command(subject, msgspec.json.encode(request), reply=reply),))
            async with asyncio.timeout(wait_seconds + GRACE_SECONDS):
                await done
        except BaseException as error:
            # What comes after this is not ours to hold: without a listener the server withdraws the request.
            inbox.abandon()
            self._connection.unlisten_after(inbox.number, GRACE_SECONDS)
            if isinstance(error, TimeoutError):
                raise Unavailable(f"{self._stream} {self._consumer}: the server does not respond") from error
            raise
        finally:
            self._busy.discard(inbox)
        self._free.append(inbox)
        return inbox.take(), inbox.status

    async def _new_inbox(self) -> _FetchInbox:
        inbox = _FetchInbox(self._connection.new_inbox(), self._life, self._acknowledgements)
        inbox.number = await self._connection.listen(f"{inbox.subject}.*", inbox.receive)
        return inbox

    def _on_lost_connection(self) -> None:
        for inbox in self._busy:
            inbox.fail()
