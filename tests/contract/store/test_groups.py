"""Groups of shoots: counted wherever usage moves, and a fence around every write that places one of their shoots."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.garden.shoot_groups import GroupCounts
from gardenbus.common.errors import Conflict, Forbidden
from gardenbus.common.ports.store import BindOutcome, SeedBinding, SeenGroups, UnblockIndexes, WritePrecondition
from tests.support.builders import a_seed, a_shoot, merged, resolved_as
from tests.support.stores import StoreUnderTest, a_binding, an_unschedulable_shoot

SEED, OTHER, THIRD = "aws-eu1", "aws-eu2", "aws-eu3"
NAMESPACE = "garden-dev"
PAIR = {"groups": ["pair"]}
APART = {
    "groups": ["pair"],
    "affinity": {"shootAntiAffinity": {"required": [{"group": "pair", "topologyKey": "seed"}]}},
}


def a_member(name: str, requirements: Document = APART, **changes: Any) -> Document:
    """A shoot with requirements, as admission resolves it."""
    return merged(a_shoot(name, **changes), {"metadata": resolved_as(requirements)})


async def counts(kit: StoreUnderTest, group: str = "pair") -> GroupCounts:
    return (await kit.store.group_counts(NAMESPACE, [group]))[group]


async def seen(kit: StoreUnderTest, *groups: str, after: int = 0) -> SeenGroups:
    """The groups as they are, with so many shoots of the call placed before."""
    found = await kit.store.group_counts(NAMESPACE, groups or ["pair"])
    return {group: (each.version, after) for group, each in found.items()}


def on(shoot: StoredObject, seed: str, groups: SeenGroups) -> SeedBinding:
    return SeedBinding(
        namespace=shoot.key.namespace,
        name=shoot.key.name,
        uid=shoot.uid,
        generation=shoot.generation,
        seed=seed,
        scheduling_generation=None,
        groups=groups,
    )


async def outcomes(kit: StoreUnderTest, *bindings: SeedBinding) -> Sequence[BindOutcome]:
    return (await kit.store.bind(bindings)).outcomes


async def placed(kit: StoreUnderTest, name: str, seed: str = SEED, requirements: Document = APART) -> StoredObject:
    shoot = await kit.created(a_member(name, requirements))
    assert await outcomes(kit, on(shoot, seed, await seen(kit))) == ["bound"]
    stored = await kit.store.get(shoot.key)
    assert stored is not None
    return stored


def moved_to(shoot: StoredObject, seed: str) -> Document:
    return merged(shoot.document(), {"spec": {"seedName": seed}, "status": {"seedName": shoot.parts.seed_name}})


async def indexes(kit: StoreUnderTest) -> UnblockIndexes:
    return (await kit.store.usage()).unblock_indexes


async def with_seeds(kit: StoreUnderTest) -> None:
    for name in (SEED, OTHER, THIRD):
        await kit.created(a_seed(name))


async def test_members_are_counted_by_seed_and_so_are_those_that_keep_others_off(kit: StoreUnderTest) -> None:
    await with_seeds(kit)
    await placed(kit, "one")
    await placed(kit, "two", OTHER, PAIR)
    found = await counts(kit)
    assert found.members == {SEED: 1, OTHER: 1}
    assert found.keeping_off == {"seed": {SEED: 1}}


async def test_a_bind_that_another_one_has_overtaken_is_refused(kit: StoreUnderTest) -> None:
    await with_seeds(kit)
    one, two = await kit.created(a_member("one")), await kit.created(a_member("two"))
    read = await seen(kit)
    assert await outcomes(kit, on(one, SEED, read)) == ["bound"]
    assert await outcomes(kit, on(two, SEED, read)) == ["group-changed"]
    assert (await counts(kit)).members == {SEED: 1}
    assert await outcomes(kit, on(two, OTHER, await seen(kit))) == ["bound"]


@pytest.mark.parametrize("groups", [{}, {"another": (0, 0)}])
async def test_a_bind_without_the_groups_of_its_shoot_is_refused(
    kit: StoreUnderTest, groups: Mapping[str, tuple[int, int]]
) -> None:
    await with_seeds(kit)
    shoot = await kit.created(a_member("one", PAIR))
    assert await outcomes(kit, on(shoot, SEED, groups)) == ["group-changed"]
    assert (await kit.store.usage()).seeds.get(SEED, 0) == 0


async def test_a_bind_depends_on_groups_that_its_shoot_has_a_rule_about(kit: StoreUnderTest) -> None:
    await with_seeds(kit)
    near = {"affinity": {"shootAffinity": {"required": [{"group": "pair", "topologyKey": "seed"}]}}}
    follower = await kit.created(a_member("follower", near))
    read = await seen(kit)
    await placed(kit, "one")
    assert await outcomes(kit, on(follower, OTHER, read)) == ["group-changed"]
    assert await outcomes(kit, on(follower, SEED, await seen(kit))) == ["bound"]
    assert (await counts(kit)).members == {SEED: 1}


async def test_shoots_of_one_call_count_upon_each_other_in_their_order(kit: StoreUnderTest) -> None:
    await with_seeds(kit)
    one, two, three = [await kit.created(a_member(name)) for name in ("one", "two", "three")]
    read = await seen(kit)
    later = await seen(kit, after=1)
    assert await outcomes(kit, on(one, SEED, read), on(two, OTHER, later), on(three, THIRD, later)) == [
        "bound",
        "bound",
        "group-changed",
    ]
    assert await outcomes(kit, on(three, THIRD, await seen(kit, after=2))) == ["group-changed"]
    assert await outcomes(kit, on(three, THIRD, await seen(kit))) == ["bound"]


async def test_what_counted_upon_a_shoot_that_was_not_placed_is_refused(kit: StoreUnderTest) -> None:
    await with_seeds(kit)
    one, two = await kit.created(a_member("one")), await kit.created(a_member("two"))
    read, later = await seen(kit), await seen(kit, after=1)
    gone = msgspec.structs.replace(on(one, SEED, read), uid="another")
    assert await outcomes(kit, gone, on(two, SEED, later)) == ["gone", "group-changed"]


async def test_a_group_that_comes_again_has_a_version_that_it_never_had(kit: StoreUnderTest) -> None:
    await with_seeds(kit)
    versions: list[int] = []
    for name in ("one", "two", "three"):
        shoot = await placed(kit, name)
        versions.append((await counts(kit)).version)
        await kit.store.delete(shoot)
        current = await kit.store.get(shoot.key)
        assert current is not None
        without = merged(current.document(), {"metadata": {"finalizers": []}})
        await kit.store.update(current, without)
        assert await counts(kit) == GroupCounts()
    assert versions == sorted(set(versions))


async def test_a_shoot_counts_on_both_seeds_while_it_moves(kit: StoreUnderTest) -> None:
    await with_seeds(kit)
    shoot = await placed(kit, "one")
    guard = WritePrecondition("groups", "", "changed", groups=await seen(kit))
    moving = await kit.store.update(shoot, moved_to(shoot, OTHER), preconditions=[guard])
    assert isinstance(moving, StoredObject)
    assert (await counts(kit)).members == {SEED: 1, OTHER: 1}
    arrived = merged(moving.document(), {"status": {"seedName": OTHER}})
    await kit.store.update(moving, arrived)
    found = await counts(kit)
    assert (found.members, found.keeping_off) == ({OTHER: 1}, {"seed": {OTHER: 1}})


async def test_a_write_that_places_a_member_needs_its_groups_as_they_are(kit: StoreUnderTest) -> None:
    await with_seeds(kit)
    with pytest.raises(Forbidden, match="has a rule about one: leave out"):
        await kit.created(a_member("made", spec={"seedName": SEED}))
    shoot = await placed(kit, "one")
    with pytest.raises(Forbidden, match="or has a rule about one"):
        await kit.store.update(shoot, moved_to(shoot, OTHER))
    guard = WritePrecondition("groups", "", "a group changed", groups=await seen(kit))
    await placed(kit, "two", OTHER)
    with pytest.raises(Conflict, match="a group changed"):
        await kit.store.update(shoot, moved_to(shoot, OTHER), preconditions=[guard])


async def test_a_move_is_taken_back_whatever_the_groups_are_like(kit: StoreUnderTest) -> None:
    await with_seeds(kit)
    shoot = await placed(kit, "one")
    guard = WritePrecondition("groups", "", "changed", groups=await seen(kit))
    moving = await kit.store.update(shoot, moved_to(shoot, OTHER), preconditions=[guard])
    assert isinstance(moving, StoredObject)
    await placed(kit, "two", THIRD)
    await kit.store.update(moving, merged(moving.document(), {"spec": {"seedName": SEED}}))
    assert (await counts(kit)).members == {SEED: 1, THIRD: 1}


async def test_groups_that_change_on_a_placed_shoot_are_counted_at_once(kit: StoreUnderTest) -> None:
    await with_seeds(kit)
    shoot = await placed(kit, "one")
    read = await seen(kit)
    await kit.changed(shoot, merged(shoot.document(), {"metadata": resolved_as({"groups": ["web"]})}))
    assert await counts(kit) == GroupCounts()
    assert (await counts(kit, "web")).members == {SEED: 1}
    other = await kit.created(a_member("other"))
    assert await outcomes(kit, on(other, SEED, read)) == ["group-changed"]


async def test_a_waiting_shoot_is_woken_by_a_change_of_its_group(kit: StoreUnderTest) -> None:
    await with_seeds(kit)
    near = {"affinity": {"shootAffinity": {"required": [{"group": "pair", "topologyKey": "seed"}]}}}
    follower = await kit.created(a_member("follower", near))
    read = await seen(kit)
    marked = an_unschedulable_shoot(follower, seen=await indexes(kit), groups=read)
    assert (await kit.store.mark_unschedulable([marked])).outcomes[0].outcome == "parked"
    before = (await kit.store.usage()).unblock_indexes
    stranger = await kit.created(a_shoot("stranger"))
    assert await kit.bound(stranger, SEED) == "bound"
    assert (await kit.store.usage()).unblock_indexes == before
    await placed(kit, "one")
    after = (await kit.store.usage()).unblock_indexes
    assert after == UnblockIndexes(before.objects, before.usage + 1)
    classes = await kit.store.unschedulable_classes(marked.scheduler_name)
    assert [each.unseen for each in classes] == [1]


async def test_a_shoot_is_not_left_waiting_for_what_has_come_already(kit: StoreUnderTest) -> None:
    await with_seeds(kit)
    near = {"affinity": {"shootAffinity": {"required": [{"group": "pair", "topologyKey": "seed"}]}}}
    follower = await kit.created(a_member("follower", near))
    read = await seen(kit)
    await placed(kit, "one")
    assert (
        await kit.store.mark_unschedulable([an_unschedulable_shoot(follower, seen=await indexes(kit), groups=read)])
    ).outcomes[0].outcome == "again"


async def test_a_shoot_without_groups_leaves_no_trace_of_them(kit: StoreUnderTest) -> None:
    await with_seeds(kit)
    shoot = await kit.created(a_shoot("plain"))
    assert await outcomes(kit, a_binding(shoot, SEED)) == ["bound"]
    if kit.connection is not None:
        keys = await kit.connection.command("KEYS", kit.connection.key("*"))
        assert not [key for key in keys if b":group:" in key or b":awaited:" in key]
        assert not await kit.connection.command("HGET", kit.connection.key(f"o:{shoot.key.stored}"), "grp")


async def test_no_order_of_two_deciders_puts_a_pair_together(kit: StoreUnderTest) -> None:
    """Every order of: each of two reads the group, decides, and binds; who is refused decides anew."""
    await with_seeds(kit)
    orders = sorted(set(itertools.permutations("aabb")))
    for number, order in enumerate(orders):
        shoots = {each: await kit.created(a_member(f"{each}{number}", _apart_in(number))) for each in "ab"}
        read: dict[str, GroupCounts] = {}
        for each in order:
            if each not in read:
                read[each] = await counts(kit, f"g{number}")
            else:
                await _decided(kit, shoots[each], read[each], number)
        for each in "ab":
            stored = await kit.store.get(shoots[each].key)
            assert stored is not None
            if not stored.parts.seed_name:
                await _decided(kit, stored, await counts(kit, f"g{number}"), number)
        assert (await counts(kit, f"g{number}")).members == {SEED: 1, OTHER: 1}


def _apart_in(number: int) -> Document:
    group = f"g{number}"
    terms = [{"group": group, "topologyKey": "seed"}]
    return {"groups": [group], "affinity": {"shootAntiAffinity": {"required": terms}}}


async def _decided(kit: StoreUnderTest, shoot: StoredObject, read: GroupCounts, number: int) -> None:
    """Place a shoot on the first seed without a member."""
    seed = next(each for each in (SEED, OTHER, THIRD) if not read.members.get(each))
    await kit.store.bind([on(shoot, seed, {f"g{number}": (read.version, 0)})])
