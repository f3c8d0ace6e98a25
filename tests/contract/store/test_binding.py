"""Placement: each outcome of a bind, usage, capacity and the gate."""

import pytest

from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Forbidden
from gardenbus.common.ports.store import BindRecord, EventRecord, SeedBinding
from gardenbus.relay.ports.outbox import EventEntry, ObjectEntry
from tests.support.builders import NOW, a_seed, a_shoot, merged
from tests.support.stores import REPORTER, StoreUnderTest, a_binding, stored

APOLLO = ObjectKey("shoot", "garden-dev", "apollo")
SEED = "aws-eu1"


async def shoots(kit: StoreUnderTest, count: int) -> list[StoredObject]:
    return [await kit.created(a_shoot(f"shoot-{number}")) for number in range(count)]


async def test_a_bound_shoot_has_its_seed_the_gardenlets_finalizer_and_a_new_generation(kit: StoreUnderTest) -> None:
    await kit.created(a_seed())
    shoot = await kit.created(a_shoot())
    assert await kit.bound(shoot, SEED) == "bound"
    bound = await kit.now(APOLLO)
    document = bound.document()
    assert document["spec"]["seedName"] == SEED
    assert document["metadata"]["finalizers"] == ["gardener"]
    assert document["metadata"]["labels"] == {f"name.seed.gardener.cloud/{SEED}": "true"}
    assert bound.generation == 2
    assert bound.version > shoot.version
    assert await kit.store.shoots_on(SEED) == [APOLLO]


async def test_a_bind_keeps_other_finalizers_and_adds_its_own_once(kit: StoreUnderTest) -> None:
    await kit.created(a_seed())
    first = await kit.created(a_shoot("first", metadata={"finalizers": ["mine"]}))
    second = await kit.created(a_shoot("second", metadata={"finalizers": ["gardener", "mine"]}))
    await kit.store.bind([a_binding(first, SEED), a_binding(second, SEED)])
    assert (await kit.now(first.key)).parts.finalizers == ("mine", "gardener")
    assert (await kit.now(second.key)).parts.finalizers == ("gardener", "mine")


async def test_a_bind_is_announced_with_an_event(kit: StoreUnderTest) -> None:
    await kit.created(a_seed())
    shoot = await kit.created(a_shoot())
    await kit.fresh_entries()
    await kit.bound(shoot, SEED)
    changed, announced = await kit.fresh_entries()
    assert isinstance(changed, ObjectEntry)
    assert (changed.verb, changed.with_binding, changed.left) == ("modified", True, ())
    assert isinstance(announced, EventEntry)
    assert announced.event == EventRecord(
        about=APOLLO,
        uid=shoot.uid,
        type="Normal",
        reason="SchedulingSuccessful",
        message='Scheduled to seed "aws-eu1"',
        reporter=REPORTER,
        action="Reconcile",
    )
    assert (announced.count, announced.first_at, announced.at) == (1, NOW, NOW)


async def test_a_bind_can_fill_in_the_spec(kit: StoreUnderTest) -> None:
    await kit.created(a_seed())
    shoot = await kit.created(a_shoot())
    spec = merged(shoot.document()["spec"], {"dns": {"domain": "apollo.dev.example.org"}})
    assert await kit.bound(shoot, SEED, spec=spec) == "bound"
    assert (await kit.now(APOLLO)).document()["spec"] == {**spec, "seedName": SEED}


async def test_the_grounds_of_a_bind_are_remembered_with_the_shoot_and_go_with_it(kit: StoreUnderTest) -> None:
    await kit.created(a_seed())
    shoot, silent = await kit.created(a_shoot()), await kit.created(a_shoot("silent"))
    assert await kit.store.bind_record(APOLLO) is None
    assert await kit.bound(shoot, SEED, decision_record=b'["aws-eu1",7]') == "bound"
    assert await kit.bound(silent, SEED, spec=silent.document()["spec"]) == "bound"
    assert await kit.store.bind_record(APOLLO) == BindRecord(NOW, b'["aws-eu1",7]')
    assert await kit.store.bind_record(silent.key) is None
    bound = await kit.now(APOLLO)
    changed = await kit.changed(bound, merged(bound.document(), {"metadata": {"finalizers": []}}))
    assert await kit.store.bind_record(APOLLO) == BindRecord(NOW, b'["aws-eu1",7]')
    await kit.store.delete(changed)
    await kit.created(a_shoot())
    assert await kit.store.bind_record(APOLLO) is None


async def test_every_item_is_answered_for_itself_in_order(kit: StoreUnderTest) -> None:
    await kit.created(a_seed())
    await kit.created(a_seed("full", shoots=0))
    leaving = await kit.created(a_seed("leaving", metadata={"finalizers": ["gardener"]}))
    await kit.store.delete(leaving)
    scheduled = await kit.created(a_shoot("scheduled", spec={"seedName": SEED}))
    deleting = await kit.created(a_shoot("deleting", metadata={"finalizers": ["mine"]}))
    deleting = stored(await kit.store.delete(deleting))
    one, two = await kit.created(a_shoot("one")), await kit.created(a_shoot("two"))
    items = [
        SeedBinding("garden-dev", "missing", "uid", 1, SEED, None),
        SeedBinding("garden-dev", "one", "another uid", 1, SEED, None),
        SeedBinding("garden-dev", "one", one.uid, 7, SEED, None),
        a_binding(scheduled, SEED),
        a_binding(deleting, SEED),
        a_binding(one, "missing"),
        a_binding(one, "leaving"),
        a_binding(one, SEED, scheduling_generation=1_000_000_000),
        a_binding(one, "full"),
        a_binding(one, SEED),
        a_binding(one, SEED),
        a_binding(two, SEED),
    ]
    reply = await kit.store.bind(items)
    assert reply.outcomes == [
        "gone",
        "gone",
        "changed",
        "scheduled",
        "deleting",
        "seed-gone",
        "seed-gone",
        "seed-changed",
        "full",
        "bound",
        "scheduled",
        "bound",
    ]
    assert reply.usage == await kit.store.usage()
    assert reply.usage.seeds == {SEED: 3}


@pytest.mark.parametrize(
    ("allocatable", "places"), [("2", 2), (2, 2), ("1500m", 2), ("0", 0), ("100m", 1), ("1e0", 1), (2.5, 3)]
)
async def test_a_seed_takes_shoots_while_its_usage_is_below_its_allocatable(
    kit: StoreUnderTest, allocatable: str | float, places: int
) -> None:
    await kit.created(a_seed(shoots=allocatable))
    reply = await kit.store.bind([a_binding(shoot, SEED) for shoot in await shoots(kit, 4)])
    assert reply.outcomes == ["bound"] * places + ["full"] * (4 - places)


async def test_a_seed_without_the_key_has_no_limit(kit: StoreUnderTest) -> None:
    await kit.created(a_seed(shoots=None))
    reply = await kit.store.bind([a_binding(shoot, SEED) for shoot in await shoots(kit, 5)])
    assert reply.outcomes == ["bound"] * 5


async def test_lowering_the_capacity_evicts_nobody_and_admits_nobody(kit: StoreUnderTest) -> None:
    seed = await kit.created(a_seed(shoots=3))
    first, second, third = await shoots(kit, 3)
    await kit.store.bind([a_binding(first, SEED), a_binding(second, SEED)])
    await kit.changed(seed, merged(seed.document(), {"status": {"allocatable": {"shoots": "1"}}}))
    assert await kit.bound(third, SEED) == "full"
    assert len(await kit.store.shoots_on(SEED)) == 2
    placed = await kit.now(first.key)
    assert stored(await kit.store.update(placed, merged(placed.document(), {"status": {"seedName": SEED}})))


async def test_the_gate_opens_to_what_was_decided_on_the_seed_as_it_is(kit: StoreUnderTest) -> None:
    seed = await kit.created(a_seed())
    first, second = await shoots(kit, 2)
    assert seed.scheduling_generation
    assert await kit.bound(first, SEED, scheduling_generation=seed.scheduling_generation) == "bound"
    tainted = await kit.changed(seed, merged(seed.document(), {"spec": {"taints": [{"key": "a"}]}}))
    assert await kit.bound(second, SEED, scheduling_generation=seed.scheduling_generation) == "seed-changed"
    assert await kit.bound(second, SEED, scheduling_generation=tainted.scheduling_generation) == "bound"


async def test_heartbeats_and_usage_leave_the_gate_alone(kit: StoreUnderTest) -> None:
    seed = await kit.created(a_seed())
    shoot = await kit.created(a_shoot(spec={"seedName": SEED}))
    beat = merged(seed.document(), {"status": {"lastOperation": {"lastUpdateTime": "2026-01-02T03:05:05Z"}}})
    beaten = await kit.changed(seed, beat)
    assert beaten.scheduling_generation == seed.scheduling_generation
    smaller = await kit.changed(beaten, merged(beaten.document(), {"status": {"allocatable": {"shoots": "7"}}}))
    assert smaller.scheduling_generation == seed.scheduling_generation
    unready = await kit.changed(smaller, merged(smaller.document(), {"status": {"conditions": []}}))
    assert unready.scheduling_generation > seed.scheduling_generation
    assert (await kit.now(shoot.key)).scheduling_generation == 0


async def test_a_deletion_of_a_seed_closes_its_gate(kit: StoreUnderTest) -> None:
    seed = await kit.created(a_seed(metadata={"finalizers": ["gardener"]}))
    marked = stored(await kit.store.delete(seed))
    assert marked.scheduling_generation > seed.scheduling_generation


async def test_a_shoot_that_comes_with_its_seed_passes_the_checks_of_a_bind(kit: StoreUnderTest) -> None:
    seed = await kit.created(a_seed(shoots=1))
    with pytest.raises(Forbidden, match="the seed does not exist"):
        await kit.store.create(a_shoot(spec={"seedName": "nowhere"}))
    with pytest.raises(Forbidden, match="changed"):
        await kit.store.create(a_shoot(spec={"seedName": SEED}), scheduling_generation=seed.scheduling_generation + 1)
    await kit.fresh_entries()
    shoot = await kit.created(a_shoot(spec={"seedName": SEED}), scheduling_generation=seed.scheduling_generation)
    assert shoot.parts.finalizers == ("gardener",)
    assert not await kit.work(), "it is not pending"
    with pytest.raises(Forbidden, match="maximum number of shoots"):
        await kit.store.create(a_shoot("second", spec={"seedName": SEED}))
    assert (await kit.store.usage()).seeds == {SEED: 1}


async def test_an_update_that_names_a_seed_passes_the_checks_and_ends_the_waiting(kit: StoreUnderTest) -> None:
    await kit.created(a_seed())
    await kit.created(a_seed("full", shoots=0))
    shoot = await kit.created(a_shoot())
    await kit.marked_unschedulable(shoot)
    waiting = await kit.now(APOLLO)
    with pytest.raises(Forbidden):
        await kit.store.update(waiting, merged(waiting.document(), {"spec": {"seedName": "full"}}))
    placed = await kit.changed(waiting, merged(waiting.document(), {"spec": {"seedName": SEED}}))
    assert placed == await kit.now(APOLLO)
    assert placed.pending == b""
    assert "lastOperation" not in placed.document().get("status", {})
    assert placed.parts.finalizers == ("gardener",)
    assert (await kit.store.census())["shoots.waiting"] == 0


async def test_a_shoot_counts_on_both_seeds_while_it_moves(kit: StoreUnderTest) -> None:
    await kit.created(a_seed("old"))
    await kit.created(a_seed("new", shoots=1))
    shoot = await kit.created(a_shoot(spec={"seedName": "old"}))
    claimed = await kit.changed(shoot, merged(shoot.document(), {"status": {"seedName": "old"}}))
    assert (await kit.store.usage()).seeds == {"old": 1}
    before = await kit.store.usage()
    moving = await kit.changed(claimed, merged(claimed.document(), {"spec": {"seedName": "new"}}))
    usage = await kit.store.usage(before.version)
    assert usage.seeds == {"new": 1}
    assert usage.unblock_indexes == before.unblock_indexes, "nothing became free"
    assert await kit.store.shoots_on("old") == await kit.store.shoots_on("new") == [APOLLO]
    other = await kit.created(a_shoot("other"))
    assert await kit.bound(other, "new") == "full"
    await kit.fresh_entries()
    moved = await kit.changed(moving, merged(moving.document(), {"status": {"seedName": "new"}}))
    assert [entry.left for entry in await kit.changes()] == [("old",)]
    usage = await kit.store.usage(usage.version)
    assert usage.seeds == {"old": 0}
    assert usage.unblock_indexes.usage == before.unblock_indexes.usage + 1
    assert moved.document()["metadata"]["labels"] == {"name.seed.gardener.cloud/new": "true"}


async def test_a_shoot_may_turn_back_to_a_full_seed_that_counts_it_still(kit: StoreUnderTest) -> None:
    await kit.created(a_seed("old", shoots=1))
    await kit.created(a_seed("new"))
    shoot = await kit.created(a_shoot(spec={"seedName": "old"}))
    shoot = await kit.changed(shoot, merged(shoot.document(), {"status": {"seedName": "old"}}))
    shoot = await kit.changed(shoot, merged(shoot.document(), {"spec": {"seedName": "new"}}))
    await kit.changed(shoot, merged(shoot.document(), {"spec": {"seedName": "old"}}))
    assert (await kit.store.usage()).seeds == {"old": 1, "new": 0}


async def test_a_shoot_leaves_its_seeds_when_it_is_gone_and_not_before(kit: StoreUnderTest) -> None:
    await kit.created(a_seed())
    shoot = await kit.created(a_shoot(spec={"seedName": SEED}))
    marked = stored(await kit.store.delete(shoot))
    assert (await kit.store.usage()).seeds == {SEED: 1}
    await kit.fresh_entries()
    await kit.changed(marked, merged(marked.document(), {"metadata": {"finalizers": []}}))
    assert (await kit.store.usage()).seeds == {SEED: 0}
    assert not await kit.store.shoots_on(SEED)
    assert [(entry.verb, entry.left) for entry in await kit.changes()] == [("deleted", (SEED,))]


async def test_usage_tells_only_what_changed_since(kit: StoreUnderTest) -> None:
    await kit.created(a_seed("one"))
    await kit.created(a_seed("two"))
    first, second = await shoots(kit, 2)
    reply = await kit.store.bind([a_binding(first, "one")])
    reply = await kit.store.bind([a_binding(second, "two")], reply.usage.version)
    assert reply.usage.seeds == {"two": 1}
    assert (await kit.store.usage(reply.usage.version)).seeds == {}
    assert (await kit.store.usage()).seeds == {"one": 1, "two": 1}


async def test_an_unbound_shoot_is_pending_again_and_frees_its_place(kit: StoreUnderTest) -> None:
    await kit.created(a_seed(shoots=1))
    shoot = await kit.created(a_shoot(spec={"seedName": SEED}))
    await kit.fresh_entries()
    unbound = merged(shoot.document(), {"spec": {"seedName": None}})
    shoot = await kit.changed(shoot, unbound)
    assert (await kit.changes())[0].left == (SEED,)
    assert (await kit.store.usage()).seeds == {SEED: 0}
    assert await kit.bound(shoot, SEED) == "bound"
