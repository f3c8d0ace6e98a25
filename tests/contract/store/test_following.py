"""What follows a shoot (its ManagedSeed, its ShootState) is shown to the seeds of the shoot, wherever it goes."""

import pytest

from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Forbidden
from gardenbus.relay.ports.outbox import ObjectEntry, Restored
from tests.support.builders import NOW, a_managed_seed, a_seed, a_shoot, a_shoot_state, merged
from tests.support.stores import StoreUnderTest, stored

APOLLO = ObjectKey("shoot", "garden", "apollo")
STATE = ObjectKey("shootstate", "garden", "apollo")
MANAGED = ObjectKey("managedseed", "garden", "apollo")


async def shown(kit: StoreUnderTest, key: ObjectKey) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """Of each new entry of an object: its verb, who sees it by now, and whom it is withdrawn from."""
    page = await kit.outbox.head(100_000)
    if page.entries:
        await kit.outbox.trim(page.entries[-1].entry, {})
    mine = [entry for entry in page.entries if isinstance(entry, ObjectEntry) and entry.key == key]
    return [(entry.verb, page.audiences.get(key, ()), entry.left) for entry in mine]


async def a_landscape(kit: StoreUnderTest, **shoot: Document) -> StoredObject:
    for seed in ("old", "new"):
        await kit.created(a_seed(seed))
    return await kit.created(a_shoot("apollo", "garden", **shoot))


def at(shoot: StoredObject, **changes: Document) -> Document:
    return merged(shoot.document(), changes)


async def test_it_is_shown_where_the_shoot_is_when_it_is_written(kit: StoreUnderTest) -> None:
    await a_landscape(kit, spec={"seedName": "old"})
    state, managed = await kit.created(a_shoot_state("apollo", "garden")), await kit.created(a_managed_seed("apollo"))
    assert await shown(kit, STATE) == [("added", ("old",), ())]
    await kit.changed(state, at(state, spec={"gardener": []}))
    assert await shown(kit, STATE) == [("modified", ("old",), ())]
    await kit.changed(managed, at(managed, status={"observedGeneration": 1}))
    assert await shown(kit, MANAGED) == [("modified", ("old",), ())]


async def test_nobody_is_shown_what_follows_a_shoot_without_a_seed(kit: StoreUnderTest) -> None:
    await kit.created(a_shoot_state("apollo", "garden"))
    assert await shown(kit, STATE) == [("added", (), ())]
    await a_landscape(kit)
    await kit.created(a_managed_seed("apollo"))
    assert await shown(kit, MANAGED) == [("added", (), ())]


async def test_it_is_shown_when_the_shoot_is_bound(kit: StoreUnderTest) -> None:
    state = await kit.created(a_shoot_state("apollo", "garden"))
    shoot = await a_landscape(kit)
    managed = await kit.created(a_managed_seed("apollo"))
    await kit.fresh_entries()
    assert await kit.bound(shoot, "old") == "bound"
    page = await kit.outbox.head(100)
    assert page.audiences == {MANAGED: ("old",), STATE: ("old",)}
    assert await shown(kit, STATE) == [("modified", ("old",), ())]
    assert (await kit.now(STATE)).version > state.version, "whoever knew it hears of it in order"
    assert (await kit.now(MANAGED)).version > managed.version
    assert (await kit.now(MANAGED)).parts == managed.parts


async def test_it_is_shown_to_both_seeds_while_the_shoot_moves_and_withdrawn_from_the_old(kit: StoreUnderTest) -> None:
    shoot = await a_landscape(kit, spec={"seedName": "old"}, status={"seedName": "old"})
    await kit.created(a_shoot_state("apollo", "garden"))
    await kit.fresh_entries()
    shoot = await kit.changed(shoot, at(shoot, spec={"seedName": "new"}))
    assert await shown(kit, STATE) == [("modified", ("new", "old"), ())]
    shoot = await kit.changed(shoot, at(shoot, status={"phase": "Migrating"}))
    assert not await shown(kit, STATE)
    await kit.changed(shoot, at(shoot, status={"seedName": "new"}))
    assert await shown(kit, STATE) == [("modified", ("new",), ("old",))]


async def test_the_audience_is_that_of_the_moment_of_reading(kit: StoreUnderTest) -> None:
    shoot = await a_landscape(kit)
    await kit.created(a_managed_seed("apollo"))
    await kit.bound(shoot, "old")
    shoot = await kit.now(APOLLO)
    await kit.changed(shoot, at(shoot, spec={"seedName": None}))
    assert [entry[1] for entry in await shown(kit, MANAGED)] == [(), (), ()]


async def test_a_shoot_that_loses_its_seed_or_goes_takes_it_along(kit: StoreUnderTest) -> None:
    shoot = await a_landscape(kit, spec={"seedName": "old"})
    await kit.created(a_shoot_state("apollo", "garden"))
    await kit.fresh_entries()
    shoot = await kit.changed(shoot, at(shoot, spec={"seedName": None}))
    assert await shown(kit, STATE) == [("modified", (), ("old",))]
    shoot = await kit.changed(shoot, at(shoot, spec={"seedName": "new"}, metadata={"finalizers": []}))
    shoot = await kit.changed(shoot, at(shoot, metadata={"finalizers": []}))
    await kit.fresh_entries()
    assert await kit.store.delete(shoot) is None
    assert await shown(kit, STATE) == [("modified", (), ("new",))]
    await kit.created(a_shoot("apollo", "garden", spec={"seedName": "old"}))
    assert await shown(kit, STATE) == [("modified", ("old",), ())]


async def test_a_removal_is_told_to_all_who_were_shown_it(kit: StoreUnderTest) -> None:
    shoot = await a_landscape(kit, spec={"seedName": "old"}, status={"seedName": "old"})
    await kit.created(a_shoot_state("apollo", "garden"))
    shoot = await kit.changed(shoot, at(shoot, spec={"seedName": "new"}))
    await kit.changed(shoot, at(shoot, status={"seedName": "new"}))
    await kit.fresh_entries()
    await kit.store.delete(await kit.now(STATE))
    assert await shown(kit, STATE) == [("deleted", (), ("new", "old"))]


async def test_a_managed_seed_of_another_shoot_goes_to_other_seeds(kit: StoreUnderTest) -> None:
    await a_landscape(kit, spec={"seedName": "old"})
    await kit.created(a_shoot("artemis", "garden", spec={"seedName": "new"}))
    managed = await kit.created(a_managed_seed("apollo"))
    await kit.fresh_entries()
    await kit.changed(managed, at(managed, spec={"shoot": {"name": "artemis"}}))
    assert await shown(kit, MANAGED) == [("modified", ("new",), ("old",))]


async def test_announcing_everything_again_withdraws_it_again(kit: StoreUnderTest) -> None:
    shoot = await a_landscape(kit, spec={"seedName": "old"}, status={"seedName": "old"})
    await kit.created(a_shoot_state("apollo", "garden"))
    shoot = await kit.changed(shoot, at(shoot, spec={"seedName": "new"}))
    await kit.changed(shoot, at(shoot, status={"seedName": "new"}))
    await kit.fresh_entries()
    await kit.outbox.reannounce(0)
    assert await shown(kit, STATE) == [("modified", ("new",), ("old",))]
    await kit.store.delete(await kit.now(STATE))
    await kit.fresh_entries()
    await kit.outbox.reannounce(0)
    assert await shown(kit, STATE) == [("deleted", (), ("new", "old"))]


async def test_a_move_that_only_the_bus_remembers_moves_it_too(kit: StoreUnderTest) -> None:
    shoot = await a_landscape(kit, spec={"seedName": "old"})
    state = await kit.created(a_shoot_state("apollo", "garden"))
    await kit.fresh_entries()
    await kit.close_for_writes()
    document = at(shoot, spec={"seedName": "new"}, metadata={"generation": 2})
    assert await kit.outbox.restore(Restored(APOLLO, shoot.uid, shoot.version + 1000, document))
    await kit.outbox.open(shoot.version + 1000, 0)
    assert await shown(kit, STATE) == [("modified", ("new",), ("old",))]
    assert (await kit.now(STATE)).version == state.version, "a closed store gives no versions out"


async def test_what_comes_back_from_the_bus_follows_again(kit: StoreUnderTest) -> None:
    shoot = await a_landscape(kit)
    await kit.close_for_writes()
    uid = "00000000-0000-4000-8000-000000000000"
    document = a_managed_seed("apollo", metadata={"uid": uid, "creationTimestamp": NOW, "generation": 1})
    assert await kit.outbox.restore(Restored(MANAGED, uid, shoot.version + 1000, document))
    await kit.outbox.open(shoot.version + 1000, 0)
    await kit.fresh_entries()
    assert await kit.bound(shoot, "old") == "bound"
    assert await shown(kit, MANAGED) == [("modified", ("old",), ())]


async def test_beginning_and_ending_to_move_is_work_for_lifecycle(kit: StoreUnderTest) -> None:
    shoot = await a_landscape(kit, spec={"seedName": "old"})
    assert await kit.work() == []
    shoot = await kit.changed(shoot, at(shoot, status={"seedName": "old"}))
    assert await kit.work() == []
    shoot = await kit.changed(shoot, at(shoot, spec={"seedName": "new"}))
    assert await kit.work() == ["migration.garden.apollo"]
    shoot = await kit.changed(shoot, at(shoot, status={"phase": "Migrating"}))
    assert await kit.work() == []
    await kit.outbox.requeue_pending()
    assert await kit.work() == ["migration.garden.apollo"]
    shoot = await kit.changed(shoot, at(shoot, status={"seedName": "new"}))
    assert await kit.work() == ["migration.garden.apollo"]
    await kit.outbox.requeue_pending()
    assert await kit.work() == []


async def test_a_shoot_that_left_a_seed_without_saying_so_moves_when_it_is_bound(kit: StoreUnderTest) -> None:
    shoot = await a_landscape(kit, spec={"seedName": "old"}, status={"seedName": "old"})
    shoot = await kit.changed(shoot, at(shoot, spec={"seedName": None}))
    await kit.fresh_entries()
    assert await kit.bound(shoot, "new") == "bound"
    assert await kit.work() == ["migration.garden.apollo"]
    moving = await kit.now(APOLLO)
    marked = stored(await kit.store.delete(moving))
    await kit.changed(marked, at(marked, metadata={"finalizers": []}))
    await kit.fresh_entries()
    await kit.outbox.requeue_pending()
    assert await kit.work() == []


async def test_a_target_has_one_autoscaler(kit: StoreUnderTest) -> None:
    def autoscaler(name: str, target: str, namespace: str = "garden") -> Document:
        return {
            "apiVersion": "seedmanagement.gardener.cloud/v1alpha1",
            "kind": "SeedAutoscaler",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"scaleTargetRef": {"kind": "ManagedSeedSet", "name": target}, "maxReplicas": 3},
        }

    first = await kit.created(autoscaler("first", "aws"))
    with pytest.raises(Forbidden, match="belongs to seedautoscaler garden/first"):
        await kit.store.create(autoscaler("second", "aws"))
    await kit.created(autoscaler("second", "gcp"))
    await kit.created(autoscaler("third", "aws", "elsewhere"))
    await kit.store.delete(first)
    await kit.created(autoscaler("fourth", "aws"))
