"""What is shown of the seeds."""

from typing import NamedTuple

import pytest
from prometheus_client import REGISTRY

from gardenbus.common.adapters.memory_store import MemoryStore
from gardenbus.common.ports.store import Binding
from gardenbus.common.resources.document import StoredObject
from gardenbus.lifecycle.decide.freshness import LeaseRecord
from gardenbus.lifecycle.decide.verdict import WatchedSeed
from gardenbus.lifecycle.reconcilers.fleet import FleetFigures
from tests.support.builders import a_seed, a_shoot
from tests.support.clocks import FakeClock

PLACE = {"provider": "aws", "region": "eu-west-1"}


class Scene(NamedTuple):
    store: MemoryStore
    clock: FakeClock
    records: dict[str, LeaseRecord]
    watched: dict[str, WatchedSeed]

    def figures(self, *, is_per_seed: bool = False) -> FleetFigures:
        return FleetFigures(
            self.store, self.records, self.watched, self.clock, late_after_seconds=20, is_per_seed=is_per_seed
        )


@pytest.fixture
async def scene() -> Scene:
    """One seed with room, and a shoot on it."""
    clock = FakeClock()
    scene = Scene(MemoryStore(clock), clock, {}, {})
    seed = await scene.store.create(a_seed("s1"))
    shoot = await scene.store.create(a_shoot())
    assert isinstance(seed, StoredObject)
    assert isinstance(shoot, StoredObject)
    binding = Binding("garden-dev", shoot.key.name, shoot.uid, shoot.generation, "s1", seed.gate)
    assert (await scene.store.bind([binding])).outcomes == ["bound"]
    return scene


async def shown(scene: Scene, figures: FleetFigures) -> None:
    page = await scene.store.list_page("seed")
    for stored in page.objects:
        figures.watch(stored.key, None, stored)
    await figures.ask_usage()
    figures.show()


def value(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(name, labels)


async def test_seeds_are_shown_by_state_with_their_use_by_region(scene: Scene):
    await shown(scene, scene.figures())
    assert value("gardenbus_seeds", state="ready", **PLACE) == 1
    assert value("gardenbus_seeds_shoots_used", **PLACE) == 1


async def test_a_seed_that_is_gone_is_shown_no_longer(scene: Scene):
    figures = scene.figures()
    await shown(scene, figures)
    for stored in (await scene.store.list_page("seed")).objects:
        figures.watch(stored.key, stored, None)
    figures.show()
    assert value("gardenbus_seeds", state="ready", **PLACE) is None
    assert value("gardenbus_seeds_shoots_used", **PLACE) is None


async def test_single_seeds_are_shown_only_when_that_is_asked_for(scene: Scene):
    await shown(scene, scene.figures())
    assert value("gardenbus_seed_shoots_used", seed="s1") is None
    await shown(scene, scene.figures(is_per_seed=True))
    assert value("gardenbus_seed_shoots_used", seed="s1") == 1
    assert value("gardenbus_seed_ready", seed="s1") == 1


async def test_a_lease_that_stopped_is_shown_as_late_with_its_age(scene: Scene):
    scene.watched["s1"] = WatchedSeed(was_heard_of=True, is_believed_dead=False)
    scene.watched["never-reported"] = WatchedSeed(was_heard_of=False, is_believed_dead=False)
    scene.records["s1"] = LeaseRecord(arrived_at=scene.clock.monotonic())
    figures = scene.figures()
    figures.show()
    assert value("gardenbus_lifecycle_leases_late") == 0
    scene.clock.advance(30)
    figures.show()
    assert value("gardenbus_lifecycle_leases_late") == 1
    assert value("gardenbus_lifecycle_lease_oldest_age_seconds") == 30
