"""Marking a seed for removal: only while nothing is on it, and then nothing comes."""

import pytest

from gardenbus.common.errors import Forbidden
from gardenbus.common.ports.store import Guard
from gardenbus.common.resources.document import Document, StoredObject
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.common.resources.seed_management import MARKED_FOR_REMOVAL
from tests.support.builders import a_seed, a_shoot, merged
from tests.support.stores import StoreUnderTest, stored

SEED = "aws-eu1"
IN_USE = Guard("usage", SEED, "shoots are on the seed")


def marking(seed: StoredObject, mark: str | None = "garden/aws") -> Document:
    return merged(seed.document(), {"metadata": {"annotations": {MARKED_FOR_REMOVAL: mark}}})


async def test_no_shoot_comes_to_a_marked_seed_by_any_way(kit: StoreUnderTest) -> None:
    await kit.created(a_seed("other"))
    seed = await kit.created(a_seed())
    pending, placed = await kit.created(a_shoot("pending")), await kit.created(a_shoot(spec={"seedName": "other"}))
    marked = await kit.changed(seed, marking(seed), guards=[IN_USE])
    assert marked.gate > seed.gate
    assert await kit.bound(pending, SEED) == "seed-gone"
    assert await kit.bound(pending, SEED, gate=marked.gate) == "seed-gone"
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
        await kit.store.update(seed, marking(seed), guards=[IN_USE])
    with pytest.raises(Forbidden, match=r"marked for removal: shoots are on it \(1, for example garden-dev/apollo\)"):
        await kit.store.update(seed, marking(seed))
    assert await kit.now(seed.key) == seed
    leaving = stored(await kit.store.delete(shoot))
    with pytest.raises(Forbidden):
        await kit.store.update(seed, marking(seed))
    await kit.changed(leaving, merged(leaving.document(), {"metadata": {"finalizers": []}}))
    assert stored(await kit.store.update(seed, marking(seed), guards=[IN_USE]))


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
    await kit.parked(shoot)
    await kit.fresh_news()
    gains = (await kit.store.usage()).gains
    again = await kit.changed(marked, marking(marked, None))
    assert (await kit.store.usage()).gains.objects == gains.objects + 1
    assert await kit.work() == ["waking._.default-scheduler"]
    shoot = await kit.now(shoot.key)
    assert await kit.bound(shoot, SEED, gate=marked.gate) == "seed-changed"
    assert await kit.bound(shoot, SEED, gate=again.gate) == "bound"


async def test_changing_a_marked_seed_otherwise_leaves_it_closed_and_gains_nothing(kit: StoreUnderTest) -> None:
    seed = await kit.created(a_seed())
    marked = await kit.changed(seed, marking(seed))
    gains = (await kit.store.usage()).gains
    labelled = await kit.changed(marked, merged(marked.document(), {"metadata": {"labels": {"a": "b"}}}))
    assert (await kit.store.usage()).gains == gains
    assert await kit.bound(await kit.created(a_shoot()), SEED, gate=labelled.gate) == "seed-gone"


async def test_an_empty_mark_is_none(kit: StoreUnderTest) -> None:
    seed = await kit.created(a_seed())
    await kit.changed(seed, marking(seed, ""))
    assert await kit.bound(await kit.created(a_shoot()), SEED) == "bound"


async def test_a_seed_may_come_marked_while_nothing_is_on_it(kit: StoreUnderTest) -> None:
    await kit.created(a_seed(metadata={"annotations": {MARKED_FOR_REMOVAL: "garden/aws"}}))
    assert await kit.bound(await kit.created(a_shoot()), SEED) == "seed-gone"
    assert stored(await kit.store.get(ObjectKey("seed", "", SEED)))
