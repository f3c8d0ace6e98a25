"""What runs on a seed, and the store neither has nor remembers: kept, adopted, forgotten."""

import pytest

from gardenbus.common.api.document import UNKNOWN_LAST_APPLIED
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import AlreadyExists, NotFound
from gardenbus.common.ports.store import UnknownObject
from tests.support.builders import NOW, a_seed, a_shoot, merged
from tests.support.stores import StoreUnderTest

APOLLO = ObjectKey("shoot", "garden-dev", "apollo")
UID = "00000000-0000-4000-8000-000000000007"
HELD = merged(
    a_shoot(spec={"seedName": "aws-eu1"}, status={"seedName": "aws-eu1", "observedGeneration": 3}),
    {"metadata": {"uid": UID, "generation": 3, "creationTimestamp": NOW}},
)
UNKNOWN = UnknownObject(key=APOLLO, uid=UID, seed="aws-eu1", manifest=HELD)


async def query(kit: StoreUnderTest) -> bool:
    return await kit.store.reannounce_object(APOLLO, "aws-eu1", UID, UNKNOWN)


async def test_what_nobody_remembers_is_kept_until_it_is_stored(kit: StoreUnderTest) -> None:
    await kit.created(a_seed())
    assert not await query(kit)
    assert not await query(kit)
    assert await kit.store.unknown_objects() == [UNKNOWN]
    await kit.created(a_shoot())
    assert await kit.store.unknown_objects() == []


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
