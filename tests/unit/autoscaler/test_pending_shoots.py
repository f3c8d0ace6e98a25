"""Shoots that count as pending, and those that count as being scheduled."""

import pytest

from gardenbus.autoscaler.domain.scale_up_simulation import PendingShoots
from gardenbus.autoscaler.watch.pending_shoots import PendingShootCounter
from gardenbus.common.api.configuration.seed_autoscaler import SchedulerReference
from gardenbus.common.api.garden.managed_seed_sets import replica_shoot, template_seed
from gardenbus.common.api.garden.scheduling_profiles import (
    AddedAffinity,
    SchedulingProfile,
    SeedAffinity,
    WeightedScore,
)
from gardenbus.common.ports.store import Usage
from gardenbus.scheduling.cache import SchedulingCache
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot, merged, resolved_as
from tests.support.scheduling import InstantInformer, SchedulerUnderTest, stocked
from tests.support.seed_sets import a_managed_seed_set
from tests.support.stores import in_memory, stored


async def test_shoots_that_are_to_become_seeds_are_neither_waiting_nor_being_placed() -> None:
    garden = in_memory()
    await garden.open()
    informer = InstantInformer(garden.store)  # pyright: ignore[reportArgumentType] - it is a memory store
    current = SchedulingCache(informer, "SameRegion")
    informer.callback = current.changed
    counter = PendingShootCounter(garden.store, {SchedulerReference(): current})
    grove = stored(await garden.store.create(a_managed_seed_set())).document()
    own = stored(await garden.store.create(replica_shoot(grove, "grove-0")))
    new_seed = template_seed(grove, "grove-1")

    assert await counter.count(new_seed, garden_shoots=[own], managed_seeds=()) == PendingShoots(0, 0)

    await garden.store.create(a_shoot("guest"))
    assert await counter.count(new_seed, garden_shoots=[own], managed_seeds=()) == PendingShoots(0, 1)


async def test_usage_that_has_not_changed_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    garden = in_memory()
    await garden.open()
    informer = InstantInformer(garden.store)  # pyright: ignore[reportArgumentType] - it is a memory store
    current = SchedulingCache(informer, "SameRegion")
    informer.callback = current.changed
    counter = PendingShootCounter(garden.store, {SchedulerReference(): current})
    new_seed = template_seed(stored(await garden.store.create(a_managed_seed_set())).document(), "grove-1")
    for number in range(3):
        await garden.store.create(a_seed(f"seed-{number}"))
        await garden.store.create(a_shoot(f"on-{number}", spec={"seedName": f"seed-{number}"}))
    read: list[Usage] = []
    usage = garden.store.usage

    async def noted(since: int = 0) -> Usage:
        read.append(await usage(since))
        return read[-1]

    monkeypatch.setattr(garden.store, "usage", noted)
    await counter.count(new_seed, garden_shoots=(), managed_seeds=())
    await counter.count(new_seed, garden_shoots=(), managed_seeds=())
    await garden.store.create(a_shoot("another", spec={"seedName": "seed-1"}))
    await counter.count(new_seed, garden_shoots=(), managed_seeds=())
    assert dict(read[0].seeds) == {"seed-0": 1, "seed-1": 1, "seed-2": 1}
    assert [dict(each.seeds) for each in read[1:]] == [{}, {"seed-1": 2}]


async def test_the_groups_of_waiting_shoots_are_read_and_their_profile_decides() -> None:
    purposes = AddedAffinity(purposes=("production",), preferred=())
    profile = SchedulingProfile(scores=(WeightedScore("SeedAffinity", 1, SeedAffinity(added=(purposes,))),))
    apart = {"group": "pair", "topologyKey": "seed"}
    rules = resolved_as({"groups": ["pair"], "affinity": {"shootAntiAffinity": {"required": [apart]}}})
    pair = [merged(a_shoot(name), {"metadata": rules}) for name in ("one", "two", "three")]
    store = await stocked(a_cloudprofile(), a_project(), a_seed("a"), *pair)
    scheduler = SchedulerUnderTest(store, profiles=[profile])
    await scheduler.handle_batch("one", "two", "three")
    counter = PendingShootCounter(store, {SchedulerReference(): scheduler.cache})

    new_seed = merged(a_seed("new"), {"metadata": {"name": "a-new-seed.of.the-set"}})
    counted = await counter.count(new_seed, garden_shoots=(), managed_seeds=())

    assert counted == PendingShoots(2, 0), "though seed a has room"
