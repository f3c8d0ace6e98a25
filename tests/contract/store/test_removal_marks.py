"""Marking a seed for removal: only while nothing is on it, and then nothing comes."""

import pytest

from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.garden.seed_management import REMOVAL_ANNOTATION
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Forbidden
from gardenbus.common.ports.store import WritePrecondition
from tests.support.builders import a_seed, a_shoot, merged
from tests.support.stores import StoreUnderTest, stored

SEED = "aws-eu1"
IN_USE = WritePrecondition("usage", SEED, "shoots are on the seed")


def marking(seed: StoredObject, mark: str | None = "garden/aws") -> Document:
    return merged(seed.document(), {"metadata": {"annotations": {REMOVAL_ANNOTATION: mark}}})


async def test_no_shoot_comes_to_a_marked_seed_by_any_way(kit: StoreUnderTest) -> None:
    await kit.created(a_seed("other"))
    seed = await kit.created(a_seed())
    pending, placed = await kit.created(a_shoot("pending")), await kit.created(a_shoot(spec={"seedName": "other"}))
    marked = await kit.changed(seed, marking(seed), preconditions=[IN_USE])
    assert marked.scheduling_generation > seed.scheduling_generation
    assert await kit.bound(pending, SEED) == "seed-gone"
    assert await kit.bound(pending, SEED, scheduling_generation=marked.scheduling_generation) == "seed-gone"
    with pytest.raises(Forbidden, match="marked for removal"):
        await kit.store.create(a_shoot("new", spec={"seedName": SEED}))
    with pytest.raises(Forbidden, match="marked for removal"):
        await kit.store.update(pending, merged(pending.document(), {"spec": {"seedName": SEED}}))
    with pytest.raises(Forbidden, match="marked for removal"):
        await kit.store.update(placed, merged(placed.document(), {"spec": {"seedName": SEED}}))
    with pytest.raises(Forbidden, match="marked for removal"):
        await kit.store.update(placed, merged(placed.document(), {"status": {"seedName": SEED}}))
    assert not await kit.store.shoots_on(SEED)


async def test_a_seed_with_shoots_cannot_be_marked_guarded_or_not(kit: StoreUnderTest) -> None:
    seed = await kit.created(a_seed())
    shoot = await kit.created(a_shoot(spec={"seedName": SEED}, status={"seedName": SEED}))
    with pytest.raises(Forbidden, match="shoots are on the seed"):
        await kit.store.update(seed, marking(seed), preconditions=[IN_USE])
    with pytest.raises(Forbidden, match=r"marked for removal: shoots are on it \(1, for example garden-dev/apollo\)"):
        await kit.store.update(seed, marking(seed))
    assert await kit.now(seed.key) == seed
    leaving = stored(await kit.store.delete(shoot))
    with pytest.raises(Forbidden):
        await kit.store.update(seed, marking(seed))
    await kit.changed(leaving, merged(leaving.document(), {"metadata": {"finalizers": []}}))
    assert stored(await kit.store.update(seed, marking(seed), preconditions=[IN_USE]))


async def test_a_shoot_on_its_way_to_or_from_a_seed_keeps_it_from_being_marked(kit: StoreUnderTest) -> None:
    old, new = await kit.created(a_seed("old")), await kit.created(a_seed("new"))
    shoot = await kit.created(a_shoot(spec={"seedName": "old"}, status={"seedName": "old"}))
    await kit.changed(shoot, merged(shoot.document(), {"spec": {"seedName": "new"}}))
    for seed in (old, new):
        with pytest.raises(Forbidden):
            await kit.store.update(seed, marking(seed))


async def test_taking_the_mark_away_is_a_gain_and_lets_shoots_come_again(kit: StoreUnderTest) -> None:
    seed = await kit.created(a_seed())
    marked = await kit.changed(seed, marking(seed))
    shoot = await kit.created(a_shoot())
    await kit.marked_unschedulable(shoot)
    await kit.fresh_entries()
    unblock_indexes = (await kit.store.usage()).unblock_indexes
    again = await kit.changed(marked, marking(marked, None))
    assert (await kit.store.usage()).unblock_indexes.objects == unblock_indexes.objects + 1
    assert await kit.work() == ["waking._.default-scheduler"]
    shoot = await kit.now(shoot.key)
    assert await kit.bound(shoot, SEED, scheduling_generation=marked.scheduling_generation) == "seed-changed"
    assert await kit.bound(shoot, SEED, scheduling_generation=again.scheduling_generation) == "bound"


async def test_changing_a_marked_seed_otherwise_leaves_it_closed_and_gains_nothing(kit: StoreUnderTest) -> None:
    seed = await kit.created(a_seed())
    marked = await kit.changed(seed, marking(seed))
    unblock_indexes = (await kit.store.usage()).unblock_indexes
    labelled = await kit.changed(marked, merged(marked.document(), {"metadata": {"labels": {"a": "b"}}}))
    assert (await kit.store.usage()).unblock_indexes == unblock_indexes
    assert (
        await kit.bound(await kit.created(a_shoot()), SEED, scheduling_generation=labelled.scheduling_generation)
        == "seed-gone"
    )


async def test_an_empty_mark_is_none(kit: StoreUnderTest) -> None:
    seed = await kit.created(a_seed())
    await kit.changed(seed, marking(seed, ""))
    assert await kit.bound(await kit.created(a_shoot()), SEED) == "bound"


async def test_a_seed_may_come_marked_while_nothing_is_on_it(kit: StoreUnderTest) -> None:
    await kit.created(a_seed(metadata={"annotations": {REMOVAL_ANNOTATION: "garden/aws"}}))
    assert await kit.bound(await kit.created(a_shoot()), SEED) == "seed-gone"
    assert stored(await kit.store.get(ObjectKey("seed", "", SEED)))
