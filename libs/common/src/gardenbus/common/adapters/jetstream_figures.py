"""What JetStream can be counted by: its streams, the consumers of its work queues, and what the account stores."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from gardenbus.common.adapters.jetstream_api import nanoseconds
from gardenbus.common.ports.figures import BusFigures, ConsumerFigures, StreamFigures
from gardenbus.common.resources.keys import Subjects

Ask = Callable[[str], Awaitable[dict[str, Any]]]
"""Asks an endpoint of JetStream's API. Raises Unavailable."""

STREAMS = ("REQUESTS", "OBJECTS", "BINDINGS", "QUEUES", "LEASES", "REPORTS", "EVENTS", "REJECTED")
WORK_QUEUES = ("REQUESTS", "REPORTS", "QUEUES")
"""Streams whose consumers are few and durable; the others are followed by whoever likes, a consumer each."""


async def bus_figures(ask: Ask, subjects: Subjects) -> BusFigures:
    """Count the landscape's streams. Raises Unavailable, and NotFound while a stream is missing."""
    streams = [_stream(name, await ask(f"STREAM.INFO.{subjects.stream(name)}")) for name in STREAMS]
    consumers: list[ConsumerFigures] = []
    for name in WORK_QUEUES:
        found = await ask(f"CONSUMER.LIST.{subjects.stream(name)}")
        consumers += [_consumer(name, each) for each in found.get("consumers") or ()]
    account = await ask("INFO")
    return BusFigures(streams, consumers, int(account["storage"]), max(0, int(account["limits"]["max_storage"])))


def _stream(name: str, answer: dict[str, Any]) -> StreamFigures:
    state = answer["state"]
    messages = int(state["messages"])
    age = (nanoseconds(answer["ts"]) - nanoseconds(state["first_ts"])) / 1e9 if messages else 0.0
    return StreamFigures(name, messages, int(state["bytes"]), max(0.0, age))


def _consumer(stream: str, answer: dict[str, Any]) -> ConsumerFigures:
    counts: Sequence[int] = [int(answer[field]) for field in ("num_pending", "num_ack_pending", "num_redelivered")]
    return ConsumerFigures(stream, str(answer["name"]), *counts)
