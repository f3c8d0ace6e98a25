"""Shoots that are seeds: none is ever placed on itself, however indirectly."""

import pytest

from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Forbidden
from tests.support.builders import a_managed_seed, a_seed, a_shoot, merged
from tests.support.stores import StoreUnderTest, a_binding


async def a_host(kit: StoreUnderTest, name: str, on: str | None = None) -> StoredObject:
    """The shoot, its ManagedSeed and the Seed, all of one name."""
    placed = {"seedName": on} if on else {}
    shoot = await kit.created(a_shoot(name, "garden", spec=placed))
    await kit.created(a_managed_seed(name))
    await kit.created(a_seed(name))
    return shoot


def sent_to(shoot: StoredObject, seed: str | None) -> Document:
    return merged(shoot.document(), {"spec": {"seedName": seed}})


async def test_a_shoot_is_not_bound_to_the_seed_that_it_is(kit: StoreUnderTest) -> None:
    host = await a_host(kit, "x")
    assert await kit.bound(host, "x") == "circular"
    with pytest.raises(Forbidden, match="hosted by this shoot"):
        await kit.store.update(host, sent_to(host, "x"))
    assert not await kit.store.shoots_on("x")


async def test_a_shoot_is_not_bound_to_a_seed_that_it_hosts_through_others(kit: StoreUnderTest) -> None:
    root = await a_host(kit, "root")
    for name, on in (("middle", "root"), ("leaf", "middle"), ("far", "leaf")):
        await a_host(kit, name, on)
    for seed in ("root", "middle", "leaf", "far"):
        assert await kit.bound(root, seed) == "circular"
    await kit.created(a_seed("host-seed"))
    assert await kit.bound(root, "host-seed") == "bound"


async def test_a_migrating_shoot_counts_where_it_is_and_where_it_goes(kit: StoreUnderTest) -> None:
    for seed in ("host-seed", "other"):
        await kit.created(a_seed(seed))
    x, y, z = await a_host(kit, "x"), await a_host(kit, "y"), await a_host(kit, "z")
    await kit.bound(y, "x")
    y = await kit.now(y.key)
    y = await kit.changed(y, merged(y.document(), {"status": {"seedName": "x"}}))
    y = await kit.changed(y, sent_to(y, "z"))
    assert await kit.bound(x, "y") == "circular", "it is on x still"
    assert await kit.bound(z, "y") == "circular", "it goes to z"
    y = await kit.changed(y, merged(y.document(), {"status": {"seedName": "z"}}))
    assert await kit.bound(x, "y") == "bound"
    assert await kit.bound(z, "y") == "circular"


async def test_each_item_of_a_call_sees_the_ones_before_it(kit: StoreUnderTest) -> None:
    x, y = await a_host(kit, "x"), await a_host(kit, "y")
    reply = await kit.store.bind([a_binding(x, "y"), a_binding(y, "x")])
    assert reply.outcomes == ["bound", "circular"]


async def test_a_shoot_may_not_come_on_a_seed_of_its_own(kit: StoreUnderTest) -> None:
    await kit.created(a_managed_seed("x"))
    await kit.created(a_seed("x"))
    with pytest.raises(Forbidden, match="hosted by this shoot"):
        await kit.store.create(a_shoot("x", "garden", spec={"seedName": "x"}))
    with pytest.raises(Forbidden, match="hosted by this shoot"):
        await kit.store.create(a_shoot("x", "garden", status={"seedName": "x"}))
    assert await kit.bound(await kit.created(a_shoot("x", "garden-dev")), "x") == "bound", "another shoot of that name"


async def test_a_managed_seed_may_not_make_a_seed_of_what_stands_on_it(kit: StoreUnderTest) -> None:
    await kit.created(a_seed("x"))
    await kit.created(a_shoot("inner", "garden", spec={"seedName": "x"}))
    with pytest.raises(Forbidden, match="no seed can carry itself"):
        await kit.store.create(a_managed_seed("x", "inner"))
    await kit.created(a_managed_seed("inner"))
    await kit.created(a_seed("inner"))
    await kit.created(a_shoot("deep", "garden", spec={"seedName": "inner"}))
    with pytest.raises(Forbidden, match="no seed can carry itself"):
        await kit.store.create(a_managed_seed("x", "deep"))
    managed = await kit.created(a_managed_seed("x", "outer"))
    with pytest.raises(Forbidden, match="no seed can carry itself"):
        await kit.store.update(managed, merged(managed.document(), {"spec": {"shoot": {"name": "deep"}}}))
    assert await kit.store.get(ObjectKey("shoot", "garden", "outer")) is None


async def test_a_circle_that_the_bus_brought_back_ends_the_search(kit: StoreUnderTest) -> None:
    """No write makes one; a search that never ended would stop Redis for everybody."""
    await kit.created(a_seed("x"))
    await kit.created(a_seed("y"))
    await kit.created(a_shoot("x", "garden", spec={"seedName": "y"}))
    await kit.created(a_shoot("y", "garden", spec={"seedName": "x"}))
    await kit.created(a_managed_seed("x"))
    with pytest.raises(Forbidden, match="no seed can carry itself"):
        await kit.store.create(a_managed_seed("y"))
