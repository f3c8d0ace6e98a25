"""Who counts as waiting, and who as being placed, by what the store says."""

from gardenbus.autoscaler.decide.configuration import SchedulerChoice
from gardenbus.autoscaler.decide.demand import Waiting
from gardenbus.autoscaler.reconcilers.demand import Demand
from gardenbus.common.resources.managed_seed_sets import replica_shoot, template_seed
from gardenbus.scheduling.current import CurrentLandscape
from tests.support.builders import a_shoot
from tests.support.scheduling import InstantInformer
from tests.support.seed_sets import a_managed_seed_set
from tests.support.stores import in_memory, stored


async def test_shoots_that_are_to_become_seeds_are_neither_waiting_nor_being_placed() -> None:
    garden = in_memory()
    await garden.open()
    informer = InstantInformer(garden.store)  # pyright: ignore[reportArgumentType] - it is a memory store
    current = CurrentLandscape(informer, "SameRegion")
    informer.callback = current.changed
    demand = Demand(garden.store, {SchedulerChoice(): current})
    grove = stored(await garden.store.create(a_managed_seed_set())).document()
    own = stored(await garden.store.create(replica_shoot(grove, "grove-0")))
    new_seed = template_seed(grove, "grove-1")

    assert await demand.waiting(new_seed, garden_shoots=[own], managed_seeds=()) == Waiting(0, 0)

    await garden.store.create(a_shoot("guest"))
    assert await demand.waiting(new_seed, garden_shoots=[own], managed_seeds=()) == Waiting(0, 1)
