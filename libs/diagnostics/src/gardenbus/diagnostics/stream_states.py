"""States of streams and consumers, and stored messages, as the JetStream API shows them. Pure."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple


class StreamState(NamedTuple):
    """One stream: how it is configured, and what it holds."""

    name: str
    config: Mapping[str, Any]
    messages: int
    size_bytes: int
    last_sequence: int
    consumers: int
    first_at: datetime | None
    created: str
    cluster: Mapping[str, Any] = {}
    """Leader and replicas, in a cluster."""


class ConsumerState(NamedTuple):
    """A consumer of a stream. `listening` is the number of pull requests that wait on the server."""

    stream: str
    name: str
    config: Mapping[str, Any]
    pending: int
    in_flight: int
    redelivered: int
    listening: int
    delivered: int
    delivered_at: datetime | None
    acknowledged_at: datetime | None

    @property
    def is_shared(self) -> bool:
        """True for the durable consumer of a work queue, which stays while nobody listens."""
        return bool(self.config.get("durable_name"))

    @property
    def filter(self) -> str:
        """Subject filter of the consumer."""
        return str(self.config.get("filter_subject") or ">")


class StoredMessage(NamedTuple):
    """A message as it stands in a stream."""

    subject: str
    sequence: int
    at: datetime
    headers: Mapping[str, str]
    body: bytes
