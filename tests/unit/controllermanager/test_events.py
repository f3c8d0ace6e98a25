"""Events that are not about Shoots end early, on the bus in memory and its clock."""

from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.ports.bus import Message, StreamMessage
from gardenbus.controllermanager.domain.event_expiry import Checkpoint, expired
from gardenbus.controllermanager.housekeeping import CHECKS, EventExpiry
from tests.support.builders import a_seed
from tests.support.clocks import FakeClock
from tests.support.memory.bus import MemoryBus
from tests.support.memory.store import MemoryStore

SUBJECTS = Subjects()
HOUR = 3600.0
SEED, SHOOT = ObjectKey("seed", "", "aws"), ObjectKey("shoot", "garden-dev", "apollo")
WIDGET = ObjectKey("widget", "garden-dev", "x")


class Stream:
    """EVENTS, and a replica that removes from it."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.bus = MemoryBus(self.clock)
        self.store = MemoryStore(self.clock)
        self.expiry = EventExpiry(self.store, self.bus, SUBJECTS, self.clock, ttl_seconds=HOUR)

    async def announce(self, *about: ObjectKey) -> None:
        for key in about:
            await self.bus.publish(Message(SUBJECTS.event(key), b"{}"))

    async def pass_hours(self, hours: float) -> None:
        for _ in range(round(hours * CHECKS)):
            self.clock.advance(HOUR / CHECKS)
            await self.expiry.check()

    async def announced(self) -> list[str]:
        found: list[str] = []
        async with self.bus.follow("EVENTS", ["garden.event.>"]) as follower:
            async for event in follower:
                if not isinstance(event, StreamMessage):
                    break
                found.append(event.subject.split(".")[2])
        return found


async def test_events_about_shoots_outlive_all_others() -> None:
    stream = Stream()
    await stream.store.create(a_seed())
    widget = {"apiVersion": "widgets.gardener.cloud/v1", "kind": "Widget", "metadata": {"name": "x", "namespace": "a"}}
    await stream.store.create(widget)
    await stream.expiry.check()
    await stream.announce(SEED, SHOOT, WIDGET)
    await stream.pass_hours(1)
    assert await stream.announced() == ["seed", "shoot", "widget"], "an hour after the check that first saw them"
    await stream.announce(SEED)
    await stream.pass_hours(1 / CHECKS)
    assert await stream.announced() == ["shoot", "seed"]
    await stream.pass_hours(1)
    assert await stream.announced() == ["shoot"]


async def test_what_was_there_before_a_replica_lives_for_its_time_once_more() -> None:
    stream = Stream()
    await stream.announce(SEED)
    stream.clock.advance(10 * HOUR)
    await stream.expiry.check()
    assert await stream.announced() == ["seed"]
    await stream.pass_hours(1)
    assert await stream.announced() == []


async def test_positions_of_a_stream_that_was_lost_say_nothing_of_its_successor() -> None:
    stream = Stream()
    await stream.announce(*[SEED] * 5)
    await stream.expiry.check()
    stream.bus.server.recreate("EVENTS")
    await stream.announce(SEED)
    await stream.pass_hours(1)
    assert await stream.announced() == ["seed"]
    await stream.pass_hours(1 / CHECKS)
    assert await stream.announced() == []


def test_only_checkpoints_of_that_age_count() -> None:
    checkpoints = (Checkpoint(0, 10), Checkpoint(100, 20), Checkpoint(200, 30))
    assert expired(checkpoints, 99, 100) == (0, checkpoints)
    assert expired(checkpoints, 100, 100) == (10, checkpoints[1:])
    assert expired(checkpoints, 300, 100) == (30, ())
    assert expired((), 300, 100) == (0, ())
