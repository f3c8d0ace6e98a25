"""Follower for somebody outside the services: named pull consumers of its own, one for each of its filters.

Only a consumer whose name and only filter are its owner's can be confined (permissions.py), so `follower.py`'s
consumers of any name are not for outsiders, nor is a stream's information. A consumer is ephemeral and in the server's
memory, without acknowledgements; one request at a time fetches from it.

| what is noticed                                 | what follows                                                  |
|-------------------------------------------------|---------------------------------------------------------------|
| a lost connection, a missed heartbeat, a status | the consumer is looked at                                     |
| … it stands where we stand                      | fetching goes on                                              |
| … it is ahead: what it delivered got lost       | made anew, after the last message received                    |
| … it is not there, twice                        | `FollowRestarted`, and all filters from the start             |
| … it began anew: its numbers are behind ours    | the same                                                      |
| … its server in the cluster is down             | the same                                                      |
| … it has another owner                          | Conflict: another process follows in the same name            |

A consumer dies with its stream and with the server's process: one that goes on counting proves that the stream is the
same. In a cluster one server has it, which makes it again when it starts: with our mark, but from its start, on a
stream that may have gone back. While that server is down the others keep it assigned, and are silent about it until
they have missed the server for minutes; then they say that it is offline. Until then they also put new ones there, and
remove those again without a word: each consumer is made until it is, and those that are stay. A server that has just
started, and is catching up, says of a new one that nothing is left before it has got it: `ReplayDone` may come too
early then, and nobody may conclude from it that something is gone.

An owner makes its consumers anew whenever it begins, over whatever stands there by their name. So of two processes of
one agent the younger one follows; the older one sees its consumer gone, then another's there, and stops. Could it ever
fetch before it noticed, the gap in the numbers of its consumer would show the younger one what it missed.
"""

import asyncio
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec
import structlog

from gardenbus.common.adapters.nats.api import (
    API_TIMEOUT_SECONDS,
    CONSUMER_NOT_FOUND,
    CONSUMER_OFFLINE,
    STREAM_NOT_FOUND,
    AckSubject,
    JetStreamError,
    attempt_timeout_seconds,
    call,
    delivered,
    read_ack_subject,
)
from gardenbus.common.adapters.nats.connection import Connection, ResponseTimeout
from gardenbus.common.adapters.nats.follower import HEARTBEAT_SECONDS, MISSED_HEARTBEATS, YIELD_EVERY
from gardenbus.common.adapters.nats.messages import RawMessage, decode_headers, publish_command
from gardenbus.common.errors import Conflict, Unavailable
from gardenbus.common.ports.bus import FollowEvent, FollowRestarted, ReplayDone

FETCH_SECONDS = 120.0
"""Life of a request."""

BATCH = 100
"""Messages of a request: as many as the apiserver permits."""

INACTIVE_SECONDS = 60.0
"""Life of a consumer that nobody fetches from."""

RETRY_SECONDS = 0.5

TIMEOUTS_UNTIL_DOWN = 3
"""So many requests about a consumer in a cluster, each awaited longer than the last, and its server counts as down."""

AS_LONG = 4
"""So many attempts to make consumers anew are awaited for the same time: most that get no response never will."""

_SECOND = 1_000_000_000
_HEARTBEAT, _NO_MESSAGES, _TIMED_OUT = 100, 404, 408
_EXISTS = frozenset({10012, 10013, 10105, 10148})
_GONE = frozenset({CONSUMER_NOT_FOUND, STREAM_NOT_FOUND, CONSUMER_OFFLINE})
_ATTEMPTS = 5

Result = TypeVar("Result")

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class _OwnConsumer:
    """One consumer: its position, and the request that is under way."""

    def __init__(self, connection: Connection, stream: str, name: str, settings: Mapping[str, Any]) -> None:
        self.name = name
        self.invalid_reason = ""
        self.last: int | None = None
        """Stream sequence of the last message received."""

        self.is_replayed = False
        self.is_made = False
        self._began_anew = False
        self._is_missing = False
        self.timeout_seconds = API_TIMEOUT_SECONDS
        """Longest wait for the response to each request about it."""

        self.received: deque[tuple[RawMessage, AckSubject]] = deque()
        self.arrived = asyncio.Event()
        self._connection = connection
        self._stream = stream
        self._settings = settings
        self._owner = str(settings["metadata"]["owner"])
        self._sequence = 0
        self._fetched = 0
        self._timeouts = 0
        self._listener: int | None = None
        self.active_at = time.monotonic()

    async def make(self, *, after: int | None) -> None:
        """Make it anew: after a sequence, or as the settings say. Raises JetStreamError, Unavailable."""
        self.stop()
        if after is None:
            self.received.clear()
        self._began_anew = False
        self._sequence, self.last, self.is_replayed = 0, after, after is not None and self.is_replayed
        start = {"deliver_policy": "by_start_sequence", "opt_start_seq": after + 1} if after is not None else {}
        request = {"stream_name": self._stream, "action": "create", "config": {**self._settings, **start}}
        for attempt in range(_ATTEMPTS):
            await self._remove()
            try:
                made = await call(
                    self._connection,
                    f"CONSUMER.CREATE.{self._stream}.{self.name}.{self._settings['filter_subject']}",
                    request,
                    timeout_seconds=self.timeout_seconds,
                )
            except JetStreamError as error:
                if error.number not in _EXISTS or attempt == _ATTEMPTS - 1:
                    raise
            else:
                self.is_replayed = self.is_replayed or not made["num_pending"]
                self.is_made = True
                self._valid()
                return

    async def _remove(self) -> None:
        try:
            await self._call("DELETE")
        except JetStreamError as error:
            if error.number != CONSUMER_NOT_FOUND:
                raise

    async def is_intact(self) -> bool | None:
        """True if it stands where we stand, False if it is ahead, None when it is not there (any more) or cannot be.

        Raises Conflict when it is somebody else's, Unavailable, JetStreamError.
        """
        try:
            found = await self._call("INFO")
        except JetStreamError as error:
            if error.number == CONSUMER_NOT_FOUND and not self._is_missing:
                self._is_missing = True
                raise Unavailable(f"{self.name} is gone: a younger process may be about to make it") from error
            if error.number in _GONE:
                return None
            raise
        except ResponseTimeout:
            self._timeouts += 1
            if self._connection.is_clustered and self._timeouts >= TIMEOUTS_UNTIL_DOWN:
                return None
            raise
        metadata: Mapping[str, str] = found["config"].get("metadata") or {}
        if metadata.get("owner") != self._owner:
            raise Conflict(f"another process follows {self._stream} as {self.name}")
        number = int(found["delivered"]["consumer_seq"])
        return None if self._began_anew or number < self._sequence else number == self._sequence

    async def _call(self, verb: str) -> dict[str, Any]:
        endpoint = f"CONSUMER.{verb}.{self._stream}.{self.name}"
        return await call(self._connection, endpoint, timeout_seconds=self.timeout_seconds)

    async def fetch(self) -> None:
        """Request messages, unless a request is under way. Raises Unavailable."""
        if self._listener is not None:
            return
        self._connection.require_connected()
        inbox = self._connection.new_inbox()
        self._fetched = 0
        self.active_at = time.monotonic()
        self._listener = await self._connection.listen(inbox, self._receive)
        request = {
            "batch": BATCH,
            "expires": int(FETCH_SECONDS * _SECOND),
            "idle_heartbeat": int(HEARTBEAT_SECONDS * _SECOND),
        }
        subject = f"{self._connection.jetstream_api}.CONSUMER.MSG.NEXT.{self._stream}.{self.name}"
        await self._connection.send((publish_command(subject, msgspec.json.encode(request), reply=inbox),))

    def stop(self) -> None:
        """End the request; the server keeps a mapping for its replies as long as they are listened to."""
        if self._listener is not None:
            self._connection.unlisten(self._listener)
            self._listener = None

    def invalidate(self, reason: str) -> None:
        """Have it checked again."""
        self.stop()
        self.invalid_reason = self.invalid_reason or reason
        self.arrived.set()

    def resume(self) -> None:
        """Go on fetching."""
        self._valid()

    def _valid(self) -> None:
        self.invalid_reason = ""
        self._timeouts = 0
        self._is_missing = False
        self.active_at = time.monotonic()

    def check_heartbeat(self) -> None:
        """Invalidate it when nothing was heard for too long."""
        if self._listener is not None and self.seconds_left <= 0:
            self.invalidate("no heartbeat")

    @property
    def seconds_left(self) -> float:
        """Seconds within which something must be heard."""
        return self.active_at + HEARTBEAT_SECONDS * MISSED_HEARTBEATS - time.monotonic()

    def _receive(self, message: RawMessage) -> None:
        """Called as messages are parsed: keep what is in order, notice what is not."""
        self.active_at = time.monotonic()
        if self.invalid_reason:
            return
        if message.status == _HEARTBEAT:
            self._note_heartbeat(message)
        elif message.status in (_NO_MESSAGES, _TIMED_OUT):
            self.stop()
        elif message.status:
            self.invalidate(f"{message.status} {message.description}")
        else:
            about = read_ack_subject(message.reply)
            if about.consumer_sequence != self._sequence + 1:
                self._began_anew = about.consumer_sequence <= self._sequence
                self.invalidate(f"message {about.consumer_sequence} came after {self._sequence}")
                return
            self._sequence, self.last = about.consumer_sequence, about.stream_sequence
            self.received.append((message, about))
            self._fetched += 1
            if self._fetched >= BATCH:
                self.stop()
        self.arrived.set()

    def _note_heartbeat(self, message: RawMessage) -> None:
        """Nothing is left to deliver, and so many messages were delivered."""
        last = int(decode_headers(message.header).get("Nats-Last-Consumer", "0"))
        if last != self._sequence:
            self._began_anew = last < self._sequence
            self.invalidate(f"heard {self._sequence} of {last} messages")
        elif not self.received:
            self.is_replayed = True


class OwnFollower:
    """See the module. `consumers`: filter → name. `after_sequence` None: from the start, or the last of each."""

    def __init__(
        self,
        connection: Connection,
        stream: str,
        consumers: Mapping[str, str],
        *,
        after_sequence: int | None,
        last_per_subject: bool,
        headers_only: bool,
    ) -> None:
        self._connection = connection
        self._stream = stream
        self._after = after_sequence
        self._arrived = asyncio.Event()
        self._replayed = False
        owner = secrets.token_hex(8)
        self._consumers = [
            _OwnConsumer(
                connection,
                stream,
                name,
                _settings(each, name, owner=owner, last_per_subject=last_per_subject, headers_only=headers_only),
            )
            for each, name in sorted(consumers.items())
        ]
        for each in self._consumers:
            each.arrived = self._arrived
        self._unregister = connection.when_lost(self._on_lost_connection)

    @property
    def silent_seconds(self) -> float:
        """Seconds since the last message or heartbeat."""
        return time.monotonic() - min(each.active_at for each in self._consumers)

    async def open(self) -> None:
        """Create the consumers. Raises Unavailable, or BadRequest when a filter does not suit the stream."""
        self._connection.require_connected()
        try:
            await self._begin(self._after)
        except JetStreamError as api_error:
            raise api_error.translated_for_follower() from api_error

    def close(self) -> None:
        """Fetch no more; the server removes the consumers by itself."""
        self._unregister()
        for each in self._consumers:
            each.stop()

    async def _begin(self, after: int | None) -> None:
        for each in self._consumers:
            if not each.is_made:
                await each.make(after=after)

    def __aiter__(self) -> AsyncIterator[FollowEvent]:
        """See the port."""
        return self._events()

    async def _events(self) -> AsyncIterator[FollowEvent]:
        delivered_count = 0
        while True:
            if waiting := self._oldest():
                message, about = waiting.received.popleft()
                if about.pending == 0:
                    waiting.is_replayed = True
                yield delivered(message, about)
                delivered_count += 1
                if delivered_count % YIELD_EVERY == 0:
                    await asyncio.sleep(0)
            elif not self._replayed and all(each.is_replayed for each in self._consumers):
                self._replayed = True
                yield ReplayDone(max((each.last or 0 for each in self._consumers), default=0))
            elif any(each.invalid_reason for each in self._consumers):
                for event in await self._heal():
                    yield event
            else:
                await self._wait()

    def _oldest(self) -> _OwnConsumer | None:
        """The consumer whose next message is the oldest of those that are here."""
        waiting = (each for each in self._consumers if each.received)
        return min(waiting, key=lambda each: each.received[0][1].stream_sequence, default=None)

    async def _wait(self) -> None:
        """Fetch where no request is under way, and wait for something to arrive."""
        self._arrived.clear()
        try:
            for each in self._consumers:
                await each.fetch()
        except Unavailable as error:
            for each in self._consumers:
                each.invalidate(error.message)
            return
        if any(each.received for each in self._consumers):
            return
        try:
            async with asyncio.timeout(max(0.0, min(each.seconds_left for each in self._consumers))):
                await self._arrived.wait()
        except TimeoutError:
            for each in self._consumers:
                each.check_heartbeat()

    def _on_lost_connection(self) -> None:
        for each in self._consumers:
            each.invalidate("the connection was lost")

    async def _heal(self) -> list[FollowEvent]:
        """Bring the consumers back; returns FollowRestarted when all begin at the start. Raises Conflict."""
        reason = next(each.invalid_reason for each in self._consumers if each.invalid_reason)
        log.info("follower.resumed", stream=self._stream, reason=reason)
        if await self._repeat(self._resumed):
            return []
        log.warning("follower.restarted", stream=self._stream, reason=reason)
        self._replayed = False
        for each in self._consumers:
            each.is_made = False
        await self._repeat(lambda: self._begin(None), as_long=AS_LONG)
        return [FollowRestarted(f"{reason}: the consumer is gone, and what it stood on may be")]

    async def _repeat(self, step: Callable[[], Awaitable[Result]], *, as_long: int = 1) -> Result:
        """The result of a step, repeated until there is one, so often with the same timeout. Raises Conflict."""
        attempt = 0
        while True:
            for each in self._consumers:
                each.timeout_seconds = attempt_timeout_seconds(attempt // as_long)
            try:
                return await step()
            except (Unavailable, JetStreamError) as error:
                log.debug("follower.delayed", stream=self._stream, reason=str(error))
                await asyncio.sleep(RETRY_SECONDS)
                attempt += 1

    async def _resumed(self) -> bool:
        """Go on where each consumer stood; False when one is gone."""
        for each in self._consumers:
            if not each.invalid_reason:
                continue
            is_intact = await each.is_intact()
            if is_intact is None:
                return False
            if is_intact:
                each.resume()
            elif each.last is None:
                return False
            else:
                await each.make(after=each.last)
        return True


def _settings(
    filter_subject: str, name: str, *, owner: str, last_per_subject: bool, headers_only: bool
) -> Mapping[str, Any]:
    return {
        "name": name,
        "filter_subject": filter_subject,
        "deliver_policy": "last_per_subject" if last_per_subject else "all",
        "ack_policy": "none",
        "mem_storage": True,
        "num_replicas": 1,
        "inactive_threshold": int(INACTIVE_SECONDS * _SECOND),
        "headers_only": headers_only,
        "max_waiting": 1,
        "metadata": {"owner": owner},
    }
