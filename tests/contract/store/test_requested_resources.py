"""Requests of resources: reserved in the bind, in the put and in moves, and never more than a seed has."""

import json

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Forbidden
from gardenbus.common.ports.store import UnknownObject
from gardenbus.relay.ports.outbox import Restored
from tests.support.builders import a_requesting_shoot, a_seed, a_shoot, merged, resolved_as
from tests.support.shared_files import SHARED
from tests.support.stores import StoreUnderTest, a_binding

SEED, OTHER = "aws-eu1", "aws-eu2"


def with_resources(name: str = SEED, shoots: str | None = "250", **resources: str) -> Document:
    """A seed that states resources."""
    return merged(a_seed(name, shoots=shoots), {"status": {"capacity": resources, "allocatable": resources}})


async def requested(kit: StoreUnderTest) -> dict[str, dict[str, int]]:
    """What the shoots of each seed request, where they request anything."""
    return {seed: dict(sums) for seed, sums in (await kit.store.usage()).requested.items() if sums}


async def placed(kit: StoreUnderTest, name: str, seed: str = SEED, **requests: int) -> ObjectKey:
    shoot = await kit.created(a_requesting_shoot(name, requests))
    assert await kit.bound(shoot, seed) == "bound"
    return shoot.key


async def test_what_a_shoot_requests_is_reserved_with_its_bind(kit: StoreUnderTest) -> None:
    await kit.created(with_resources(cpu="4", memory="16Gi"))
    await placed(kit, "one", cpu=1500, memory=2**30)
    await placed(kit, "two", cpu=500)
    assert await requested(kit) == {SEED: {"cpu": 2000, "memory": 2**30}}


@pytest.mark.parametrize(("cpu", "outcome"), [(4000, "bound"), (4001, "full")])
async def test_a_seed_takes_what_it_has_and_not_a_thousandth_more(kit: StoreUnderTest, cpu: int, outcome: str) -> None:
    await kit.created(with_resources(cpu="4"))
    shoot = await kit.created(a_requesting_shoot("one", {"cpu": cpu}))
    assert await kit.bound(shoot, SEED) == outcome


async def test_what_a_seed_does_not_state_cannot_be_had_there(kit: StoreUnderTest) -> None:
    await kit.created(with_resources(cpu="4"))
    shoot = await kit.created(a_requesting_shoot("one", {"cpu": 1, "example.com/lb": 1}))
    assert await kit.bound(shoot, SEED) == "full"
    assert await requested(kit) == {}


async def test_a_seed_without_a_limit_of_shoots_has_one_of_resources(kit: StoreUnderTest) -> None:
    await kit.created(with_resources(shoots=None, cpu="1"))
    await placed(kit, "one", cpu=1000)
    shoot = await kit.created(a_requesting_shoot("two", {"cpu": 1}))
    assert await kit.bound(shoot, SEED) == "full"


async def test_several_shoots_of_one_call_count_for_each_other(kit: StoreUnderTest) -> None:
    await kit.created(with_resources(cpu="2"))
    shoots = [await kit.created(a_requesting_shoot(f"s{number}", {"cpu": 700})) for number in range(4)]
    reply = await kit.store.bind([a_binding(each, SEED) for each in shoots])
    assert reply.outcomes == ["bound", "bound", "full", "full"]
    assert reply.usage.requested == {SEED: {"cpu": 1400}}


async def test_a_shoot_that_leaves_gives_back_what_it_requested_and_unblocks(kit: StoreUnderTest) -> None:
    await kit.created(with_resources(cpu="2"))
    key = await placed(kit, "one", cpu=700)
    before = await kit.store.usage()
    bound = await kit.now(key)
    await kit.store.delete(await kit.changed(bound, merged(bound.document(), {"metadata": {"finalizers": []}})))
    usage = await kit.store.usage(before.version)
    assert usage.requested == {SEED: {}}
    assert usage.unblock_indexes.usage == before.unblock_indexes.usage + 1


async def test_what_the_shoots_of_one_seed_request_is_read_alone(kit: StoreUnderTest) -> None:
    await kit.created(with_resources(cpu="2"))
    assert await kit.store.requested_on(SEED) == {}
    await placed(kit, "one", cpu=700)
    await placed(kit, "two", cpu=500)
    assert await kit.store.requested_on(SEED) == {"cpu": 1200} == (await kit.store.usage()).requested[SEED]
    assert await kit.store.requested_on("another") == {}


async def test_usage_that_has_not_changed_is_not_read_again(kit: StoreUnderTest) -> None:
    await kit.created(with_resources(cpu="2"))
    await placed(kit, "one", cpu=700)
    usage = await kit.store.usage()
    plain = await kit.created(a_shoot("plain"))
    assert await kit.bound(plain, SEED) == "bound"
    usage = await kit.store.usage(usage.version)
    assert (usage.seeds, usage.requested) == ({SEED: 2}, {})


async def test_a_shoot_that_moves_counts_on_both_seeds_until_it_has_arrived(kit: StoreUnderTest) -> None:
    await kit.created(with_resources(SEED, cpu="4"))
    await kit.created(with_resources(OTHER, cpu="1"))
    key = await placed(kit, "one", cpu=700)
    bound = await kit.now(key)
    claimed = await kit.changed(bound, merged(bound.document(), {"status": {"seedName": SEED}}))
    moving = await kit.changed(claimed, merged(claimed.document(), {"spec": {"seedName": OTHER}}))
    assert await requested(kit) == {SEED: {"cpu": 700}, OTHER: {"cpu": 700}}
    await kit.changed(moving, merged(moving.document(), {"status": {"seedName": OTHER}}))
    assert await requested(kit) == {OTHER: {"cpu": 700}}


async def test_a_move_to_a_seed_that_has_too_little_is_rejected(kit: StoreUnderTest) -> None:
    await kit.created(with_resources(SEED, cpu="4"))
    await kit.created(with_resources(OTHER, cpu="1"))
    bound = await kit.now(await placed(kit, "one", cpu=1001))
    moved = merged(bound.document(), {"spec": {"seedName": OTHER}})
    with pytest.raises(Forbidden, match="less left of a resource"):
        await kit.store.update(bound, moved)
    with pytest.raises(Forbidden, match="less left of a resource"):
        await kit.store.dry_run(bound.key, bound, moved)
    assert await requested(kit) == {SEED: {"cpu": 1001}}


async def test_a_manifest_that_names_its_seed_is_checked_as_a_bind_is(kit: StoreUnderTest) -> None:
    await kit.created(with_resources(cpu="1"))
    with pytest.raises(Forbidden, match="less left of a resource"):
        await kit.store.create(a_requesting_shoot("big", {"cpu": 1001}, spec={"seedName": SEED}))
    await kit.created(a_requesting_shoot("fits", {"cpu": 1000}, spec={"seedName": SEED}))
    assert await requested(kit) == {SEED: {"cpu": 1000}}


async def test_a_placed_shoot_requests_more_only_where_its_seed_has_it(kit: StoreUnderTest) -> None:
    await kit.created(with_resources(cpu="2"))
    await placed(kit, "other", cpu=1000)
    bound = await kit.now(await placed(kit, "one", cpu=500))
    with pytest.raises(Forbidden, match="less left of a resource"):
        await kit.store.update(bound, merged(bound.document(), {"metadata": resolved_as({"requests": {"cpu": 1001}})}))
    more = {"requests": {"cpu": 500, "example.com/lb": 1}}
    with pytest.raises(Forbidden, match="less left of a resource"):
        await kit.store.update(bound, merged(bound.document(), {"metadata": resolved_as(more)}))
    more = {"metadata": resolved_as({"requests": {"cpu": 1000}})}
    grown = await kit.changed(bound, merged(bound.document(), more))
    assert grown.generation == bound.generation, "its gardenlet has nothing to do"
    assert await requested(kit) == {SEED: {"cpu": 2000}}


async def test_a_placed_shoot_may_always_request_less_and_unblocks_others(kit: StoreUnderTest) -> None:
    seed = await kit.created(with_resources(cpu="2"))
    bound = await kit.now(await placed(kit, "one", cpu=2000))
    await kit.changed(seed, merged(seed.document(), {"status": {"allocatable": {"cpu": "1"}}}))
    before = (await kit.store.usage()).unblock_indexes
    await kit.changed(bound, merged(bound.document(), {"metadata": resolved_as({"requests": {"cpu": 1500}})}))
    assert await requested(kit) == {SEED: {"cpu": 1500}}
    assert (await kit.store.usage()).unblock_indexes.usage == before.usage + 1


async def test_lowering_what_is_allocatable_evicts_nobody_and_admits_nobody(kit: StoreUnderTest) -> None:
    seed = await kit.created(with_resources(cpu="2"))
    await placed(kit, "one", cpu=1500)
    await kit.changed(seed, merged(seed.document(), {"status": {"allocatable": {"cpu": "1"}}}))
    shoot = await kit.created(a_requesting_shoot("two", {"cpu": 1}))
    assert await kit.bound(shoot, SEED) == "full"
    assert await requested(kit) == {SEED: {"cpu": 1500}}


async def test_more_of_a_resource_is_a_cluster_event_and_less_is_none(kit: StoreUnderTest) -> None:
    seed = await kit.created(with_resources(cpu="2"))
    before = (await kit.store.usage()).unblock_indexes.objects
    more = await kit.changed(seed, merged(seed.document(), {"status": {"allocatable": {"cpu": "3"}}}))
    assert (await kit.store.usage()).unblock_indexes.objects == before + 1
    await kit.changed(more, merged(more.document(), {"status": {"allocatable": {"cpu": "2"}}}))
    assert (await kit.store.usage()).unblock_indexes.objects == before + 1


async def test_other_requests_of_a_pending_shoot_outdate_decisions_and_have_it_decided_anew(
    kit: StoreUnderTest,
) -> None:
    await kit.created(with_resources(cpu="2"))
    shoot = await kit.created(a_requesting_shoot("one", {"cpu": 3000}))
    await kit.marked_unschedulable(shoot)
    waiting = await kit.now(shoot.key)
    await kit.work()
    less = {"metadata": resolved_as({"requests": {"cpu": 2000}})}
    changed = await kit.changed(waiting, merged(waiting.document(), less))
    assert changed.generation == shoot.generation + 1
    assert await kit.work() == ["scheduling.default-scheduler.garden-dev.one"]
    assert await kit.store.unschedulable_classes("default-scheduler") == []
    assert await kit.bound(shoot, SEED) == "changed"
    assert await kit.bound(changed, SEED) == "bound"
    assert await requested(kit) == {SEED: {"cpu": 2000}}


async def test_a_shoot_that_is_there_already_is_not_counted_twice(kit: StoreUnderTest) -> None:
    await kit.created(with_resources(cpu="1"))
    shoot = await kit.created(a_requesting_shoot("one", {"cpu": 1000}, status={"seedName": SEED}))
    assert await requested(kit) == {SEED: {"cpu": 1000}}
    assert await kit.bound(shoot, SEED) == "bound"
    assert await requested(kit) == {SEED: {"cpu": 1000}}


async def test_an_unknown_shoot_takes_what_it_requests_until_it_is_adopted_or_forgotten(kit: StoreUnderTest) -> None:
    await kit.created(with_resources(cpu="2"))
    lost = a_requesting_shoot("lost", {"cpu": 1500}, spec={"seedName": SEED}, status={"seedName": SEED})
    lost["metadata"] |= {"uid": "uid-1", "generation": 2, "creationTimestamp": "2026-01-01T00:00:00Z"}
    key = ObjectKey("shoot", "garden-dev", "lost")
    unknown = UnknownObject(key=key, uid="uid-1", seed=SEED, manifest=lost)
    await kit.store.reannounce_object(key, SEED, "uid-1", unknown, is_own=False)
    assert await requested(kit) == {SEED: {"cpu": 1500}}
    other = await kit.created(a_requesting_shoot("other", {"cpu": 501}))
    assert await kit.bound(other, SEED) == "full"
    found = await kit.store.unknown_object(key, SEED)
    assert found is not None
    await kit.store.adopt(found)
    assert await requested(kit) == {SEED: {"cpu": 1500}}
    assert await kit.bound(other, SEED) == "full"


async def test_what_the_bus_knows_better_is_counted_as_it_is_there(closed: StoreUnderTest) -> None:
    kit = closed
    await kit.open()
    await kit.created(with_resources(cpu="4"))
    shoot = await kit.now(await placed(kit, "one", cpu=500))
    await kit.close_for_writes()
    document = merged(shoot.document(), {"metadata": resolved_as({"requests": {"cpu": 800}})})
    assert await kit.outbox.restore(Restored(shoot.key, shoot.uid, shoot.version + 10, document))
    await kit.open(shoot.version + 10)
    assert await requested(kit) == {SEED: {"cpu": 800}}


def _bind_cases() -> list[dict[str, object]]:
    path = SHARED / "spec/profile-cases.json"
    return [each for each in json.loads(path.read_text())["cases"] if each["kind"] == "bind"] if path.exists() else []


@pytest.mark.parametrize("case", _bind_cases(), ids=lambda case: str(case["name"]))
async def test_a_worked_case_of_binds_has_its_outcomes(kit: StoreUnderTest, case: dict[str, Document]) -> None:
    given, expected = case["given"], case["expect"]
    stated = {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in given["allocatable"].items()}
    await kit.created(merged(a_seed(shoots=None), {"status": {"capacity": stated, "allocatable": stated}}))
    outcomes: list[str] = []
    for step in given["steps"]:
        name = step["shoot"].removeprefix("-")
        key = ObjectKey("shoot", "garden-dev", name)
        if step["requests"] is None:
            bound = await kit.now(key)
            await kit.store.delete(await kit.changed(bound, merged(bound.document(), {"metadata": {"finalizers": []}})))
            outcomes.append("left")
            continue
        shoot = await kit.store.get(key)
        shoot = shoot or await kit.created(a_requesting_shoot(name, step["requests"]))
        outcomes.append(await kit.bound(shoot, SEED))
    usage = await kit.store.usage()
    assert outcomes == expected["outcomes"]
    assert {"shoots": usage.seeds[SEED], **usage.requested[SEED]} == expected["used"]
