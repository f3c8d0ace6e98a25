"""Gauges of the seeds."""

from typing import NamedTuple

import pytest
from prometheus_client import REGISTRY

from gardenbus.common.api.document import StoredObject
from gardenbus.common.ports.store import SeedBinding
from gardenbus.lifecycle.domain.assessment import WatchedSeed
from gardenbus.lifecycle.domain.freshness import LeaseRecord
from gardenbus.lifecycle.watch.seed_gauges import SeedGauges
from tests.support.builders import a_seed, a_shoot
from tests.support.clocks import FakeClock
from tests.support.memory.store import MemoryStore

PLACE = {"provider": "aws", "region": "eu-west-1"}


class Scene(NamedTuple):
    store: MemoryStore
    clock: FakeClock
    records: dict[str, LeaseRecord]
    watched: dict[str, WatchedSeed]

    def gauges(self, *, is_per_seed: bool = False) -> SeedGauges:
        return SeedGauges(
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
    binding = SeedBinding("garden-dev", shoot.key.name, shoot.uid, shoot.generation, "s1", seed.scheduling_generation)
    assert (await scene.store.bind([binding])).outcomes == ["bound"]
    return scene


async def shown(scene: Scene, gauges: SeedGauges) -> None:
    page = await scene.store.list_page("seed")
    for stored in page.objects:
        gauges.watch(stored.key, None, stored)
    await gauges.refresh_usage()
    gauges.publish()


def value(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(name, labels)


async def test_seeds_are_shown_by_state_with_their_use_by_region(scene: Scene):
    await shown(scene, scene.gauges())
    assert value("gardenbus_seeds", state="ready", **PLACE) == 1
    assert value("gardenbus_seeds_shoots_used", **PLACE) == 1


async def test_a_seed_that_is_gone_is_shown_no_longer(scene: Scene):
    gauges = scene.gauges()
    await shown(scene, gauges)
    for stored in (await scene.store.list_page("seed")).objects:
        gauges.watch(stored.key, stored, None)
    gauges.publish()
    assert value("gardenbus_seeds", state="ready", **PLACE) is None
    assert value("gardenbus_seeds_shoots_used", **PLACE) is None


async def test_single_seeds_are_shown_only_when_that_is_asked_for(scene: Scene):
    await shown(scene, scene.gauges())
    assert value("gardenbus_seed_shoots_used", seed="s1") is None
    await shown(scene, scene.gauges(is_per_seed=True))
    assert value("gardenbus_seed_shoots_used", seed="s1") == 1
    assert value("gardenbus_seed_ready", seed="s1") == 1


async def test_a_lease_that_stopped_is_shown_as_late_with_its_age(scene: Scene):
    scene.watched["s1"] = WatchedSeed(has_reported=True, is_expired=False)
    scene.watched["never-reported"] = WatchedSeed(has_reported=False, is_expired=False)
    scene.records["s1"] = LeaseRecord(arrived_at=scene.clock.monotonic())
    gauges = scene.gauges()
    gauges.publish()
    assert value("gardenbus_lifecycle_leases_late") == 0
    scene.clock.advance(30)
    gauges.publish()
    assert value("gardenbus_lifecycle_leases_late") == 1
    assert value("gardenbus_lifecycle_lease_oldest_age_seconds") == 30
