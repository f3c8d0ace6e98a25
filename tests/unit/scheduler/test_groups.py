"""Rules between shoots in a scheduler: kept within a batch and between replicas, waited for, and never cached."""

from collections.abc import Sequence
from typing import Any

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.scheduling_profiles import (
    SchedulingProfile,
    ShootAffinity,
    TopologySpread,
    WeightedScore,
)
from gardenbus.common.api.garden.shoot_groups import GroupCounts
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot, merged, resolved_as
from tests.support.memory.store import MemoryStore
from tests.support.scheduling import SchedulerUnderTest, shoot_in, stocked

BASE = (a_cloudprofile(), a_project())
APART = {
    "groups": ["pair"],
    "affinity": {"shootAntiAffinity": {"required": [{"group": "pair", "topologyKey": "seed"}]}},
}
NEAR = {"affinity": {"shootAffinity": {"required": [{"group": "pair", "topologyKey": "seed"}]}}}


def a_member(name: str, requirements: Document = APART, **changes: Any) -> Document:
    return merged(a_shoot(name, **changes), {"metadata": resolved_as(requirements)})


async def seeds_of(store: MemoryStore, *names: str) -> list[str]:
    return [(await shoot_in(store, name)).parts.seed_name for name in names]


async def test_a_pair_of_one_batch_is_kept_apart_and_the_third_is_told_by_whom() -> None:
    store = await stocked(*BASE, a_seed("a"), a_seed("b"), *(a_member(name) for name in ("one", "two", "three")))
    scheduler = SchedulerUnderTest(store)
    await scheduler.handle_batch("one", "two", "three")
    assert await seeds_of(store, "one", "two", "three") == ["a", "b", ""]
    message = (await shoot_in(store, "three")).document()["status"]["lastOperation"]["description"]
    assert "a member of group pair is in seed a" in message


async def test_a_large_group_is_placed_over_several_calls() -> None:
    names = [f"s{number:03}" for number in range(230)]
    spread = {"groups": ["web"], "topologySpreadConstraints": [{"group": "web", "topologyKey": "seed"}]}
    store = await stocked(*BASE, a_seed("a"), a_seed("b"), *(a_member(name, spread) for name in names))
    await SchedulerUnderTest(store).handle_batch(*names)
    counts = (await store.group_counts("garden-dev", ["web"]))["web"]
    assert counts.members == {"a": 115, "b": 115}


class _SupersedingStore(MemoryStore):
    """A store in which another scheduler places a shoot right after the groups were first read."""

    other: SchedulerUnderTest | None = None

    async def group_counts(self, namespace: str, groups: Sequence[str]) -> dict[str, GroupCounts]:
        found = dict(await super().group_counts(namespace, groups))
        other, self.other = self.other, None
        if other is not None:
            await other.handle_batch("two")
        return found


async def test_who_is_overtaken_by_another_replica_decides_anew() -> None:
    plain = await stocked(*BASE)
    store = _SupersedingStore(plain.state.clock)
    for document in (*BASE, a_seed("a"), a_seed("b"), a_member("one"), a_member("two")):
        await store.create(document)
    store.other = SchedulerUnderTest(store)
    scheduler = SchedulerUnderTest(store)
    await scheduler.handle_batch("one")
    assert sorted(await seeds_of(store, "one", "two")) == ["a", "b"]


async def test_a_shoot_that_waits_for_its_first_neighbour_is_woken_by_it() -> None:
    store = await stocked(*BASE, a_seed("a"), a_seed("b"), a_member("follower", NEAR))
    scheduler = SchedulerUnderTest(store)
    await scheduler.handle_batch("follower")
    assert await seeds_of(store, "follower") == [""]
    await store.create(a_member("first", {"groups": ["pair"]}))
    await scheduler.handle_batch("first")
    before = len(store.state.outbox)
    await scheduler.activate()
    assert any("follower" in str(entry) for entry in store.state.outbox[before:])
    await scheduler.handle_batch("follower")
    first, follower = await seeds_of(store, "first", "follower")
    assert first == follower == "a"


async def test_a_neighbour_that_comes_later_in_the_same_batch_lets_a_shoot_in() -> None:
    store = await stocked(*BASE, a_seed("a"), a_member("follower", NEAR), a_member("first", {"groups": ["pair"]}))
    await SchedulerUnderTest(store).handle_batch("follower", "first")
    assert await seeds_of(store, "follower", "first") == ["a", "a"]


async def test_a_hint_leaves_shoots_with_groups_to_their_message() -> None:
    store = await stocked(*BASE, a_seed("a"), a_member("one"), a_shoot("plain"))
    scheduler = SchedulerUnderTest(store)
    await scheduler.informer.refresh()
    assert await scheduler.bind_early("one", "plain") == 1
    assert await seeds_of(store, "one", "plain") == ["", "a"]


async def test_shoots_without_groups_read_none() -> None:
    class Store(MemoryStore):
        async def group_counts(self, namespace: str, groups: Sequence[str]) -> dict[str, GroupCounts]:
            raise AssertionError(f"{namespace} {groups} were read")

    plain = await stocked(*BASE)
    store = Store(plain.state.clock)
    requesting = merged(a_shoot("sized"), {"metadata": resolved_as({"requests": {"cpu": 1}})})
    seed = merged(a_seed("a"), {"status": {"capacity": {"cpu": "1"}, "allocatable": {"cpu": "1"}}})
    for document in (*BASE, seed, a_shoot("one"), requesting):
        await store.create(document)
    await SchedulerUnderTest(store).handle_batch("one", "sized")
    assert await seeds_of(store, "one", "sized") == ["a", "a"]


async def test_what_is_preferred_decides_and_keeps_nobody_off() -> None:
    soft = {
        "groups": ["web"],
        "topologySpreadConstraints": [{"group": "web", "topologyKey": "seed", "whenUnsatisfiable": "ScheduleAnyway"}],
    }
    names = ("one", "two", "three")
    store = await stocked(
        *BASE, a_seed("a", shoots="9"), a_seed("b", shoots="1"), *(a_member(each, soft) for each in names)
    )
    profile = SchedulingProfile(scores=(WeightedScore("ShootTopologySpread", 1, TopologySpread()),))
    await SchedulerUnderTest(store, profiles=(profile,)).handle_batch(*names)
    assert await seeds_of(store, *names) == ["a", "b", "a"]


async def test_a_shoot_that_is_no_member_goes_where_it_prefers_to_be() -> None:
    near = {"affinity": {"shootAffinity": {"preferred": [{"weight": 1, "group": "pair", "topologyKey": "seed"}]}}}
    store = await stocked(*BASE, a_seed("a"), a_seed("b"), a_member("one", {"groups": ["pair"]}), a_member("two", near))
    profile = SchedulingProfile(scores=(WeightedScore("InterShootAffinity", 1, ShootAffinity()),))
    scheduler = SchedulerUnderTest(store, profiles=(profile,))
    await scheduler.handle_batch("one")
    await scheduler.handle_batch("two")
    (first, second) = await seeds_of(store, "one", "two")
    assert first == second == "a"
