"""Write breaker: publishes are rejected at once, with the reason, while nats-server responds but stores nothing.

nats-server does not acknowledge a publish that it failed to write, and keeps failing until it is restarted, even when
its disk has room again. A publish without an acknowledgement in time leads to a probe; if that gets a response:

    closed ─no acknowledgement, but NATS responds→ open ─a publish is acknowledged, or the connection is new→ closed

Open, one publish at a time goes through as a probe, and the others are rejected. There is one state for each stream, by
the first word of the subjects: each has files of its own, and in a cluster a leader of its own, which may hang while
others respond. What was found is forgotten after FORGOTTEN_AFTER_SECONDS without a publish that confirms it: a relay
that leads no more publishes no more, and would say it for ever.
"""

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

import structlog

from gardenbus.common.adapters.nats.api import JetStreamError, call
from gardenbus.common.adapters.nats.connection import Connection, ResponseTimeout
from gardenbus.common.adapters.nats.messages import RawMessage
from gardenbus.common.errors import TooManyRequests, Unavailable

QUESTION_SECONDS = 2.0
FORGOTTEN_AFTER_SECONDS = 30.0
SUGGESTION = "its disk is full, or was: make room, then restart it (or the server that leads the stream hangs)"

SHORT_OF_STORAGE = frozenset({10023, 10028, 10047, 10077})
"""Insufficient resources, limit of the account, limit of the server, a write that failed."""

TOO_MANY_BYTES = "JetStream: maximum bytes exceeded"
"""Rejection of what is beyond the limit of a stream, with the number of a write that failed, too."""

TOO_MANY_OF_ONE = "JetStream: maximum messages per subject exceeded"
"""Rejection of what is beyond a subject's share of a stream; its number is that of any write that failed."""

_STREAMS = {
    **dict.fromkeys(("apply", "delete", "as", "out", "restored"), "REQUESTS"),
    **dict.fromkeys(("queue", "later"), "QUEUES"),
    **dict.fromkeys(("binding", "view"), "BINDINGS"),
    "changed": "OBJECTS",
    "lease": "LEASES",
    "report": "REPORTS",
    "event": "EVENTS",
    "rejected": "REJECTED",
    "history": "HISTORY",
}

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class _Finding(NamedTuple):
    """A stream that is not written: connections lost when that was found, and the timer by which it is forgotten."""

    losses: int
    end: asyncio.TimerHandle


class WriteBreaker:
    """See the module."""

    def __init__(self, connection: Connection, prefix: str) -> None:
        self._connection = connection
        self._prefix = f"{prefix}."
        self._open: dict[str, _Finding] = {}
        self._probing: set[str] = set()

    async def exchange(
        self,
        commands: Iterable[bytes],
        replies: "asyncio.Future[list[RawMessage]]",
        *,
        about: str,
        timeout_seconds: float,
    ) -> list[RawMessage]:
        """Write commands and wait for their acknowledgements; `about` begins with the subject. Raises Unavailable."""
        stream = self._stream(about)
        is_probe = self._is_open(stream)
        if is_probe and stream in self._probing:
            raise _cannot_write(stream)
        if is_probe:
            self._probing.add(stream)
        try:
            return await self._connection.exchange(commands, replies, about=about, timeout_seconds=timeout_seconds)
        except ResponseTimeout as error:
            if is_probe or await self._responds():
                self.trip(stream, "nothing is acknowledged")
                raise _cannot_write(stream) from error
            raise
        finally:
            if is_probe:
                self._probing.discard(stream)

    def stored(self, subject: str) -> None:
        """Close again: a message was stored."""
        if self._open and self._forget(stream := self._stream(subject)):
            log.info("stream.writable", stream=stream)

    def explained(self, subject: str, error: JetStreamError) -> Unavailable | None:
        """The rejection of a server that is short of storage, or has a sender's share already; None for others."""
        if str(error).startswith(TOO_MANY_OF_ONE):
            return TooManyRequests(f"too many messages on {subject} wait for the apiserver: send this again later")
        if str(error).startswith(TOO_MANY_BYTES):
            return TooManyRequests(f"{self._stream(subject)} holds as many bytes as it may: send this again later")
        if error.number not in SHORT_OF_STORAGE:
            return None
        stream = self._stream(subject)
        self.trip(stream, str(error))
        return Unavailable(f"NATS cannot write {stream}: {error}; {SUGGESTION}")

    def trip(self, stream: str, reason: str) -> None:
        """Remember that a stream is not written."""
        if stream not in self._open:
            log.error("stream.unwritable", stream=stream, reason=reason)
        self._forget(stream)
        end = asyncio.get_running_loop().call_later(FORGOTTEN_AFTER_SECONDS, self._forget, stream)
        self._open[stream] = _Finding(self._connection.losses, end)
        self._report()

    def _is_open(self, stream: str) -> bool:
        finding = self._open.get(stream)
        if finding is not None and finding.losses != self._connection.losses:  # the server may be another
            self._forget(stream)
            return False
        return finding is not None

    def _forget(self, stream: str) -> bool:
        finding = self._open.pop(stream, None)
        if finding is None:
            return False
        finding.end.cancel()
        self._report()
        return True

    async def _responds(self) -> bool:
        """True if JetStream responds to what needs no write."""
        if not self._connection.is_connected:
            return False
        try:
            await call(self._connection, "INFO", timeout_seconds=QUESTION_SECONDS)
        except JetStreamError:
            return True
        except Unavailable:
            return False
        return True

    def _report(self) -> None:
        names = ", ".join(sorted(self._open))
        self._connection.write_trouble = f"NATS cannot write {names}: {SUGGESTION}" if names else ""

    def _stream(self, subject: str) -> str:
        word = subject.removeprefix(self._prefix).partition(".")[0].partition(" ")[0]
        return _STREAMS.get(word, word)


def _cannot_write(stream: str) -> Unavailable:
    return Unavailable(f"NATS responds, but cannot write {stream}: {SUGGESTION}")
