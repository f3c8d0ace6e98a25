"""Counts both servers now and then, and shows the numbers. Whether this relay leads makes no difference to it."""

from collections.abc import Awaitable, Callable, Sequence

import structlog

from gardenbus.common.errors import NotFound, Transient
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.figures import BusFigures, StoreFigures
from gardenbus.common.ports.outbox import News
from gardenbus.relay import counters

_log = structlog.stdlib.get_logger()

AskStore = Callable[[], Awaitable[StoreFigures]]
AskBus = Callable[[], Awaitable[BusFigures]]


async def observe_for_ever(ask_store: AskStore, ask_bus: AskBus, clock: Clock, seconds: float) -> None:
    """Count both servers every so many seconds; a server that is away keeps its last numbers, and is counted itself."""
    while True:
        try:
            show_store(await ask_store())
        except Transient as error:
            _missed("redis", error.message)
        try:
            show_bus(await ask_bus())
        except (Transient, NotFound) as error:
            _missed("nats", error.message)
        await clock.sleep(seconds)


def _missed(server: str, reason: str) -> None:
    counters.OBSERVATION_FAILURES.labels(server).inc()
    _log.info("observation.missed", server=server, reason=reason)


def show_announced(news: Sequence[News], now: float) -> None:
    """Count a page that was announced; `now` is the time in seconds since the epoch."""
    counters.ANNOUNCED.inc(len(news))
    written_at = int(news[0].entry.partition("-")[0]) / 1000
    counters.ANNOUNCE_DELAY.observe(max(0.0, now - written_at))


def show_store(figures: StoreFigures) -> None:
    """Show how the store stands."""
    counters.OUTBOX_ENTRIES.set(figures.outbox_entries)
    counters.OUTBOX_AGE.set(figures.outbox_age_seconds)
    for kind, count in figures.objects.items():
        counters.OBJECTS.labels(kind).set(count)
    counters.PENDING.set(figures.pending)
    counters.WAITING_CLASSES.set(figures.waiting_classes)
    counters.MEMORY.set(figures.memory_bytes)
    counters.MEMORY_LIMIT.set(figures.memory_limit_bytes)


def show_bus(figures: BusFigures) -> None:
    """Show how JetStream stands; consumers that are gone are shown no longer."""
    for stream in figures.streams:
        counters.STREAM_MESSAGES.labels(stream.name).set(stream.messages)
        counters.STREAM_BYTES.labels(stream.name).set(stream.size_bytes)
        counters.STREAM_AGE.labels(stream.name).set(stream.oldest_age_seconds)
    for gauge in (counters.CONSUMER_PENDING, counters.CONSUMER_IN_HAND, counters.CONSUMER_REDELIVERED):
        gauge.clear()
    for consumer in figures.consumers:
        counters.CONSUMER_PENDING.labels(consumer.stream, consumer.name).set(consumer.pending)
        counters.CONSUMER_IN_HAND.labels(consumer.stream, consumer.name).set(consumer.in_hand)
        counters.CONSUMER_REDELIVERED.labels(consumer.stream, consumer.name).set(consumer.redelivered)
    counters.STORAGE.set(figures.storage_bytes)
    counters.STORAGE_LIMIT.set(figures.storage_limit_bytes)
