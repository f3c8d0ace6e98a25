"""The writer of the history, with a store and a bus of the test's own."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

import pytest
from prometheus_client import REGISTRY

from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.history import HistoryPoint, ProcessCounts, decode_change, decode_point, encode
from gardenbus.common.api.keys import Subjects
from gardenbus.common.controller.process_counts import CountReporter, ReceivedCounts
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.bus import Message, StreamMessage
from gardenbus.common.ports.connections import Connections
from gardenbus.lifecycle.history_writer import HistoryWriter
from gardenbus.lifecycle.watch.history_sources import HistorySources
from gardenbus.lifecycle.watch.seed_gauges import SeedGauges
from tests.support.builders import a_seed, a_shoot
from tests.support.clocks import FakeClock
from tests.support.memory.bus import MemoryBus
from tests.support.memory.store import MemoryStore

SUBJECTS = Subjects()


class Replica(NamedTuple):
    writer: HistoryWriter
    seeds: SeedGauges
    sources: HistorySources
    counts: ReceivedCounts


class Scene:
    """A store with one seed, and replicas that follow it."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.store = MemoryStore(self.clock)
        self.bus = MemoryBus(self.clock)

    async def replica(self) -> Replica:
        seeds = SeedGauges(self.store, {}, {}, self.clock, late_after_seconds=20, is_per_seed=False)
        for stored in (await self.store.list_page("seed")).objects:
            seeds.watch(stored.key, None, stored)
        counts, sources = ReceivedCounts(), HistorySources()
        connections = Connections(store=self.store, bus=self.bus, subjects=SUBJECTS)
        writer = HistoryWriter(connections, self.clock, seeds=seeds, sources=sources, counts=counts)
        return Replica(writer, seeds, sources, counts)

    def points(self) -> Sequence[HistoryPoint]:
        found = [decode_point(each.body) for each in self._on(SUBJECTS.history_point)]
        return [each for each in found if each is not None]

    def changes(self) -> Sequence[str]:
        found = [decode_change(each.body) for each in self._on(SUBJECTS.history_change)]
        return [f"{each.name} {each.text}" for each in found if each is not None]

    def _on(self, subject: str) -> Sequence[StreamMessage]:
        return [each for each in self.bus.server.stream("HISTORY").messages.values() if each.subject == subject]


@pytest.fixture
async def scene() -> Scene:
    scene = Scene()
    assert isinstance(await scene.store.create(a_seed("s1")), StoredObject)
    return scene


async def test_a_point_has_the_seeds_and_the_shoots_that_wait(scene: Scene):
    await scene.store.create(a_shoot())
    replica = await scene.replica()
    assert await replica.writer.write()
    (point,) = scene.points()
    assert (point.shoots, point.pending, point.waiting) == (1, 1, {})
    assert point.seeds["s1"].used == 0


async def test_two_replicas_write_one_point_a_minute(scene: Scene):
    replicas = [await scene.replica(), await scene.replica()]
    for _ in range(3):
        done = await asyncio.gather(*(each.writer.write() for each in replicas))
        assert sum(done) <= 1
        await scene.store.create(a_shoot(f"shoot-{len(scene.points())}"))
        scene.clock.advance(60)
    assert len(scene.points()) == 3
    assert len({point.at for point in scene.points()}) == 3


async def test_one_that_was_overtaken_writes_nothing(scene: Scene):
    replica = await scene.replica()
    overtaking = await scene.replica()
    read, census = asyncio.Event(), scene.store.census
    goes_on = asyncio.Event()

    async def slow_census() -> Mapping[str, int]:
        read.set()
        await goes_on.wait()
        return await census()

    scene.store.census = slow_census  # type: ignore[method-assign]
    slow = asyncio.create_task(replica.writer.write())
    await read.wait()
    scene.store.census = census  # type: ignore[method-assign]
    assert await overtaking.writer.write()
    goes_on.set()
    assert not await slow
    assert len(scene.points()) == 1


async def test_what_happened_stands_before_the_point_that_shows_it(scene: Scene):
    replica = await scene.replica()
    await replica.writer.write()
    (seed,) = (await scene.store.list_page("seed")).objects
    replica.seeds.watch(seed.key, seed, None)
    scene.clock.advance(60)
    assert await replica.writer.write()
    assert scene.changes() == ["s1 removed"]
    assert scene.points()[-1].seeds == {}


async def test_points_live_as_long_as_their_interval_is_of_use(scene: Scene):
    replica = await scene.replica()
    for minute in range(3):
        replica.counts.take(encode(ProcessCounts("p", {"rejected": minute + 1})))
        assert await replica.writer.write()
        scene.clock.advance(60)
    assert len(scene.points()) == 3
    scene.clock.advance(timedelta(hours=6).total_seconds())
    assert [point.level for point in scene.points()] == [2]
    scene.clock.advance(timedelta(days=30).total_seconds())
    assert scene.points() == []


async def test_a_bus_that_is_away_ends_nothing(scene: Scene):
    replica = await scene.replica()
    scene.bus.cut()
    with pytest.raises(Unavailable):
        await replica.writer.write()
    await scene.bus.mend()
    assert await replica.writer.write()


async def test_the_time_is_exported_at_which_the_history_was_current(scene: Scene):
    first, second = await scene.replica(), await scene.replica()
    await first.writer.attempt()
    written = scene.clock.now().timestamp()
    assert current() == written
    scene.clock.advance(60)
    scene.bus.cut()
    await first.writer.attempt()
    assert current() == written
    await scene.bus.mend()
    await second.writer.attempt()
    scene.clock.advance(10)
    await first.writer.attempt()
    assert current() == written + 70


def current() -> float | None:
    return REGISTRY.get_sample_value("gardenbus_lifecycle_history_current_timestamp_seconds")


async def test_a_foreign_message_on_its_subject_is_as_none(scene: Scene):
    await scene.bus.publish(Message(SUBJECTS.history_point, b"something else"))
    replica = await scene.replica()
    assert await replica.writer.write()
    assert len(scene.points()) == 1


async def test_counters_are_sent_when_they_have_changed_and_reach_each_replica(scene: Scene):
    counts = {"rejected": 0}
    receivers = [ReceivedCounts(), ReceivedCounts()]
    for number, receiver in enumerate(receivers):
        await receiver.subscribe(scene.bus, SUBJECTS, str(number))
    reporter = CountReporter(scene.bus, SUBJECTS, "apiserver-1", lambda: counts)
    reporter.report()
    assert [each.by_process for each in receivers] == [{}, {}]
    counts["rejected"] = 2
    reporter.report()
    reporter.report()
    assert [list(each.by_process.values()) for each in receivers] == [[{"rejected": 2}]] * 2
