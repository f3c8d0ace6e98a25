"""What namespaces hold: counted with every write, and bounded by the budget that a write states."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gardenbus.common.api.budgets import StoredOverBudget
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.store import Creation, DemandLimits, SeedBinding, StoredAmount, WritePrecondition
from tests.support.builders import a_project, a_seed, a_shoot, merged
from tests.support.servers import Server
from tests.support.stores import StoreUnderTest, on_redis

NAMESPACE = "garden-dev"
NOISE = b"".join(hashlib.sha256(bytes([each])).hexdigest().encode() for each in range(50))
"""A text that compression makes little shorter."""
LONG = "a text that is so long that it is compressed, as most of it comes again; " * 8


def within(objects: int = 100, size: int = 2**30) -> tuple[WritePrecondition, ...]:
    limits = DemandLimits(most={"storedObjects": objects, "storedBytes": size})
    return (WritePrecondition("stored", NAMESPACE, "", limits=limits),)


def a_config_map(name: str, text: str = "") -> Document:
    metadata = {"namespace": NAMESPACE, "name": name}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": text}}


async def held(kit: StoreUnderTest, namespace: str = NAMESPACE) -> StoredAmount:
    return (await kit.store.stored_amounts()).get(namespace, StoredAmount(0, 0))


async def test_objects_count_in_their_namespace_until_they_are_removed(kit: StoreUnderTest) -> None:
    one = await kit.created(a_shoot("one"))
    first = await held(kit)
    assert first.objects == 1
    assert first.bytes > 0
    two = await kit.created(a_shoot("two"))
    await kit.created(a_project("other"))
    await kit.created(a_shoot("one", "garden-other"))
    assert await held(kit) == StoredAmount(2, 2 * first.bytes)
    assert (await held(kit, "garden-other")).objects == (await held(kit, "")).objects == 1
    for shoot in (one, two):
        assert await kit.store.delete(shoot) is None
    assert NAMESPACE not in await kit.store.stored_amounts()


async def test_bytes_follow_each_change_and_a_status_has_none(kit: StoreUnderTest) -> None:
    written = await kit.created(a_shoot("one"))
    small = (await held(kit)).bytes
    larger = merged(written.document(), {"metadata": {"annotations": {"a": "b" * 1000}}})
    written = await kit.changed(written, larger)
    assert (await held(kit)).bytes >= small + 1000
    grown = (await held(kit)).bytes
    await kit.changed(written, merged(larger, {"status": {"conditions": [{"type": "A", "message": LONG}]}}))
    assert (await held(kit)).bytes == grown
    written = await kit.now(written.key)
    without = merged(written.document(), {"metadata": {"annotations": {"a": None}}})
    await kit.changed(written, without)
    assert (await held(kit)).bytes < grown - 1000


async def test_a_creation_beyond_the_budget_names_the_limit_its_use_and_the_setting(kit: StoreUnderTest) -> None:
    await kit.created(a_config_map("one"), preconditions=within(objects=2))
    await kit.created(a_config_map("two"), preconditions=within(objects=2))
    with pytest.raises(StoredOverBudget) as rejected:
        await kit.store.create(a_config_map("three"), preconditions=within(objects=2))
    assert rejected.value.limit == "storedObjects"
    assert rejected.value.message == (
        "namespace 'garden-dev' has used up its budget of storedObjects (2 of 2 used): delete objects there, or have an"
        " operator set a higher limit in the ConfigMap configmap garden/budgets"
    )
    key = ObjectKey("configmap", NAMESPACE, "three")
    with pytest.raises(StoredOverBudget):
        await kit.store.dry_run(key, None, a_config_map("three"), preconditions=within(objects=2))
    two = await kit.now(ObjectKey("configmap", NAMESPACE, "two"))
    await kit.changed(two, a_config_map("two", "more"), preconditions=within(objects=2))
    await kit.store.delete(await kit.now(two.key))
    await kit.created(a_config_map("three"), preconditions=within(objects=2))


async def test_bytes_are_bounded_for_what_is_new_and_for_what_grows(kit: StoreUnderTest) -> None:
    one = await kit.created(a_config_map("one", "a" * 10_000))
    most = (await held(kit)).bytes
    with pytest.raises(StoredOverBudget, match=r"storedBytes \(.*ConfigMap"):
        await kit.store.create(a_config_map("two"), preconditions=within(size=most))
    annotated = merged(one.document(), {"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}})
    one = await kit.changed(one, annotated, preconditions=within(size=most))
    with pytest.raises(StoredOverBudget, match="storedBytes"):
        await kit.store.update(one, a_config_map("one", "a" * 12_000), preconditions=within(size=most))
    with pytest.raises(StoredOverBudget, match="storedBytes"):
        await kit.store.update(one, one.document(), last_applied=NOISE, preconditions=within(size=most))
    await kit.changed(one, a_config_map("one", "a" * 9000), preconditions=within(size=most))
    await kit.created(a_config_map("two"), preconditions=within(size=most))


async def test_of_creations_at_once_no_more_are_stored_than_there_is_room_for(kit: StoreUnderTest) -> None:
    creations = [Creation(a_config_map(f"c{each}"), preconditions=within(objects=3)) for each in range(5)]
    results = await kit.store.create_many(creations)
    assert [isinstance(each, StoredObject) for each in results] == [True, True, True, False, False]
    alone = (kit.store.create(a_config_map(f"d{each}"), preconditions=within(objects=4)) for each in range(3))
    ended = await asyncio.gather(*alone, return_exceptions=True)
    assert sum(isinstance(each, StoredObject) for each in ended) == 1


async def test_a_bind_counts_what_it_changes_and_not_gardeners_finalizer(kit: StoreUnderTest) -> None:
    await kit.created(a_seed("aws"))
    spec = {"purpose": "testing", "region": LONG}
    shoot, other = await kit.created(a_shoot("one")), await kit.created(a_shoot("two"))
    before = (await held(kit)).bytes
    bindings = [
        SeedBinding(NAMESPACE, each.key.name, each.uid, 1, "aws", None, spec=given)
        for each, given in ((shoot, None), (other, {**other.document()["spec"], **spec}))
    ]
    assert (await kit.store.bind(bindings)).outcomes == ["bound", "bound"]
    bound = await kit.now(other.key)
    assert (await held(kit)).bytes > before
    for key in (shoot.key, bound.key):
        stored = await kit.now(key)
        await kit.changed(stored, merged(stored.document(), {"metadata": {"finalizers": []}}))
        await kit.store.delete(await kit.now(key))
    assert NAMESPACE not in await kit.store.stored_amounts()


# ---------------------------------------------------------------------------------------------------- on Redis alone


@pytest.fixture
async def redis(redis_server: Server) -> AsyncIterator[StoreUnderTest]:
    kit = on_redis(redis_server.url)
    await kit.open()
    yield kit
    await kit.store.close()


async def command(kit: StoreUnderTest, name: str, key: str, *arguments: str) -> Any:
    assert kit.connection is not None
    return await kit.connection.command(name, kit.connection.key(key), *arguments)


async def test_objects_of_an_older_version_are_counted_a_page_at_a_time(
    redis: StoreUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gardenbus.relay.adapters.redis_outbox._PAGE", 2)
    names = [f"c{each}" for each in range(5)]
    for name in names:
        await redis.created(a_config_map(name, LONG))
    whole = await held(redis)
    await command(redis, "DEL", "stored")
    for name in names:
        await command(redis, "HDEL", f"o:configmap:{NAMESPACE}:{name}", "size")
    assert await redis.outbox.count_older()
    assert (await held(redis)).objects == 2
    last = await redis.now(ObjectKey("configmap", NAMESPACE, "c4"))
    await redis.changed(last, a_config_map("c4", LONG + "x"))
    assert (await held(redis)).objects == 3
    assert await redis.store.delete(await redis.now(ObjectKey("configmap", NAMESPACE, "c0"))) is None
    while await redis.outbox.count_older():
        pass
    await redis.changed(await redis.now(last.key), a_config_map("c4", LONG))
    assert await held(redis) == StoredAmount(4, whole.bytes // 5 * 4)
