"""What the relay shows of the servers."""

import asyncio
import contextlib

from prometheus_client import REGISTRY

from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.figures import BusFigures, ConsumerFigures, StoreFigures, StreamFigures
from gardenbus.common.ports.outbox import WorkNews
from gardenbus.relay.observing import observe_for_ever, show_announced, show_bus
from tests.support.clocks import FakeClock

STORE = StoreFigures(
    outbox_entries=3,
    outbox_age_seconds=1.5,
    objects={"shoot": 7},
    pending=2,
    waiting_classes=1,
    memory_bytes=10,
    memory_limit_bytes=0,
)


def a_bus(*consumers: str) -> BusFigures:
    return BusFigures(
        streams=[StreamFigures("QUEUES", 5, 500, 2.0)],
        consumers=[ConsumerFigures("QUEUES", name, 4, 1, 0) for name in consumers],
        storage_bytes=500,
        storage_limit_bytes=0,
    )


def value(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


async def test_a_server_that_is_away_is_counted_and_keeps_nobody_from_counting_the_other():
    async def away() -> StoreFigures:
        raise Unavailable("away")

    rounds = 0

    async def counted() -> BusFigures:
        nonlocal rounds
        rounds += 1
        return a_bus("scheduling-default-scheduler")

    before = value("gardenbus_relay_observation_failures_total", server="redis")
    task = asyncio.create_task(observe_for_ever(away, counted, FakeClock(), 10))
    while rounds < 3:
        await asyncio.sleep(0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task

    assert value("gardenbus_relay_observation_failures_total", server="redis") - before >= 2
    assert value("gardenbus_stream_messages", stream="QUEUES") == 5


async def test_the_store_is_shown():
    async def store() -> StoreFigures:
        return STORE

    async def bus() -> BusFigures:
        raise asyncio.CancelledError

    with contextlib.suppress(asyncio.CancelledError):
        await observe_for_ever(store, bus, FakeClock(), 10)

    assert value("gardenbus_outbox_entries") == 3
    assert value("gardenbus_outbox_oldest_entry_age_seconds") == 1.5
    assert value("gardenbus_store_objects", kind="shoot") == 7
    assert value("gardenbus_store_pending_shoots") == 2


def test_a_consumer_that_is_gone_is_shown_no_longer():
    show_bus(a_bus("one", "two"))
    show_bus(a_bus("two"))
    one = REGISTRY.get_sample_value("gardenbus_consumer_pending_messages", {"stream": "QUEUES", "consumer": "one"})
    assert one is None
    assert value("gardenbus_consumer_pending_messages", stream="QUEUES", consumer="two") == 4


def test_an_announced_page_counts_its_entries_and_how_long_the_oldest_waited():
    entries, seconds = value("gardenbus_relay_announced_total"), value("gardenbus_relay_announce_delay_seconds_sum")
    show_announced([WorkNews("1000000-0", "a"), WorkNews("1000700-0", "b")], now=1001.0)
    assert value("gardenbus_relay_announced_total") - entries == 2
    assert value("gardenbus_relay_announce_delay_seconds_sum") - seconds == 1.0
