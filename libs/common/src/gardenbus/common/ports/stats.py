"""Statistics of the store and the bus, for people and metrics alone."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class StoreStats(NamedTuple):
    """Statistics of the store. `outbox_age_seconds` is the age of the oldest outbox entry, 0 without one.

    `memory_limit_bytes` is 0 where Redis has no limit. `pending` shoots need a seed; the unschedulable ones among them
    form `unschedulable_classes` of shoots with the same constraints.
    """

    outbox_entries: int
    outbox_age_seconds: float
    objects: Mapping[str, int]
    pending: int
    unschedulable_classes: int
    memory_bytes: int
    memory_limit_bytes: int
    cannot_write: bool = False
    """True if Redis rejects writes since it could not extend its append-only file."""


class StreamStats(NamedTuple):
    """Statistics of a stream: `name` without the landscape's prefix, `oldest_age_seconds` 0 for an empty one."""

    name: str
    messages: int
    size_bytes: int
    oldest_age_seconds: float


class ConsumerStats(NamedTuple):
    """Statistics of a durable consumer: messages not delivered yet, in flight, and delivered more than once."""

    stream: str
    name: str
    pending: int
    in_flight: int
    redelivered: int


class BusStats(NamedTuple):
    """Statistics of JetStream. A limit of 0 means no limit."""

    streams: Sequence[StreamStats]
    consumers: Sequence[ConsumerStats]
    storage_bytes: int
    storage_limit_bytes: int
    cannot_write: bool = False
    """True if NATS did not store what was published last on some stream, though it responds."""
