"""Shoots that count as pending, and those that count as being scheduled."""

from gardenbus.autoscaler.domain.scale_up_simulation import PendingShoots
from gardenbus.autoscaler.watch.pending_shoots import PendingShootCounter
from gardenbus.common.api.configuration.seed_autoscaler import SchedulerReference
from gardenbus.common.api.garden.managed_seed_sets import replica_shoot, template_seed
from gardenbus.scheduling.cache import SchedulingCache
from tests.support.builders import a_shoot
from tests.support.scheduling import InstantInformer
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
