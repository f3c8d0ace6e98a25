"""Exports the statistics of both servers at intervals, in leading relays and others alike."""

from collections.abc import Awaitable, Callable, Sequence

import structlog

from gardenbus.common.controller.wait import forever
from gardenbus.common.errors import NotFound, Transient
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.stats import BusStats, StoreStats
from gardenbus.relay import metrics
from gardenbus.relay.ports.outbox import OutboxEntry

_log = structlog.stdlib.get_logger()

ReadStoreStats = Callable[[], Awaitable[StoreStats]]
ReadBusStats = Callable[[], Awaitable[BusStats]]


async def export_server_stats(
    read_store_stats: ReadStoreStats, read_bus_stats: ReadBusStats, clock: Clock, seconds: float
) -> None:
    """Export at intervals; a server that is away keeps its last values, and is counted itself."""

    async def export() -> None:
        try:
            record_store_stats(await read_store_stats())
        except Transient as error:
            _record_failure("redis", error.message)
        try:
            record_bus_stats(await read_bus_stats())
        except (Transient, NotFound) as error:
            _record_failure("nats", error.message)

    await forever(export, period_seconds=seconds, sleep=clock.sleep)


def _record_failure(server: str, reason: str) -> None:
    metrics.OBSERVATION_FAILURES.labels(server).inc()
    _log.info("server_stats.unavailable", server=server, reason=reason)


def record_announced(entries: Sequence[OutboxEntry], now: float) -> None:
    """Count a page that was announced; `now` is in seconds since the epoch."""
    metrics.ANNOUNCED.inc(len(entries))
    written_at = int(entries[0].entry.partition("-")[0]) / 1000
    metrics.ANNOUNCE_DELAY.observe(max(0.0, now - written_at))


def record_store_stats(stats: StoreStats) -> None:
    """Export the store's statistics."""
    metrics.OUTBOX_ENTRIES.set(stats.outbox_entries)
    metrics.OUTBOX_AGE.set(stats.outbox_age_seconds)
    for kind, count in stats.objects.items():
        metrics.OBJECTS.labels(kind).set(count)
    metrics.PENDING.set(stats.pending)
    metrics.EQUIVALENCE_CLASSES.set(stats.unschedulable_classes)
    metrics.MEMORY.set(stats.memory_bytes)
    metrics.MEMORY_LIMIT.set(stats.memory_limit_bytes)
    metrics.CANNOT_WRITE.labels("redis").set(stats.cannot_write)


def record_bus_stats(stats: BusStats) -> None:
    """Export JetStream's statistics; consumers that are gone are removed."""
    metrics.CANNOT_WRITE.labels("nats").set(stats.cannot_write)
    for stream in stats.streams:
        metrics.STREAM_MESSAGES.labels(stream.name).set(stream.messages)
        metrics.STREAM_BYTES.labels(stream.name).set(stream.size_bytes)
        metrics.STREAM_AGE.labels(stream.name).set(stream.oldest_age_seconds)
    for gauge in (metrics.CONSUMER_PENDING, metrics.CONSUMER_IN_FLIGHT, metrics.CONSUMER_REDELIVERED):
        gauge.clear()
    for consumer in stats.consumers:
        metrics.CONSUMER_PENDING.labels(consumer.stream, consumer.name).set(consumer.pending)
        metrics.CONSUMER_IN_FLIGHT.labels(consumer.stream, consumer.name).set(consumer.in_flight)
        metrics.CONSUMER_REDELIVERED.labels(consumer.stream, consumer.name).set(consumer.redelivered)
    metrics.STORAGE.set(stats.storage_bytes)
    metrics.STORAGE_LIMIT.set(stats.storage_limit_bytes)
