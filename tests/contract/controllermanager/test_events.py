"""Events are removed from a real stream, and the relay goes on announcing behind what was removed."""

from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.bus import StreamMessage
from gardenbus.common.ports.store import EventRecord
from gardenbus.controllermanager.housekeeping import EventExpiry
from tests.support.builders import a_seed
from tests.support.clocks import FakeClock
from tests.support.eventually import eventually
from tests.support.joint import SUBJECTS, Joint

SEED, SHOOT = ObjectKey("seed", "", "aws"), ObjectKey("shoot", "garden-dev", "apollo")


async def test_events_about_shoots_stay_and_later_ones_are_announced(joint: Joint) -> None:
    joint.start_relay()
    await joint.create(a_seed(SEED.name))
    clock = FakeClock()
    expiry = EventExpiry(joint.store, joint.bus, SUBJECTS, clock, ttl_seconds=3600)

    async def announced() -> list[str]:
        found: list[str] = []
        async with joint.bus.follow("EVENTS", ["garden.event.>"]) as follower:
            async for event in follower:
                if not isinstance(event, StreamMessage):
                    break
                found.append(event.subject.split(".")[2])
        return found

    async def record(about: ObjectKey, message: str) -> None:
        await joint.store.record_event(EventRecord(about, "u", "Normal", "Tested", message, "tester"))

    async def until_announced(*kinds: str) -> None:
        async def so() -> None:
            assert await announced() == [*kinds]

        await eventually(so)

    await record(SHOOT, "one")
    await record(SEED, "one")
    await until_announced("shoot", "seed")
    await expiry.check()
    clock.advance(3599)
    await expiry.check()
    assert await announced() == ["shoot", "seed"]
    clock.advance(1)
    await expiry.check()
    assert await announced() == ["shoot"]
    await record(SEED, "two")
    await until_announced("shoot", "seed")
