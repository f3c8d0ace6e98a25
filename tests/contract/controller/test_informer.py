"""An informer on real servers: it misses nothing and raises nothing from the dead."""

import asyncio
import shutil

from gardenbus.common.ports.store import SeedBinding
from tests.support.builders import a_cloudprofile, a_seed, a_shoot
from tests.support.eventually import eventually
from tests.support.joint import Joint


async def test_it_knows_what_was_there_and_what_comes_changes_and_goes(joint: Joint) -> None:
    joint.start_relay()
    old = await joint.create(a_seed("old"))
    async with joint.informer(["seed", "cloudprofile"]) as informer:
        assert set(informer.objects("seed")) == {old.key}
        new = await joint.create(a_seed("new"))
        profile = await joint.create(a_cloudprofile())
        changed = await joint.update(old.key, tier="gold")

        async def caught_up() -> None:
            assert set(informer.objects("seed")) == {old.key, new.key}
            assert set(informer.objects("cloudprofile")) == {profile.key}
            assert informer.objects("seed")[old.key].version == changed.version

        await eventually(caught_up)
        assert informer.objects("seed")[old.key].scheduling_generation == changed.scheduling_generation
        await joint.store.delete(changed)

        async def gone() -> None:
            assert set(informer.objects("seed")) == {new.key}

        await eventually(gone)


async def test_it_has_seen_a_gain_only_with_the_change_that_made_it(joint: Joint) -> None:
    joint.start_relay()
    async with joint.informer(["seed", "cloudprofile", "namespacedcloudprofile", "project", "configmap"]) as informer:
        for number in range(5):
            await joint.create(a_shoot(f"a{number}"))
            seed = await joint.create(a_seed(f"s{number}"))
            unblock_indexes = (await joint.store.usage()).unblock_indexes
            assert await informer.wait_for_unblock_index(unblock_indexes.objects, 5)
            assert seed.key in informer.objects("seed")


async def test_it_lists_again_when_the_stream_is_another_one(joint: Joint) -> None:
    joint.start_relay()
    kept = await joint.create(a_seed("kept"))
    lost = await joint.create(a_seed("lost"))
    await joint.quiet()
    async with joint.informer(["seed"]) as informer:
        await joint.stop_relays()
        await asyncio.to_thread(joint.nats.stop)
        shutil.rmtree(joint.nats.directory / "jetstream")
        await joint.store.delete(lost)
        await asyncio.to_thread(joint.nats.start)
        joint.start_relay()

        async def listed_again() -> None:
            assert set(informer.objects("seed")) == {kept.key}

        await eventually(listed_again)


async def test_the_gate_that_it_knows_is_the_one_that_a_bind_needs(joint: Joint) -> None:
    joint.start_relay()
    async with joint.informer(["seed"]) as informer:
        seed = await joint.create(a_seed("s1"))
        await joint.update(seed.key, tier="gold")
        shoot = await joint.create(a_shoot("apollo"))

        async def binds() -> None:
            scheduling_generation = (
                informer.objects("seed")[seed.key].scheduling_generation if seed.key in informer.objects("seed") else -1
            )
            reply = await joint.store.bind(
                [SeedBinding("garden-dev", "apollo", shoot.uid, shoot.generation, "s1", scheduling_generation)]
            )
            assert reply.outcomes == ["bound"]

        await eventually(binds)


async def test_a_kind_limited_to_a_namespace_is_known_there_only(joint: Joint) -> None:
    joint.start_relay()
    listed, unlisted = await joint.create(a_shoot("old", "garden")), await joint.create(a_shoot("old", "garden-dev"))
    async with joint.informer(["shoot", "seed"], {"shoot": "garden"}) as informer:
        assert set(informer.objects("shoot")) == {listed.key}
        await joint.update(unlisted.key, tier="gold")
        followed = await joint.create(a_shoot("new", "garden"))
        await joint.create(a_shoot("new", "garden-dev"))
        await joint.store.delete(await joint.update(listed.key, tier="gold"))
        seed = await joint.create(a_seed("last"))

        async def caught_up() -> None:
            assert seed.key in informer.objects("seed")
            assert set(informer.objects("shoot")) == {followed.key}

        await eventually(caught_up)


async def test_what_this_process_wrote_itself_is_taken_as_it_is_once_it_is_announced(joint: Joint) -> None:
    joint.start_relay()
    await joint.create(a_seed("first"))
    async with joint.informer(["seed"]) as writing, joint.informer(["seed"]) as reading:
        await joint.quiet()
        await joint.stop_relays()
        own = await joint.create(a_seed("own", metadata={"labels": {"tier": "gold"}}))
        writing.assume(own)
        assert own.key not in writing.objects("seed"), "nobody else can know of it yet"
        joint.start_relay()

        async def announced() -> None:
            assert writing.objects("seed")[own.key] is own
            assert reading.objects("seed")[own.key] == own

        await eventually(announced)


async def test_what_somebody_else_has_changed_meanwhile_is_read_from_the_bus(joint: Joint) -> None:
    joint.start_relay()
    await joint.create(a_seed("first"))
    async with joint.informer(["seed"]) as informer:
        await joint.quiet()
        await joint.stop_relays()
        own = await joint.create(a_seed("own"))
        changed = await joint.update(own.key, tier="gold")
        joint.start_relay()
        await joint.announced("garden.changed.seed._.own", changed.version)
        informer.assume(own)

        async def current() -> None:
            assert own.key in informer.objects("seed")
            assert informer.objects("seed")[own.key].version == changed.version

        await eventually(current)
        later = await joint.update(own.key, tier="silver")

        async def newest() -> None:
            assert informer.objects("seed")[own.key].version == later.version
            assert informer.objects("seed")[own.key].labels["tier"] == "silver"

        await eventually(newest)
