"""How full and how far behind the two servers are: numbers for people, on which nothing is decided."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class StoreFigures(NamedTuple):
    """The store, counted. `outbox_age_seconds` is how long its oldest entry has waited, 0 when there is none.

    `memory_limit_bytes` is 0 where Redis takes all that there is. `pending` shoots need a seed; those of them that were
    refused form `waiting_classes`, of shoots that ask for the same things.
    """

    outbox_entries: int
    outbox_age_seconds: float
    objects: Mapping[str, int]
    pending: int
    waiting_classes: int
    memory_bytes: int
    memory_limit_bytes: int


class StreamFigures(NamedTuple):
    """A stream: `name` without the landscape's prefix, `oldest_age_seconds` by the server's clock (0: it is empty)."""

    name: str
    messages: int
    size_bytes: int
    oldest_age_seconds: float


class ConsumerFigures(NamedTuple):
    """A durable consumer: messages not delivered yet, delivered and not ended, and delivered more than once."""

    stream: str
    name: str
    pending: int
    in_hand: int
    redelivered: int


class BusFigures(NamedTuple):
    """JetStream, counted. A limit of 0 says that there is none."""

    streams: Sequence[StreamFigures]
    consumers: Sequence[ConsumerFigures]
    storage_bytes: int
    storage_limit_bytes: int
