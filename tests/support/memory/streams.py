"""JetStream's streams in memory, as far as this system relies on them: what `memory_bus` stands on.

A stream keeps messages by sequence, at most so many a subject, ends them by age or TTL, fires scheduled messages, and
hands work out until it is acknowledged. Nothing happens between two calls: `tick` catches up with the clock, and
everybody who waits sleeps no longer than until `next_due_at`.
"""

import itertools
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache

import msgspec

from gardenbus.common.api.keys import Subjects
from gardenbus.common.api.restored_requests import restored_subjects
from gardenbus.common.errors import BadRequest, Conflict
from gardenbus.common.ports.bus import Message, StreamMessage
from gardenbus.common.ports.clock import Clock

ACK_WAIT = timedelta(seconds=10)
MAX_PAYLOAD = 8 * 1024 * 1024

_SCHEDULE, _TARGET = "Nats-Schedule", "Nats-Schedule-Target"
_SCHEDULER, _NEXT = "Nats-Scheduler", "Nats-Schedule-Next"


@lru_cache(maxsize=1 << 16)
def subject_matches(subject_filter: str, subject: str) -> bool:
    """True if a subject matches a filter with `*` and `>`."""
    words, parts = subject_filter.split("."), subject.split(".")
    for position, word in enumerate(words):
        if word == ">":
            return len(parts) > position
        if position >= len(parts) or word not in ("*", parts[position]):
            return False
    return len(words) == len(parts)


class StreamKind(msgspec.Struct, frozen=True, kw_only=True):
    """Configuration of one stream."""

    name: str
    filters: Sequence[str]
    max_per_subject: int | None = None
    is_work_queue: bool = False
    allows_batches: bool = False
    has_schedules: bool = False
    has_ttl: bool = False
    max_age: timedelta | None = None


def stream_kinds(subjects: Subjects, lease_age: timedelta) -> Sequence[StreamKind]:
    """The streams of a landscape."""
    prefix, name = subjects.prefix, subjects.stream
    requests = [subjects.apply, subjects.delete, subjects.as_user("*", "apply"), subjects.as_user("*", "delete")]
    requests += restored_subjects(subjects)
    return (
        StreamKind(name=name("REQUESTS"), filters=requests, is_work_queue=True),
        StreamKind(
            name=name("OBJECTS"), filters=[f"{prefix}.changed.>"], max_per_subject=1, allows_batches=True, has_ttl=True
        ),
        StreamKind(
            name=name("QUEUES"),
            filters=[f"{prefix}.queue.>", f"{prefix}.later.>"],
            max_per_subject=1,
            is_work_queue=True,
            allows_batches=True,
            has_schedules=True,
        ),
        StreamKind(
            name=name("BINDINGS"),
            filters=[f"{prefix}.binding.>", f"{prefix}.view.>"],
            max_per_subject=1,
            allows_batches=True,
        ),
        StreamKind(
            name=name("LEASES"),
            filters=[f"{prefix}.lease.>"],
            max_per_subject=1,
            max_age=lease_age,
        ),
        StreamKind(name=name("REPORTS"), filters=[f"{prefix}.report.>"], is_work_queue=True),
        StreamKind(
            name=name("EVENTS"),
            filters=[f"{prefix}.event.>"],
            max_per_subject=100,
            allows_batches=True,
            max_age=timedelta(days=1),
        ),
        StreamKind(
            name=name("REJECTED"), filters=list(subjects.rejections), max_per_subject=2048, max_age=timedelta(days=7)
        ),
        StreamKind(
            name=name("HISTORY"),
            filters=[f"{prefix}.history.>"],
            max_age=timedelta(days=30),
            allows_batches=True,
            has_ttl=True,
        ),
    )


class MemoryConsumer:
    """Durable consumer of a work queue: what is ready, and what is in flight until when."""

    def __init__(self, subject_filter: str) -> None:
        self.subject_filter = subject_filter
        self.ready: deque[int] = deque()
        self.in_flight: dict[int, datetime] = {}
        self.deliveries: dict[int, int] = {}

    def narrow(self, subject_filter: str) -> None:
        """Deliver what another filter lets through, from now on."""
        self.subject_filter = subject_filter

    def forget(self, sequence: int) -> None:
        """The message is gone."""
        self.in_flight.pop(sequence, None)
        self.deliveries.pop(sequence, None)


class StreamCopy(msgspec.Struct, frozen=True):
    """A stream as a copy of the disk holds it."""

    created: int
    last_sequence: int
    messages: Mapping[int, StreamMessage]
    ends_at: Mapping[int, datetime]
    fires_at: Mapping[int, datetime]
    deliveries: Mapping[str, tuple[str, Mapping[int, int]]]


class MemoryStream:
    """See the module. `changed` is called whenever something may be there to deliver."""

    def __init__(self, kind: StreamKind, clock: Clock, created: int, changed: Callable[[], None]) -> None:
        self.kind = kind
        self.created = created
        self.last_sequence = 0
        self.last_stored_at: datetime | None = None
        self.messages: dict[int, StreamMessage] = {}
        self.consumers: dict[str, MemoryConsumer] = {}
        self.taps: list[Callable[[StreamMessage], None]] = []
        self._clock = clock
        self._changed = changed
        self._by_subject: dict[str, deque[int]] = {}
        self._ends_at: dict[int, datetime] = {}
        self._fires_at: dict[int, datetime] = {}

    def last_on(self, subject: str) -> StreamMessage | None:
        """The last message on a subject."""
        sequences = self._by_subject.get(subject)
        return self.messages[sequences[-1]] if sequences else None

    def first_from(self, sequence: int) -> StreamMessage | None:
        """The first message at a sequence or behind it."""
        return next((self.messages[each] for each in sorted(self.messages) if each >= sequence), None)

    def messages_from(self, subject_filter: str, sequence: int, limit: int) -> list[StreamMessage]:
        """Messages at a sequence and behind it."""
        matching = (
            message
            for each, message in sorted(self.messages.items())
            if each >= sequence and subject_matches(subject_filter, message.subject)
        )
        return list(itertools.islice(matching, limit))

    def counts(self, subject_filter: str) -> dict[str, int]:
        """Live subjects with their number of messages."""
        return {
            subject: len(sequences)
            for subject, sequences in self._by_subject.items()
            if subject_matches(subject_filter, subject)
        }

    def check(self, message: Message, expected_subject_sequence: int | None = None) -> None:
        """Raise the server's error for a message that it rejects."""
        if len(message.body) > MAX_PAYLOAD:
            raise BadRequest(f"{len(message.body)} bytes on {message.subject!r} are more than the bus takes")
        if message.ttl is not None and not self.kind.has_ttl:
            raise BadRequest(f"{self.kind.name} takes no message with a TTL")
        if expected_subject_sequence is not None:
            last = self.last_on(message.subject)
            if (last.sequence if last else 0) != expected_subject_sequence:
                raise Conflict(f"the last message on {message.subject!r} is another")

    def copied(self) -> StreamCopy:
        """All that is stored."""
        consumers = {name: (each.subject_filter, dict(each.deliveries)) for name, each in self.consumers.items()}
        return StreamCopy(
            self.created,
            self.last_sequence,
            dict(self.messages),
            dict(self._ends_at),
            dict(self._fires_at),
            consumers,
        )

    def fill(self, copy: StreamCopy) -> None:
        """Take over a copy into an empty stream; what was in flight is ready again."""
        self.last_sequence = copy.last_sequence
        self.messages = dict(copy.messages)
        self._ends_at, self._fires_at = dict(copy.ends_at), dict(copy.fires_at)
        for sequence, message in self.messages.items():
            self._by_subject.setdefault(message.subject, deque()).append(sequence)
        for name, (subject_filter, deliveries) in copy.deliveries.items():
            self.consumer(name, subject_filter).deliveries = dict(deliveries)

    def append(self, message: Message) -> int:
        """Store one message."""
        return self._store(message)

    def remove(self, sequence: int) -> None:
        """Take a message out."""
        message = self.messages.pop(sequence, None)
        if message is None:
            return
        sequences = self._by_subject[message.subject]
        sequences.remove(sequence)
        if not sequences:
            del self._by_subject[message.subject]
        self._ends_at.pop(sequence, None)
        self._fires_at.pop(sequence, None)
        for consumer in self.consumers.values():
            consumer.forget(sequence)

    def purge(self, subject: str, *, upto_sequence: int | None = None) -> None:
        """Take all messages on a subject (or filter) out."""
        for live in list(self.counts(subject)):
            for sequence in tuple(self._by_subject[live]):
                if upto_sequence is None or sequence <= upto_sequence:
                    self.remove(sequence)

    def consumer(self, name: str, subject_filter: str) -> MemoryConsumer:
        """The durable consumer of that name, created at need."""
        if name not in self.consumers:
            consumer = self.consumers[name] = MemoryConsumer(subject_filter)
            consumer.ready.extend(
                sequence
                for sequence, message in self.messages.items()
                if sequence not in self._fires_at and subject_matches(subject_filter, message.subject)
            )
        return self.consumers[name]

    def claim(self, consumer: MemoryConsumer, limit: int, most_bytes: int = 0) -> list[tuple[StreamMessage, int]]:
        """Hand out messages, of no more bytes than that or one alone: each with the number of its deliveries."""
        size = 0
        claimed: list[tuple[StreamMessage, int]] = []
        while consumer.ready and len(claimed) < limit:
            sequence = consumer.ready.popleft()
            message = self.messages.get(sequence)
            if message is None or sequence in consumer.in_flight:
                continue
            size += len(message.subject) + len(message.body)
            if most_bytes and claimed and size > most_bytes:
                consumer.ready.appendleft(sequence)
                break
            consumer.in_flight[sequence] = self._clock.now() + ACK_WAIT
            consumer.deliveries[sequence] = consumer.deliveries.get(sequence, 0) + 1
            claimed.append((message, consumer.deliveries[sequence]))
        return claimed

    def redeliver(self, consumer: MemoryConsumer, sequence: int) -> None:
        """Have a message in flight delivered again."""
        if consumer.in_flight.pop(sequence, None) is not None:
            consumer.ready.append(sequence)
            self._changed()

    def extend_deadline(self, consumer: MemoryConsumer, sequence: int) -> None:
        """Restart the acknowledgement timer of a message in flight."""
        if sequence in consumer.in_flight:
            consumer.in_flight[sequence] = self._clock.now() + ACK_WAIT

    def floor(self, consumer: MemoryConsumer) -> int:
        """All messages up to this one have been acknowledged by the consumer."""
        waiting = [s for s in self.messages if subject_matches(consumer.subject_filter, self.messages[s].subject)]
        return min(waiting) - 1 if waiting else self.last_sequence

    def next_due_at(self) -> datetime | None:
        """Instant of the next expiry, timer or redelivery."""
        deadlines = [*self._ends_at.values(), *self._fires_at.values()]
        for consumer in self.consumers.values():
            deadlines.extend(consumer.in_flight.values())
        return min(deadlines, default=None)

    def tick(self) -> None:
        """Let happen what is due."""
        if not (self._ends_at or self._fires_at):
            for consumer in self.consumers.values():
                if consumer.in_flight:
                    break
            else:
                return
        now = self._clock.now()
        for sequence in [sequence for sequence, due_at in self._fires_at.items() if due_at <= now]:
            self._fire(self.messages[sequence])
        for sequence in [sequence for sequence, end_at in self._ends_at.items() if end_at <= now]:
            self.remove(sequence)
        for consumer in self.consumers.values():
            for sequence in [sequence for sequence, due_at in consumer.in_flight.items() if due_at <= now]:
                self.redeliver(consumer, sequence)

    def _store(self, message: Message) -> int:
        self.last_sequence += 1
        sequence, now = self.last_sequence, self._clock.now()
        self.last_stored_at = now
        headers = dict(message.headers)
        stored = StreamMessage(message.subject, message.body, headers, sequence, now)
        self.messages[sequence] = stored
        sequences = self._by_subject.setdefault(message.subject, deque())
        sequences.append(sequence)
        if self.kind.max_per_subject is not None and len(sequences) > self.kind.max_per_subject:
            self.remove(sequences[0])
        ages = [age for age in (self.kind.max_age, message.ttl) if age is not None]
        if ages:
            self._ends_at[sequence] = now + min(ages)
        if self.kind.has_schedules and _SCHEDULE in headers:
            self._fires_at[sequence] = datetime.fromisoformat(headers[_SCHEDULE].removeprefix("@at "))
        else:
            if headers.get(_NEXT) == "purge" and _SCHEDULER in headers:
                self.purge(headers[_SCHEDULER])
            for consumer in self.consumers.values():
                if subject_matches(consumer.subject_filter, message.subject):
                    consumer.ready.append(sequence)
        for tap in tuple(self.taps):
            tap(stored)
        self._changed()
        return sequence

    def _fire(self, timer: StreamMessage) -> None:
        own = {name: value for name, value in timer.headers.items() if name not in (_SCHEDULE, _TARGET)}
        self.remove(timer.sequence)
        self._store(Message(timer.headers[_TARGET], timer.body, {**own, _SCHEDULER: timer.subject, _NEXT: "purge"}))
