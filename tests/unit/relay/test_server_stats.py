"""What the relay shows of the servers."""

import asyncio
import contextlib

from prometheus_client import REGISTRY

from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.stats import BusStats, ConsumerStats, StoreStats, StreamStats
from gardenbus.relay.ports.outbox import QueueEntry
from gardenbus.relay.server_stats import export_server_stats, record_announced, record_bus_stats
from tests.support.clocks import FakeClock

STORE = StoreStats(
    outbox_entries=3,
    outbox_age_seconds=1.5,
    objects={"shoot": 7},
    pending=2,
    unschedulable_classes=1,
    memory_bytes=10,
    memory_limit_bytes=0,
)


def a_bus(*consumers: str) -> BusStats:
    return BusStats(
        streams=[StreamStats("QUEUES", 5, 500, 2.0)],
        consumers=[ConsumerStats("QUEUES", name, 4, 1, 0) for name in consumers],
        storage_bytes=500,
        storage_limit_bytes=0,
    )


def value(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


async def test_a_server_that_is_away_is_counted_and_keeps_nobody_from_counting_the_other():
    async def away() -> StoreStats:
        raise Unavailable("away")

    rounds = 0

    async def counted() -> BusStats:
        nonlocal rounds
        rounds += 1
        return a_bus("scheduling-default-scheduler")

    before = value("gardenbus_relay_observation_failures_total", server="redis")
    task = asyncio.create_task(export_server_stats(away, counted, FakeClock(), 10))
    while rounds < 3:
        await asyncio.sleep(0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task

    assert value("gardenbus_relay_observation_failures_total", server="redis") - before >= 2
    assert value("gardenbus_stream_messages", stream="QUEUES") == 5


async def test_the_store_is_shown():
    async def store() -> StoreStats:
        return STORE

    async def bus() -> BusStats:
        raise asyncio.CancelledError

    with contextlib.suppress(asyncio.CancelledError):
        await export_server_stats(store, bus, FakeClock(), 10)

    assert value("gardenbus_outbox_entries") == 3
    assert value("gardenbus_outbox_oldest_entry_age_seconds") == 1.5
    assert value("gardenbus_store_objects", kind="shoot") == 7
    assert value("gardenbus_store_pending_shoots") == 2


def test_a_consumer_that_is_gone_is_shown_no_longer():
    record_bus_stats(a_bus("one", "two"))
    record_bus_stats(a_bus("two"))
    one = REGISTRY.get_sample_value("gardenbus_consumer_pending_messages", {"stream": "QUEUES", "consumer": "one"})
    assert one is None
    assert value("gardenbus_consumer_pending_messages", stream="QUEUES", consumer="two") == 4


def test_an_announced_page_counts_its_entries_and_how_long_the_oldest_waited():
    entries, seconds = value("gardenbus_relay_announced_total"), value("gardenbus_relay_announce_delay_seconds_sum")
    record_announced([QueueEntry("1000000-0", "a"), QueueEntry("1000700-0", "b")], now=1001.0)
    assert value("gardenbus_relay_announced_total") - entries == 2
    assert value("gardenbus_relay_announce_delay_seconds_sum") - seconds == 1.0
