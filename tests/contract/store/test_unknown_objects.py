"""What runs on a seed, and the store neither has nor remembers: kept, adopted, forgotten."""

from collections import Counter

import msgspec
import pytest

from gardenbus.common.api.document import UNKNOWN_LAST_APPLIED, StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import AlreadyExists, Forbidden, NotFound
from gardenbus.common.ports.store import Creation, UnknownObject, WritePrecondition
from tests.support.builders import NOW, a_managed_seed, a_seed, a_shoot, merged
from tests.support.stores import StoreUnderTest

APOLLO = ObjectKey("shoot", "garden-dev", "apollo")
UID = "00000000-0000-4000-8000-000000000007"
HELD = merged(
    a_shoot(spec={"seedName": "aws-eu1"}, status={"seedName": "aws-eu1", "observedGeneration": 3}),
    {"metadata": {"uid": UID, "generation": 3, "creationTimestamp": NOW}},
)
UNKNOWN = UnknownObject(key=APOLLO, uid=UID, seed="aws-eu1", manifest=HELD, is_adoptable=True)
NAMED = msgspec.structs.replace(UNKNOWN, manifest={})


async def query(kit: StoreUnderTest) -> bool:
    return await kit.store.reannounce_object(APOLLO, "aws-eu1", UID, UNKNOWN)


async def test_what_nobody_remembers_is_kept_until_it_is_stored(kit: StoreUnderTest) -> None:
    await kit.created(a_seed())
    assert not await query(kit)
    assert not await query(kit)
    assert await kit.store.unknown_objects() == [NAMED]
    assert await kit.store.unknown_object(APOLLO, "aws-eu1") == UNKNOWN
    assert await kit.store.unknown_object(APOLLO, "aws-eu2") is None
    with pytest.raises(Forbidden, match="runs on seed aws-eu1"):
        await kit.store.create(a_shoot())
    (rejected,) = await kit.store.create_many([Creation(a_shoot())])
    assert isinstance(rejected, Forbidden)
    await kit.store.adopt(UNKNOWN)
    assert await kit.store.unknown_objects() == []
    assert await kit.store.unknown_object(APOLLO, "aws-eu1") is None


async def test_a_seed_with_an_unknown_shoot_is_not_deleted_while_it_must_be_empty(kit: StoreUnderTest) -> None:
    seed = await kit.created(a_seed())
    await query(kit)
    empty = WritePrecondition("usage", "aws-eu1", "not empty")
    with pytest.raises(Forbidden, match=r"not empty \(1, for example unknown garden-dev/apollo\)"):
        await kit.store.delete(seed, preconditions=[empty])
    await kit.store.forget(APOLLO, "aws-eu1", UID)
    assert await kit.store.delete(seed, preconditions=[empty]) is None


async def test_what_runs_where_the_store_never_had_it_is_kept_there_until_it_is_forgotten(kit: StoreUnderTest) -> None:
    for seed in ("aws-eu1", "aws-eu2"):
        await kit.created(a_seed(seed))
    stored = await kit.created(a_shoot(spec={"seedName": "aws-eu2"}))
    running = msgspec.structs.replace(UNKNOWN, uid=stored.uid)
    await kit.fresh_entries()
    assert not await kit.store.reannounce_object(APOLLO, "aws-eu1", stored.uid, running)
    assert await kit.changes() == []
    assert [each.seed for each in await kit.store.unknown_objects()] == ["aws-eu1"]
    with pytest.raises(AlreadyExists):
        await kit.store.forget(APOLLO, "aws-eu1")
    with pytest.raises(AlreadyExists):
        await kit.store.forget(APOLLO, "aws-eu2", stored.uid)
    await kit.store.forget(APOLLO, "aws-eu1", stored.uid)
    assert [(entry.verb, entry.left) for entry in await kit.changes()] == [("modified", ("aws-eu1",))]
    assert await kit.store.unknown_objects() == []
    assert await kit.store.reannounce_object(APOLLO, "aws-eu1", stored.uid, running)


async def test_a_seed_that_a_shoot_has_left_is_told_so_again(kit: StoreUnderTest) -> None:
    for seed in ("aws-eu1", "aws-eu2"):
        await kit.created(a_seed(seed))
    shoot = await kit.created(a_shoot(spec={"seedName": "aws-eu1"}))
    moved = merged(shoot.document(), {"spec": {"seedName": "aws-eu2"}})
    await kit.store.update(shoot, moved)
    await kit.fresh_entries()
    running = msgspec.structs.replace(UNKNOWN, uid=shoot.uid)
    assert await kit.store.reannounce_object(APOLLO, "aws-eu1", shoot.uid, running)
    assert [(entry.verb, entry.left) for entry in await kit.changes()] == [("modified", ("aws-eu1",))]
    another = msgspec.structs.replace(UNKNOWN, uid="another")
    assert not await kit.store.reannounce_object(APOLLO, "aws-eu1", "another", another)
    assert await kit.store.reannounce_object(APOLLO, "aws-eu1", "another", msgspec.structs.replace(another, runs=False))


async def test_what_was_unknown_until_its_shoot_was_bound_there_is_not_unknown_again_without_it(
    kit: StoreUnderTest,
) -> None:
    await kit.created(a_seed())
    shoot = await kit.created(a_shoot())
    running = msgspec.structs.replace(UNKNOWN, uid=shoot.uid)
    assert not await kit.store.reannounce_object(APOLLO, "aws-eu1", shoot.uid, running)
    assert await kit.bound(shoot, "aws-eu1") == "bound"
    assert await kit.store.unknown_objects() == []
    await kit.store.delete(await kit.now(APOLLO))
    deleting = await kit.now(APOLLO)
    await kit.store.update(deleting, merged(deleting.document(), {"metadata": {"finalizers": []}}))
    assert await kit.store.unknown_objects() == []
    await kit.created(a_shoot())


async def test_what_was_unknown_elsewhere_is_decided_by_the_removal_of_its_shoot(kit: StoreUnderTest) -> None:
    for seed in ("aws-eu1", "aws-eu2"):
        await kit.created(a_seed(seed))
    stored = await kit.created(a_shoot(spec={"seedName": "aws-eu2"}))
    running = msgspec.structs.replace(UNKNOWN, uid=stored.uid)
    assert not await kit.store.reannounce_object(APOLLO, "aws-eu1", stored.uid, running)
    await kit.store.delete(stored)
    deleting = await kit.now(APOLLO)
    await kit.store.update(deleting, merged(deleting.document(), {"metadata": {"finalizers": []}}))
    assert [each.seed for each in await kit.store.unknown_objects()] == ["aws-eu1"]
    assert await kit.store.reannounce_object(APOLLO, "aws-eu1", stored.uid, running), "its removal is remembered"
    assert await kit.store.unknown_objects() == []


async def removed(kit: StoreUnderTest, shoot: StoredObject) -> None:
    await kit.store.delete(shoot)
    deleting = await kit.now(shoot.key)
    await kit.store.update(deleting, merged(deleting.document(), {"metadata": {"finalizers": []}}))


async def requested(kit: StoreUnderTest, shoot: StoredObject) -> list[tuple[str, str, tuple[str, ...]]] | None:
    """What is announced when seed aws-eu1 asks for a shoot that it runs; None if it is unknown."""
    await kit.fresh_entries()
    running = msgspec.structs.replace(UNKNOWN, uid=shoot.uid)
    if not await kit.store.reannounce_object(APOLLO, "aws-eu1", shoot.uid, running):
        return None
    return [(entry.verb, entry.uid, entry.left) for entry in await kit.changes()]


async def test_the_removals_before_the_last_of_a_name_are_remembered_too(kit: StoreUnderTest) -> None:
    for seed in ("aws-eu1", "aws-eu2"):
        await kit.created(a_seed(seed))
    first = await kit.created(a_shoot(spec={"seedName": "aws-eu1"}))
    await removed(kit, first)
    second = await kit.created(a_shoot(spec={"seedName": "aws-eu1"}))
    await removed(kit, second)
    for each in (first, second):
        assert await requested(kit, each) == [("deleted", each.uid, ("aws-eu1",))]
    third = await kit.created(a_shoot(spec={"seedName": "aws-eu2"}))
    for each in (first, second):
        assert await requested(kit, each) == [("modified", each.uid, ("aws-eu1",))]
    assert await requested(kit, third) is None, "it is on another seed, and has not left this one"
    await kit.store.forget(APOLLO, "aws-eu1", third.uid)
    assert await requested(kit, third) == [("modified", third.uid, ("aws-eu1",))]


async def test_of_a_name_so_many_removals_are_remembered(kit: StoreUnderTest) -> None:
    await kit.created(a_seed())
    shoots: list[StoredObject] = []
    for _ in range(10):
        shoots.append(await kit.created(a_shoot(spec={"seedName": "aws-eu1"})))
        await removed(kit, shoots[-1])
    assert await requested(kit, shoots[0]) is None
    assert [each.uid for each in await kit.store.unknown_objects()] == [shoots[0].uid]
    for each in shoots[1:]:
        assert await requested(kit, each) == [("deleted", each.uid, ("aws-eu1",))]
    await kit.store.forget(APOLLO, "aws-eu1", shoots[0].uid)
    assert await requested(kit, shoots[0]) == [("deleted", shoots[0].uid, ("aws-eu1",))]
    assert await requested(kit, shoots[9]) == [("deleted", shoots[9].uid, ("aws-eu1",))]


async def test_a_gardenlet_is_kept_where_the_store_never_had_its_managed_seed(kit: StoreUnderTest) -> None:
    for seed in ("aws-eu1", "aws-eu2"):
        await kit.created(a_seed(seed))
    host = await kit.created(a_shoot("host", "garden"))
    managed = await kit.created(a_managed_seed("host"))
    running = UnknownObject(key=managed.key, uid=managed.uid, seed="aws-eu1")
    assert not await kit.store.reannounce_object(managed.key, "aws-eu1", managed.uid, running)
    assert await kit.store.unknown_objects() == [msgspec.structs.replace(running, manifest={})]
    await kit.store.update(host, merged(host.document(), {"spec": {"seedName": "aws-eu1"}}))
    assert await kit.store.unknown_objects() == []
    assert await kit.store.unknown_object(managed.key, "aws-eu1") is None
    assert await kit.store.reannounce_object(managed.key, "aws-eu1", managed.uid, running)


async def test_an_adopted_object_is_what_it_was(kit: StoreUnderTest) -> None:
    await kit.created(a_seed())
    await query(kit)
    adopted = await kit.store.adopt(UNKNOWN)
    assert (adopted.uid, adopted.generation, adopted.created_at) == (UID, 3, NOW)
    assert adopted == await kit.now(APOLLO)
    assert adopted.last_applied == UNKNOWN_LAST_APPLIED
    assert adopted.document()["status"] == {"seedName": "aws-eu1", "observedGeneration": 3}
    assert await kit.store.shoots_on("aws-eu1") == [APOLLO]
    assert await kit.store.exists_uid(UID)
    assert await kit.store.unknown_objects() == []
    assert ("added", True) in [(entry.verb, entry.with_binding) for entry in await kit.changes()]
    with pytest.raises(AlreadyExists):
        await kit.store.adopt(UNKNOWN)
    with pytest.raises(AlreadyExists):
        await kit.store.forget(APOLLO, "aws-eu1", UID)


async def test_a_forgotten_object_is_announced_as_removed_as_often_as_asked(kit: StoreUnderTest) -> None:
    await kit.created(a_seed())
    with pytest.raises(NotFound):
        await kit.store.forget(APOLLO, "aws-eu1")
    await query(kit)
    await kit.fresh_entries()
    for _ in range(2):
        await kit.store.forget(APOLLO, "aws-eu1", UID)
    await kit.store.forget(APOLLO, "aws-eu1")
    assert await query(kit)
    changes = await kit.changes()
    assert [(entry.verb, entry.uid, entry.left) for entry in changes] == [("deleted", UID, ("aws-eu1",))] * 4
    assert len({entry.version for entry in changes}) == 1
    assert await kit.store.unknown_objects() == []
    assert (await kit.created(a_shoot())).version > changes[0].version


async def test_the_agent_of_one_seed_leaves_places_for_those_of_others(kit: StoreUnderTest) -> None:
    async def report(seed: str, name: str) -> None:
        key = ObjectKey("shoot", "garden-dev", name)
        unknown = UnknownObject(key=key, uid=f"uid-{seed}-{name}", seed=seed, manifest=HELD, is_adoptable=True)
        assert not await kit.store.reannounce_object(key, seed, unknown.uid, unknown)

    for number in range(1010):
        await report("greedy", f"s{number}")
    for number in range(55):
        await report("aws-eu1", f"s{number}")
    listed = await kit.store.unknown_objects()
    assert Counter(each.seed for each in listed) == {"greedy": 1000, "aws-eu1": 50}
    assert not any(each.manifest for each in listed)
    assert all(each.is_adoptable for each in listed)
    await report("greedy", "s0")
    found = await kit.store.unknown_object(ObjectKey("shoot", "garden-dev", "s0"), "aws-eu1")
    assert found is not None
    assert found.manifest == HELD
