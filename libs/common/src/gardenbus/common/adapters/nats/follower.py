"""Ordered consumer that heals itself.

The consumer is ephemeral, in the server's memory, without acknowledgements; its sequence numbers show what was lost.
It is made anew, after the last message delivered, when

- its own sequence has a gap, in a message or in a heartbeat (gaps in the *stream's* sequence are normal: compaction);
- the connection was lost, or nothing, not even a heartbeat, came for a while.

The iterator yields `FollowRestarted` and begins at the start when the stream is not the same any more (`created`), when
its last sequence is lower than what was delivered, or than it was when the consumer was made (an older copy may have
again what had been removed by then), when nothing was received for so long that tombstones may have come and gone, or
when another server process responds and the last message delivered is not there, or none was: it may have begun on an
older copy of the stream, which has grown past that sequence since. Flow control gets its response when the iterator
arrives there, so a slow reader slows the server down.
"""

import asyncio
import itertools
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import Any

import structlog

from gardenbus.common.adapters.nats.api import (
    API_TIMEOUT_SECONDS,
    NO_MESSAGE,
    AckSubject,
    JetStreamError,
    attempt_timeout_seconds,
    call,
    delivered,
    from_leader,
    from_nanoseconds,
    nanoseconds,
    read_ack_subject,
)
from gardenbus.common.adapters.nats.connection import Connection, ResponseTimeout
from gardenbus.common.adapters.nats.direct_get import last_message
from gardenbus.common.adapters.nats.messages import RawMessage, decode_headers, publish_command
from gardenbus.common.errors import BadRequest, Unavailable
from gardenbus.common.ports.bus import FollowEvent, FollowRestarted, ReplayDone, StreamPosition

HEARTBEAT_SECONDS = 5.0
MISSED_HEARTBEATS = 2.5
INACTIVE_SECONDS = 5.0
"""Life of the consumer on the server without a listener."""

RETRY_SECONDS = 0.2
YIELD_EVERY = 256
"""Messages after which the iterator lets others run."""

_SECOND = 1_000_000_000
_CONTROL = 100

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class JetStreamFollower:
    """See the module. `after_sequence` None: from the start (or the last of each subject)."""

    def __init__(  # noqa: PLR0913  (each is a setting of the consumer)
        self,
        connection: Connection,
        stream: str,
        subject_filters: Sequence[str],
        *,
        after_sequence: int | None,
        last_per_subject: bool,
        headers_only: bool,
        max_silent_seconds: float,
    ) -> None:
        self._connection = connection
        self._stream = stream
        self._filters = sorted(set(subject_filters)) or ([">"] if last_per_subject else [])
        self._last_per_subject = last_per_subject
        self._headers_only = headers_only
        self._max_silent_seconds = max_silent_seconds
        self._last = after_sequence
        self._last_at = 0
        self._last_subject = ""
        self._stream_last = 0
        self._allows_direct = False
        self._created: int | None = None
        self._server = ""
        self._target = 0
        self._replayed = False
        self._received: deque[tuple[RawMessage, AckSubject | None]] = deque()
        self._arrived = asyncio.Event()
        self._consumer_sequence = 0
        self._invalid_reason = ""
        self._listener: int | None = None
        self._last_activity_at = time.monotonic()
        self._unregister = connection.when_lost(self._on_lost_connection)

    @property
    def silent_seconds(self) -> float:
        """Seconds since the last message or heartbeat."""
        return time.monotonic() - self._last_activity_at

    async def open(self) -> None:
        """Create the consumer. Raises Unavailable, or BadRequest when the filters do not suit the stream."""
        try:
            position, pending = await self._create(attempt_timeout_seconds(1))
        except ResponseTimeout:
            position, pending = await self._create(API_TIMEOUT_SECONDS)
        self._created, self._target, self._stream_last = position.created, position.sequence, position.sequence
        self._server = self._connection.server_id
        if pending == 0:
            self._target = 0

    def close(self) -> None:
        """Listen no more; the server removes the consumer by itself."""
        self._unregister()
        self._stop_listening()

    def _stop_listening(self) -> None:
        if self._listener is not None:
            self._connection.unlisten(self._listener)
            self._listener = None

    def __aiter__(self) -> AsyncIterator[FollowEvent]:
        """See the port."""
        return self._events()

    async def _events(self) -> AsyncIterator[FollowEvent]:
        delivered_count = 0
        while True:
            if not self._replayed and self._target == 0:
                self._replayed = True
                yield ReplayDone(self._last or 0)
            if not self._received:
                if self._invalid_reason:
                    for event in await self._heal():
                        yield event
                    continue
                await self._wait()
                continue
            message, about = self._received.popleft()
            if about is None:
                self._handle_control(message)
                continue
            self._last, self._last_at = about.stream_sequence, about.at_nanoseconds
            self._last_subject = message.subject
            if about.pending == 0 or about.stream_sequence >= self._target:
                self._target = 0
            yield delivered(message, about)
            delivered_count += 1
            if delivered_count % YIELD_EVERY == 0:
                await asyncio.sleep(0)

    async def _wait(self) -> None:
        self._arrived.clear()
        try:
            async with asyncio.timeout(HEARTBEAT_SECONDS * MISSED_HEARTBEATS):
                await self._arrived.wait()
        except TimeoutError:
            self._invalidate("no heartbeat")

    def _handle_control(self, message: RawMessage) -> None:
        """Respond to flow control; a heartbeat means that nothing is left to deliver."""
        if message.reply:
            self._connection.send_nowait((publish_command(message.reply, b""),))
            return
        stalled = decode_headers(message.header).get("Nats-Consumer-Stalled")
        if stalled:
            self._connection.send_nowait((publish_command(stalled, b""),))
        else:
            self._target = 0

    def _receive(self, message: RawMessage) -> None:
        """Called as messages are parsed: keep what is in order, notice what is not."""
        self._last_activity_at = time.monotonic()
        if self._invalid_reason:
            return
        if message.status == _CONTROL:
            if not message.reply:
                last = int(decode_headers(message.header).get("Nats-Last-Consumer", "0"))
                if last > self._consumer_sequence:
                    self._invalidate(f"heard {self._consumer_sequence} of {last} messages")
                    return
            self._received.append((message, None))
        elif message.status:
            self._invalidate(f"{message.status} {message.description}")
        else:
            about = read_ack_subject(message.reply)
            if about.consumer_sequence != self._consumer_sequence + 1:
                self._invalidate(f"message {about.consumer_sequence} came after {self._consumer_sequence}")
                return
            self._consumer_sequence = about.consumer_sequence
            self._received.append((message, about))
        self._arrived.set()

    def _invalidate(self, reason: str) -> None:
        self._invalid_reason = reason
        self._arrived.set()

    def _on_lost_connection(self) -> None:
        if self._listener is not None:
            self._invalidate("the connection was lost")

    async def _heal(self) -> list[FollowEvent]:
        """Make the consumer anew; returns FollowRestarted when that has to be from the start."""
        last_activity_at = self._last_activity_at
        restarted: list[FollowEvent] = []
        log.info("follower.resumed", stream=self._stream, after=self._last, reason=self._invalid_reason)
        for attempt in itertools.count():
            try:
                position, pending = await self._create(attempt_timeout_seconds(attempt))
                reason = await self._reason_to_restart(position, time.monotonic() - last_activity_at)
            except (Unavailable, BadRequest) as error:
                log.debug("follower.delayed", stream=self._stream, reason=error.message)
                await asyncio.sleep(RETRY_SECONDS)
                continue
            self._server = self._connection.server_id
            if reason is not None:
                log.warning("follower.restarted", stream=self._stream, reason=reason)
                restarted = [FollowRestarted(reason)]
                self._last, self._last_at, self._created, self._replayed = None, 0, position.created, False
                self._stream_last = position.sequence
                last_activity_at = time.monotonic()
                continue
            self._stream_last = position.sequence
            if not self._replayed:
                self._target = position.sequence if pending else 0
            break
        return restarted

    async def _reason_to_restart(self, position: StreamPosition, silent_seconds: float) -> str | None:
        if position.created != self._created:
            return "the stream was created anew"
        expected = max(self._last or 0, self._stream_last)
        if position.sequence < expected:
            return f"the stream went back from {expected} to {position.sequence}"
        if silent_seconds > self._max_silent_seconds:
            return f"nothing was heard for {silent_seconds:.0f} s"
        if expected and self._connection.server_id != self._server and not await self._has_last():
            return f"the server restarted, and does not have message {self._last or expected} as it was"
        return None

    async def _has_last(self) -> bool:
        """True if the last message delivered is in the stream; False if none was. Raises Unavailable.

        By its subject where that can be read: who may follow some subjects only may not read messages by their number.
        """
        if not self._last:
            return False
        if self._allows_direct:
            last = (
                await last_message(self._connection, self._stream, self._last_subject) if self._last_subject else None
            )
            return last is not None and last.sequence == self._last and last.at == from_nanoseconds(self._last_at)
        try:
            found = await call(self._connection, f"STREAM.MSG.GET.{self._stream}", {"seq": self._last})
        except JetStreamError as error:
            if error.number == NO_MESSAGE:
                return False
            raise Unavailable(str(error)) from error
        return nanoseconds(found["message"]["time"]) == self._last_at

    async def _create(self, timeout_seconds: float) -> tuple[StreamPosition, int]:
        """A new consumer, then the stream's position and how many messages the consumer has before it.

        Each is awaited for so long. Raises Unavailable, ResponseTimeout among them, or BadRequest.
        """
        self._stop_listening()
        self._received.clear()
        self._consumer_sequence = 0
        self._invalid_reason = ""
        name = f"follower-{secrets.token_hex(6)}"
        inbox = self._connection.new_inbox()
        try:
            self._connection.require_connected()
            self._listener = await self._connection.listen(inbox, self._receive)
            created = await call(
                self._connection,
                self._endpoint(name),
                {"stream_name": self._stream, "config": self._settings(name, inbox)},
                timeout_seconds=timeout_seconds,
            )
            response = from_leader(
                self._stream,
                await call(self._connection, f"STREAM.INFO.{self._stream}", timeout_seconds=timeout_seconds),
            )
        except JetStreamError as api_error:
            self._invalidate(str(api_error))
            raise api_error.translated_for_follower() from api_error
        except Unavailable as error:
            self._invalidate(error.message)
            raise
        self._allows_direct = bool(response["config"].get("allow_direct"))
        position = StreamPosition(nanoseconds(response["created"]), int(response["state"]["last_seq"]))
        return position, int(created["num_pending"])

    def _endpoint(self, name: str) -> str:
        own = f"CONSUMER.CREATE.{self._stream}.{name}"
        return f"{own}.{self._filters[0]}" if len(self._filters) == 1 else own

    def _settings(self, name: str, inbox: str) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "name": name,
            "description": f"followed by {self._connection.client_name}",
            "deliver_subject": inbox,
            "ack_policy": "none",
            "max_deliver": 1,
            "mem_storage": True,
            "num_replicas": 1,
            "flow_control": True,
            "idle_heartbeat": int(HEARTBEAT_SECONDS * _SECOND),
            "inactive_threshold": int(INACTIVE_SECONDS * _SECOND),
            "headers_only": self._headers_only,
            "deliver_policy": "last_per_subject" if self._last_per_subject else "all",
        }
        if self._last is not None:
            settings |= {"deliver_policy": "by_start_sequence", "opt_start_seq": self._last + 1}
        if len(self._filters) == 1:
            settings["filter_subject"] = self._filters[0]
        elif self._filters:
            settings["filter_subjects"] = self._filters
        return settings
