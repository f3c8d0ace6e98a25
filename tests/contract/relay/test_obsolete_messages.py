"""Messages that come back: a killed nats-server forgets that they were replaced; an older copy of its disk has them."""

import asyncio
import shutil
from pathlib import Path

from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.keys import Header, ObjectKey
from gardenbus.common.controller.timers import Timers
from gardenbus.common.errors import NotFound, Transient
from gardenbus.common.ports.bus import Message, StreamMessage, StreamPosition
from gardenbus.common.ports.store import SeedBinding
from tests.support.builders import a_seed, a_shoot, a_shoot_state, merged
from tests.support.eventually import eventually
from tests.support.joint import SUBJECTS, Joint, stream_of

APOLLO, STAYING = ObjectKey("shoot", "garden-dev", "apollo"), ObjectKey("shoot", "garden-dev", "staying")
STATE = ObjectKey("shootstate", "garden-dev", "apollo")
BINDING, STAYING_BINDING = (SUBJECTS.binding("s1", key.namespace, key.name) for key in (APOLLO, STAYING))
LATE = "2099-01-01T00:00:00Z"


async def test_a_killed_server_brings_back_a_binding_of_a_shoot_that_is_gone_and_the_relay_removes_it(
    joint: Joint,
) -> None:
    joint.start_relay()
    shoots = [await bound(joint, name) for name in ("apollo", "staying")]
    await removed(joint, shoots[0])
    await forgotten(joint, BINDING)
    await joint.stop_relays()
    await asyncio.to_thread(joint.nats.kill)
    await asyncio.to_thread(joint.nats.start)
    ghost = await last(joint, BINDING)
    assert ghost is not None, "nats-server has mended it: the relay need not compare any more"
    assert ghost.body
    joint.start_relay()
    await until_nothing(joint, BINDING)
    assert await last(joint, STAYING_BINDING) is not None
    await asyncio.to_thread(joint.nats.kill)
    await asyncio.to_thread(joint.nats.start)
    await until_nothing(joint, BINDING)


async def test_a_relay_that_runs_notices_by_itself_that_the_server_was_killed(joint: Joint) -> None:
    joint.start_relay()
    await removed(joint, await bound(joint, "apollo"))
    await forgotten(joint, BINDING)
    await asyncio.to_thread(joint.nats.kill)
    await asyncio.to_thread(joint.nats.start)
    await until_nothing(joint, BINDING)


async def test_a_binding_to_a_seed_that_a_shoot_has_left_is_removed_and_the_present_one_stays(joint: Joint) -> None:
    joint.start_relay()
    shoot = await bound(joint, "apollo")
    await joint.create(a_seed("s2"))
    moved = await joint.store.update(shoot, merged(shoot.document(), {"spec": {"seedName": "s2"}}))
    assert isinstance(moved, StoredObject)
    present = SUBJECTS.binding("s2", "garden-dev", "apollo")
    await joint.announced(present, moved.version)
    await joint.quiet()
    await forgotten(joint, BINDING)
    await asyncio.to_thread(joint.nats.kill)
    await asyncio.to_thread(joint.nats.start)
    await until_nothing(joint, BINDING)
    assert await last(joint, present) is not None


async def test_what_followed_a_shoot_is_removed_with_the_object_itself(joint: Joint) -> None:
    joint.start_relay()
    await bound(joint, "apollo")
    state = await joint.create(a_shoot_state("apollo"))
    view, change = SUBJECTS.view("s1", STATE), SUBJECTS.changed(STATE)
    await joint.announced(view, state.version)
    stored = await joint.store.get(STATE)
    assert stored is not None
    assert await joint.store.delete(stored) is None
    await joint.announced(view, stored.version + 1)
    await joint.quiet()
    for subject in (view, change):
        await forgotten(joint, subject)
    await asyncio.to_thread(joint.nats.kill)
    await asyncio.to_thread(joint.nats.start)
    await until_nothing(joint, view)
    await until_nothing(joint, change)
    assert await last(joint, BINDING) is not None


async def test_an_older_copy_of_the_disk_shows_no_binding_of_a_shoot_whose_removal_is_forgotten(
    joint: Joint, tmp_path: Path
) -> None:
    joint.start_relay()
    shoots = [await bound(joint, name) for name in ("apollo", "staying")]
    await asyncio.to_thread(joint.nats.stop)
    shutil.copytree(joint.nats.directory / "jetstream", tmp_path / "older")
    await asyncio.to_thread(joint.nats.start)
    await removed(joint, shoots[0])
    await forgotten(joint, BINDING)
    await joint.stop_relays()
    outbox = joint.outbox("housekeeping")
    await outbox.lead(60)
    assert await outbox.collect_tombstones(LATE, StreamPosition(2**62, 2**62)) == 1
    await outbox.resign()
    await asyncio.to_thread(joint.nats.stop)
    shutil.rmtree(joint.nats.directory / "jetstream")
    shutil.copytree(tmp_path / "older", joint.nats.directory / "jetstream")
    await asyncio.to_thread(joint.nats.start)
    assert await last(joint, BINDING) is not None
    joint.start_relay()
    await until_nothing(joint, BINDING)
    await until_nothing(joint, SUBJECTS.changed(APOLLO))
    assert await last(joint, STAYING_BINDING) is not None
    assert await last(joint, SUBJECTS.changed(STAYING)) is not None


async def bound(joint: Joint, name: str) -> StoredObject:
    """A shoot on `s1`, announced."""
    key = ObjectKey("seed", "", "s1")

    async def seeded() -> StoredObject:
        try:
            seed = await joint.store.get(key)
        except Transient as error:
            raise AssertionError(error.message) from error
        return seed or await joint.create(a_seed("s1"))

    seed = await eventually(seeded)
    shoot = await joint.create(a_shoot(name))
    binding = SeedBinding("garden-dev", name, shoot.uid, shoot.generation, "s1", seed.scheduling_generation)
    assert (await joint.store.bind([binding])).outcomes == ["bound"]
    await joint.announced(SUBJECTS.binding("s1", "garden-dev", name), shoot.version + 1)
    await joint.quiet()
    stored = await joint.store.get(shoot.key)
    assert stored is not None
    return stored


async def removed(joint: Joint, shoot: StoredObject) -> None:
    """Delete a shoot whose control plane is gone; wait for its tombstone."""
    deleting = await joint.store.delete(shoot)
    assert isinstance(deleting, StoredObject)
    await joint.store.update(deleting, merged(deleting.document(), {"metadata": {"finalizers": []}}))
    await joint.announced(BINDING, deleting.version + 1)
    await joint.quiet()


async def forgotten(joint: Joint, subject: str) -> None:
    """Remove a tombstone, as is done when its gardenlet has obeyed it, or as its TTL does."""
    tombstone = await last(joint, subject)
    assert tombstone is not None
    assert tombstone.headers[Header.VERB] == "deleted"
    await joint.bus.purge(stream_of(subject), subject, upto_sequence=tombstone.sequence)


async def last(joint: Joint, subject: str) -> StreamMessage | None:
    """The last message on a subject, once the server answers."""

    async def read() -> StreamMessage | None:
        try:
            return await joint.bus.last(stream_of(subject), subject)
        except (Transient, NotFound) as error:
            raise AssertionError(error.message) from error

    return await eventually(read)


async def until_nothing(joint: Joint, subject: str) -> None:
    """Wait until a subject has no message."""

    async def empty() -> None:
        assert await last(joint, subject) is None

    await eventually(empty)


async def test_a_message_among_the_timers_that_is_none_is_removed_and_timers_stay(joint: Joint) -> None:
    stream, work = SUBJECTS.stream("QUEUES"), "garden.queue.scheduling.mine.garden-dev.apollo"
    naked, ended = SUBJECTS.later("garden.queue.nobody.x.y"), SUBJECTS.later("garden.queue.nobody.x.z")
    for subject in (naked, ended):
        await joint.bus.publish(Message(subject, b"{}"))
    await Timers(joint.bus, SUBJECTS).enqueue_after(work, 3600)
    await joint.bus.publish(Message(work))

    async def has_recorded() -> None:
        assert "QUEUES" in await joint.outbox("reader").positions()

    joint.start_relay()
    await eventually(has_recorded)
    await joint.stop_relays()
    joint.start_relay()
    for subject in (naked, ended):
        await until_nothing(joint, subject)
    assert set(await joint.bus.subjects(stream, "garden.>")) == {SUBJECTS.later(work), work}
