"""JetStream's statistics: its streams, the consumers of its work queues, and the account's storage."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from gardenbus.common.adapters.nats.api import nanoseconds
from gardenbus.common.api.identity.permissions import OPTIONAL_STREAMS, STREAMS
from gardenbus.common.api.keys import Subjects
from gardenbus.common.errors import NotFound
from gardenbus.common.ports.stats import BusStats, ConsumerStats, StreamStats

CallApi = Callable[[str], Awaitable[dict[str, Any]]]
"""Requests an endpoint of JetStream's API. Raises Unavailable."""

WORK_QUEUES = ("REQUESTS", "REPORTS", "QUEUES")
"""Streams whose consumers are few and durable; the others are followed by whoever likes, a consumer each."""


async def bus_stats(call_api: CallApi, subjects: Subjects) -> BusStats:
    """Count the landscape's streams. Raises Unavailable, and NotFound while one is missing that others need."""
    streams: list[StreamStats] = []
    for name in STREAMS:
        try:
            streams.append(_stream(name, await call_api(f"STREAM.INFO.{subjects.stream(name)}")))
        except NotFound:
            if name not in OPTIONAL_STREAMS:
                raise
    consumers: list[ConsumerStats] = []
    for name in WORK_QUEUES:
        found = await call_api(f"CONSUMER.LIST.{subjects.stream(name)}")
        consumers += [_consumer(name, each) for each in found.get("consumers") or ()]
    account = await call_api("INFO")
    return BusStats(streams, consumers, int(account["storage"]), max(0, int(account["limits"]["max_storage"])))


def _stream(name: str, response: dict[str, Any]) -> StreamStats:
    state = response["state"]
    messages = int(state["messages"])
    age = (nanoseconds(response["ts"]) - nanoseconds(state["first_ts"])) / 1e9 if messages else 0.0
    return StreamStats(name, messages, int(state["bytes"]), max(0.0, age))


def _consumer(stream: str, response: dict[str, Any]) -> ConsumerStats:
    counts: Sequence[int] = [int(response[field]) for field in ("num_pending", "num_ack_pending", "num_redelivered")]
    return ConsumerStats(stream, str(response["name"]), *counts)
