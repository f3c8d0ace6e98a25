"""The relay on real servers: in order, through crashes, and when one of the two comes back older."""

import asyncio
import json
import shutil

import pytest

from gardenbus.common.adapters.redis_outbox import VERSION_LEAP
from gardenbus.common.errors import Conflict, Unavailable
from gardenbus.common.ports.bus import Message
from gardenbus.common.ports.store import Binding
from gardenbus.common.resources.keys import Header
from tests.contract.machinery.conftest import SUBJECTS, Joint
from tests.support.builders import a_project, a_seed, a_shoot
from tests.support.eventually import eventually


async def test_nothing_is_written_until_a_relay_has_opened_the_store(joint: Joint) -> None:
    with pytest.raises(Unavailable, match="fenced"):
        await joint.store.create(a_seed())
    joint.start_relay()
    assert (await joint.create(a_seed())).version > 0


async def test_a_change_reaches_the_bus_with_its_document_work_and_binding(joint: Joint) -> None:
    joint.start_relay()
    seed = await joint.create(a_seed("s1"))
    shoot = await joint.create(a_shoot("apollo"))
    await joint.announced(SUBJECTS.changed(shoot.key), shoot.version)
    assert await joint.bus.subjects("QUEUES", "garden.queue.>") == {
        SUBJECTS.scheduling("default-scheduler", shoot.key): 1
    }
    reply = await joint.store.bind([Binding("garden-dev", "apollo", shoot.uid, shoot.generation, "s1", seed.gate)])
    assert reply.outcomes == ["bound"]
    subject = SUBJECTS.binding("s1", "garden-dev", "apollo")
    await joint.announced(subject, shoot.version + 1)
    last = await joint.bus.last("BINDINGS", subject)
    assert last is not None
    assert json.loads(last.body)["spec"]["seedName"] == "s1"
    assert last.headers[Header.ROLE] == "run"


async def test_a_standby_takes_over_when_the_leading_relay_dies(joint: Joint) -> None:
    leading = joint.start_relay("one")
    first = await joint.create(a_seed("s1"))
    await joint.announced(SUBJECTS.changed(first.key), first.version)
    joint.start_relay("two")
    leading.cancel()
    second = await joint.create(a_seed("s2"))
    await joint.announced(SUBJECTS.changed(second.key), second.version)


async def test_a_relay_that_was_paused_cannot_announce_the_past_after_the_present(joint: Joint) -> None:
    joint.start_relay()
    seed = await joint.create(a_seed("s1"))
    await joint.announced(SUBJECTS.changed(seed.key), seed.version)
    stale = (await joint.bus.position("OBJECTS")).sequence
    newer = await joint.update(seed.key, tier="gold")
    await joint.announced(SUBJECTS.changed(seed.key), newer.version)
    with pytest.raises(Conflict):
        await joint.bus.publish_batch(
            "OBJECTS",
            [Message(SUBJECTS.changed(seed.key), b"{}", {Header.VERSION: str(seed.version)})],
            expected_last_sequence=stale,
        )


async def test_what_was_written_while_nats_was_away_is_announced_when_it_is_back(joint: Joint) -> None:
    joint.start_relay()
    seed = await joint.create(a_seed("s1"))
    await joint.quiet()
    await asyncio.to_thread(joint.nats.kill)
    written = [await joint.update(seed.key, step=str(step)) for step in range(20)]
    await asyncio.to_thread(joint.nats.start)
    await joint.announced(SUBJECTS.changed(seed.key), written[-1].version)
    await joint.quiet()


async def test_a_stream_that_is_another_one_is_filled_again_from_the_store(joint: Joint) -> None:
    joint.start_relay()
    seed = await joint.create(a_seed("s1"))
    shoot = await joint.create(a_shoot("apollo"))
    await joint.create(a_project())
    await joint.store.bind([Binding("garden-dev", "apollo", shoot.uid, shoot.generation, "s1", seed.gate)])
    waiting = await joint.create(a_shoot("waiting"))
    await joint.quiet()
    await asyncio.to_thread(joint.nats.stop)
    shutil.rmtree(joint.nats.directory / "jetstream")
    await asyncio.to_thread(joint.nats.start)
    await joint.announced(SUBJECTS.changed(seed.key), seed.version)
    await joint.announced(SUBJECTS.binding("s1", "garden-dev", "apollo"), shoot.version)

    async def queued() -> None:
        subjects = await joint.bus.subjects("QUEUES", "garden.queue.scheduling.>")
        assert SUBJECTS.scheduling("default-scheduler", waiting.key) in subjects

    await eventually(queued, within=10)


async def test_a_store_that_came_back_older_is_repaired_from_the_bus_before_anything_is_written(joint: Joint) -> None:
    joint.start_relay()
    seed = await joint.create(a_seed("s1"))
    shoot = await joint.create(a_shoot("apollo"))
    gone = await joint.create(a_shoot("gone"))
    await joint.quiet()
    await asyncio.to_thread(joint.redis.stop)
    shutil.copytree(joint.redis.directory / "appendonlydir", joint.redis.directory / "older")
    await asyncio.to_thread(joint.redis.start)

    async def open_again() -> None:
        await joint.create(a_project())

    await open_again()
    reply = await joint.store.bind([Binding("garden-dev", "apollo", shoot.uid, shoot.generation, "s1", seed.gate)])
    assert reply.outcomes == ["bound"]
    bound = await joint.store.get(shoot.key)
    current = await joint.store.get(gone.key)
    assert bound is not None
    assert current is not None
    await joint.store.delete(current)
    await joint.quiet()

    await asyncio.to_thread(joint.redis.kill)
    shutil.rmtree(joint.redis.directory / "appendonlydir")
    (joint.redis.directory / "older").rename(joint.redis.directory / "appendonlydir")
    await asyncio.to_thread(joint.redis.start)
    later = await joint.create(a_shoot("later"))

    restored = await joint.store.get(shoot.key)
    assert restored is not None
    assert (restored.version, restored.parts) == (bound.version, bound.parts)
    assert await joint.store.get(gone.key) is None
    assert (await joint.store.usage()).seeds["s1"] == 1
    assert later.version > bound.version + VERSION_LEAP
    again = await joint.store.bind([Binding("garden-dev", "apollo", shoot.uid, shoot.generation, "s2", None)])
    assert again.outcomes == ["scheduled"]


async def test_a_store_that_lost_everything_is_rebuilt_from_the_bus(joint: Joint) -> None:
    joint.start_relay()
    seed = await joint.create(a_seed("s1"))
    shoot = await joint.create(a_shoot("apollo"))
    await joint.quiet()
    await asyncio.to_thread(joint.redis.kill)
    shutil.rmtree(joint.redis.directory / "appendonlydir")
    await asyncio.to_thread(joint.redis.start)
    await joint.create(a_project())
    restored = await joint.store.get(shoot.key)
    assert restored is not None
    assert restored.uid == shoot.uid
    assert [stored.key for stored in (await joint.store.list_page("seed")).objects] == [seed.key]
    assert (await joint.store.census())["shoots.pending"] == 1
