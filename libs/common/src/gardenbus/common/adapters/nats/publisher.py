"""Publishing: one message, many pipelined, or a batch in order that nobody else comes between.

A batch goes in one of two forms:

| form   | stored                                | costs the server                                     |
|--------|---------------------------------------|------------------------------------------------------|
| atomic | whole or not at all (ADR-50)          | a store of its own, made and removed; one sync       |
| chain  | up to the first that is rejected      | as much as single messages; a sync each, if it syncs |

In a chain the first message expects the stream's last sequence, each other one the id of the one before it; only the
last is acknowledged. Ids are made for one attempt and never sent again: what a publisher that was paused has still on
its way finds somebody else's id, or none, and is rejected, all of it, and no repetition is dropped as a duplicate.

A cluster gets no chains. Its servers agree on a message before they look at the id that it expects, and one that does
not fit is an error of the stream to them (2.15): each stops writing it, for good.
"""

import secrets
from collections.abc import Sequence

import structlog

from gardenbus.common.adapters.nats.api import BATCH_INCOMPLETE, JetStreamError, decode_response
from gardenbus.common.adapters.nats.connection import Connection
from gardenbus.common.adapters.nats.messages import RawMessage, encode_header_lines, publish_command
from gardenbus.common.adapters.nats.write_breaker import WriteBreaker
from gardenbus.common.errors import BadRequest, Conflict, GardenbusError, Unavailable
from gardenbus.common.ports.bus import Message

PUBLISH_TIMEOUT_SECONDS = 5.0
BATCH_TIMEOUT_SECONDS = 10.0
BATCH_LIMIT = 1000
"""Messages that the server accepts in one atomic batch."""

WINDOW = 1000
"""Messages of `publish_many` on their way at once."""

SMALLEST_BATCH = 16
"""Fewer messages are not worth a batch, for which the server makes, syncs and removes a store of its own.

A server that does not sync each write stores single messages at less cost whatever their number.
"""

_BATCHED = {
    "queue": "QUEUES",
    "later": "QUEUES",
    "event": "EVENTS",
}
"""Streams that `publish_many` sends batches to, by the word after the prefix: nobody outside publishes on them."""

_ONE_PUBLISHERS = "EVENTS"
"""The one of these on which only the leading relay publishes: others would break its chains again and again."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class Publisher:
    """See the module; the methods are those of the port."""

    def __init__(self, connection: Connection, prefix: str, *, syncs_always: bool) -> None:
        self._connection = connection
        self._breaker = WriteBreaker(connection, prefix)
        self._syncs_always = syncs_always
        self._prefix = f"{prefix}."

    async def publish(self, message: Message, *, expected_subject_sequence: int | None = None) -> int:
        """Store one message; see the port."""
        extra = b""
        if expected_subject_sequence is not None:
            extra = b"Nats-Expected-Last-Subject-Sequence: %d\r\n" % expected_subject_sequence
        return await self._store_one(message, extra)

    async def publish_many(self, messages: Sequence[Message]) -> None:
        """Store many; see the port. A message that is rejected for good raises BadRequest.

        Goes in atomic batches where the stream allows them and the server syncs each write, then once a batch, or is of
        a cluster. Elsewhere what nobody else publishes is chained, which spares the acknowledgements but for the last.
        """
        for stream, group in self._grouped(messages):
            for start in range(0, len(group), WINDOW):
                window = group[start : start + WINDOW]
                if not await self._stored_together(stream, window):
                    await self._store_each(window)

    async def publish_batch(
        self, messages: Sequence[Message], *, expected_last_sequence: int, whole: bool = False
    ) -> int:
        """Store a batch in order; see the port."""
        if not messages:
            return expected_last_sequence
        if len(messages) > BATCH_LIMIT:
            raise BadRequest(f"{len(messages)} messages are too many for one batch of at most {BATCH_LIMIT}")
        if len(messages) == 1:
            return await self._store_one(messages[0], _after_sequence(expected_last_sequence))
        if whole or self._connection.is_clustered or (self._syncs_always and len(messages) >= SMALLEST_BATCH):
            return await self._store_batch(messages, expected_last_sequence)
        return await self._store_chain(messages, _after_sequence(expected_last_sequence))

    def _grouped(self, messages: Sequence[Message]) -> Sequence[tuple[str, Sequence[Message]]]:
        """The messages by stream, as far as it matters which."""
        groups: dict[str, list[Message]] = {}
        for message in messages:
            kind = message.subject[len(self._prefix) :].partition(".")[0]
            groups.setdefault(_BATCHED.get(kind, ""), []).append(message)
        return list(groups.items())

    async def _store_one(self, message: Message, extra: bytes) -> int:
        with self._connection.awaited_replies() as (reply, future):
            responses = await self._breaker.exchange(
                (self._command(message, extra, reply),),
                future,
                about=message.subject,
                timeout_seconds=PUBLISH_TIMEOUT_SECONDS,
            )
        return self._stored(responses[0], message.subject)

    async def _stored_together(self, stream: str, messages: Sequence[Message]) -> bool:
        """Store as a batch or chain; False when they are not worth it or one was rejected: they go one by one then."""
        is_atomic = self._syncs_always or self._connection.is_clustered
        try:
            if is_atomic and stream and len(messages) >= SMALLEST_BATCH:
                await self._store_batch(messages, None)
            elif not is_atomic and stream == _ONE_PUBLISHERS and len(messages) > 1:
                await self._store_chain(messages, b"")
            else:
                return False
        except (BadRequest, Conflict) as error:
            log.info("batch.divided", messages=len(messages), reason=error.message)
            return False
        return True

    async def _store_each(self, messages: Sequence[Message]) -> None:
        with self._connection.awaited_replies(len(messages)) as (reply, future):
            responses = await self._breaker.exchange(
                [self._command(message, b"", reply) for message in messages],
                future,
                about=f"{messages[0].subject} and {len(messages) - 1} more",
                timeout_seconds=BATCH_TIMEOUT_SECONDS,
            )
        for response in responses:
            self._stored(response, messages[0].subject)

    async def _store_batch(self, messages: Sequence[Message], expected_last_sequence: int | None) -> int:
        opening = f"Nats-Batch-Id: {secrets.token_hex(11)}\r\nNats-Batch-Sequence: ".encode()
        last = len(messages)
        commands: list[bytes] = []
        with self._connection.awaited_replies() as (reply, future):
            for number, message in enumerate(messages, start=1):
                extra = b"%b%d\r\n" % (opening, number)
                if number == 1 and expected_last_sequence is not None:
                    extra += _after_sequence(expected_last_sequence)
                if number == last:
                    extra += b"Nats-Batch-Commit: 1\r\n"
                commands.append(self._command(message, extra, reply if number == last else ""))
            responses = await self._breaker.exchange(
                commands,
                future,
                about=f"{messages[0].subject} and {last - 1} more in a batch",
                timeout_seconds=BATCH_TIMEOUT_SECONDS,
            )
        return self._stored(responses[0], messages[0].subject)

    async def _store_chain(self, messages: Sequence[Message], after: bytes) -> int:
        """Store messages each after its predecessor. `after`: header lines of what the first one expects."""
        attempt = secrets.token_hex(8).encode()
        last = len(messages)
        commands: list[bytes] = []
        with self._connection.awaited_replies() as (reply, future):
            for number, message in enumerate(messages, start=1):
                extra = b"%bNats-Msg-Id: %b.%d\r\n" % (after, attempt, number)
                commands.append(self._command(message, extra, reply if number == last else ""))
                after = b"Nats-Expected-Last-Msg-Id: %b.%d\r\n" % (attempt, number)
            responses = await self._breaker.exchange(
                commands,
                future,
                about=f"{messages[0].subject} and {last - 1} more in a row",
                timeout_seconds=BATCH_TIMEOUT_SECONDS,
            )
        try:
            return self._stored(responses[0], messages[0].subject)
        except BadRequest as error:  # of the last one, or one before it is missing
            raise Conflict(f"not all of {last} messages were stored: {error.message}") from error

    def _stored(self, response: RawMessage, subject: str) -> int:
        """The sequence in an acknowledgement. Raises JetStream's error, translated."""
        try:
            sequence = int(decode_response(response.body)["seq"])
        except JetStreamError as api_error:
            raise (self._breaker.explained(subject, api_error) or _translated(api_error)) from api_error
        except KeyError as error:
            raise Unavailable(f"a response of {response.body[:100]!r} is no acknowledgement") from error
        self._breaker.stored(subject)
        return sequence

    def _command(self, message: Message, extra: bytes, reply: str) -> bytes:
        """One message's command; `extra` are header lines of the publisher's own."""
        subject, body = message.subject, message.body
        if message.ttl is not None:
            extra += b"Nats-TTL: %ds\r\n" % max(1, round(message.ttl.total_seconds()))
        if "*" in subject or ">" in subject:
            raise BadRequest(f"{subject[:200]!r} is a filter, not a subject to publish on")
        lines = encode_header_lines(message.headers) + extra + message.lines
        block = b"NATS/1.0\r\n%b\r\n" % lines if lines else b""
        if len(block) + len(body) > self._connection.max_payload:
            raise BadRequest(
                f"{len(body)} bytes on {subject[:200]!r} are more than the bus takes ({self._connection.max_payload})"
            )
        return publish_command(subject, body, block, reply)


def _after_sequence(sequence: int) -> bytes:
    return b"Nats-Expected-Last-Sequence: %d\r\n" % sequence


def _translated(api_error: JetStreamError) -> GardenbusError:
    # An incomplete batch on an unbroken connection: the server rejected one of its messages silently.
    return BadRequest(str(api_error)) if api_error.number == BATCH_INCOMPLETE else api_error.translated()
