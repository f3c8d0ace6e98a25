"""ResourceQuotas: objects are counted in the same call that creates them."""

import asyncio

import pytest

from gardenbus.common.adapters.redis.connection import RedisConnection
from gardenbus.common.adapters.redis.store import RedisStore
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Forbidden
from gardenbus.common.ports.store import Creation, Store, WritePrecondition
from gardenbus.relay.ports.outbox import ObjectEntry, Restored
from tests.support.builders import a_shoot, merged
from tests.support.servers import Server
from tests.support.stores import StoreUnderTest, on_redis

NAMESPACE = "garden-dev"
SHOOTS = "count/shoots.core.gardener.cloud"
QUOTA = ObjectKey("resourcequota", NAMESPACE, "gardener")
WITHIN = (WritePrecondition("quota", "", "this one is forbidden"),)


def a_quota(name: str = "gardener", **hard: str) -> Document:
    """A ResourceQuota; `shoots` and `secrets` stand for their resources."""
    named = {SHOOTS if resource == "shoots" else resource: most for resource, most in hard.items()}
    metadata = {"namespace": NAMESPACE, "name": name}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": named}}


async def used(kit: StoreUnderTest, name: str = "gardener") -> Document:
    """What a quota says that is used."""
    return dict((await kit.now(QUOTA._replace(name=name))).document()["status"]["used"])


async def test_a_creation_beyond_the_quota_is_refused_in_the_words_of_kubernetes(kit: StoreUnderTest) -> None:
    quota = await kit.created(a_quota(shoots="1"))
    assert quota.document()["status"] == {"hard": {SHOOTS: "1"}, "used": {SHOOTS: "0"}}
    await kit.created(a_shoot("one"), preconditions=WITHIN)
    with pytest.raises(Forbidden) as rejected:
        await kit.store.create(a_shoot("two"), preconditions=WITHIN)
    assert rejected.value.message == (
        f"this one is forbidden: exceeded quota: gardener, requested: {SHOOTS}=1, used: {SHOOTS}=1, limited: {SHOOTS}=1"
    )
    with pytest.raises(Forbidden, match="exceeded quota"):
        await kit.store.dry_run(ObjectKey("shoot", NAMESPACE, "two"), None, a_shoot("two"), preconditions=WITHIN)
    assert await used(kit) == {SHOOTS: "1"}
    await kit.created(a_shoot("two", "garden-other"), preconditions=WITHIN)


async def test_a_removal_makes_room(kit: StoreUnderTest) -> None:
    await kit.created(a_quota(shoots="1"))
    shoot = await kit.created(merged(a_shoot("one"), {"metadata": {"finalizers": ["gardener"]}}), preconditions=WITHIN)
    deleting = await kit.store.delete(shoot)
    assert deleting is not None
    with pytest.raises(Forbidden):
        await kit.store.create(a_shoot("two"), preconditions=WITHIN)
    gone = await kit.now(shoot.key)
    await kit.changed(gone, merged(gone.document(), {"metadata": {"finalizers": []}}))
    assert await used(kit) == {SHOOTS: "0"}
    await kit.created(a_shoot("two"), preconditions=WITHIN)
    assert await used(kit) == {SHOOTS: "1"}


async def test_a_quota_counts_what_was_there_before_it(kit: StoreUnderTest) -> None:
    for name in ("one", "two", "three"):
        await kit.created(a_shoot(name), preconditions=WITHIN)
    quota = await kit.created(a_quota(shoots="2"))
    assert quota.document()["status"]["used"] == {SHOOTS: "3"}
    with pytest.raises(Forbidden, match=f"used: {SHOOTS}=3, limited: {SHOOTS}=2"):
        await kit.store.create(a_shoot("four"), preconditions=WITHIN)
    await kit.changed(quota, merged(quota.document(), {"spec": {"hard": {SHOOTS: "4"}}}))
    await kit.created(a_shoot("four"), preconditions=WITHIN)
    assert (await kit.now(QUOTA)).document()["status"] == {"hard": {SHOOTS: "4"}, "used": {SHOOTS: "4"}}


async def test_all_quotas_of_a_namespace_hold_and_one_that_is_gone_does_not(kit: StoreUnderTest) -> None:
    await kit.created(a_quota("wide", shoots="5"))
    narrow = await kit.created(a_quota("narrow", shoots="0", **{"count/secrets": "1", "secrets": "7"}))
    assert narrow.document()["status"]["used"] == {SHOOTS: "0", "count/secrets": "0", "secrets": "0"}
    with pytest.raises(Forbidden, match="exceeded quota: narrow"):
        await kit.store.create(a_shoot("one"), preconditions=WITHIN)
    assert await kit.store.delete(narrow) is None
    await kit.created(a_shoot("one"), preconditions=WITHIN)
    assert await used(kit, "wide") == {SHOOTS: "1"}


async def test_what_nothing_counts_is_shown_and_limits_nothing(kit: StoreUnderTest) -> None:
    quota = await kit.created(a_quota(shoots="9", pods="0", **{"requests.cpu": "1"}))
    assert quota.document()["status"] == {
        "hard": {SHOOTS: "9", "pods": "0", "requests.cpu": "1"},
        "used": {SHOOTS: "0"},
    }


async def test_a_quota_counts_quotas_itself_too(kit: StoreUnderTest) -> None:
    first = await kit.created(a_quota("first", resourcequotas="1"), preconditions=WITHIN)
    assert first.document()["status"]["used"] == {"resourcequotas": "1"}
    with pytest.raises(Forbidden, match="exceeded quota: first, requested: resourcequotas=1"):
        await kit.store.create(a_quota("second", shoots="1"), preconditions=WITHIN)


async def test_a_changed_count_is_announced_and_a_write_without_the_guard_counts(kit: StoreUnderTest) -> None:
    quota = await kit.created(a_quota(shoots="1"))
    await kit.fresh_entries()
    for name in ("one", "two"):
        await kit.created(a_shoot(name))
    assert await used(kit) == {SHOOTS: "2"}
    entries = [entry for entry in await kit.fresh_entries() if isinstance(entry, ObjectEntry)]
    announced = [(entry.key.name, entry.with_binding) for entry in entries]
    assert announced == [("one", True), ("gardener", False), ("two", True), ("gardener", False)]
    assert (await kit.now(QUOTA)).version == entries[-1].version > quota.version


async def test_what_comes_back_from_the_bus_counts(closed: StoreUnderTest) -> None:
    other = merged(a_shoot("one"), {"metadata": {"uid": "11111111-1111-4111-8111-111111111111"}})
    quota = merged(a_quota(shoots="1"), {"metadata": {"uid": "22222222-2222-4222-8222-222222222222"}})
    await closed.outbox.lead(86_400)
    for version, document in ((3, quota), (4, other)):
        document["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
        key = QUOTA if version == 3 else ObjectKey("shoot", NAMESPACE, "one")
        assert await closed.outbox.restore(Restored(key, document["metadata"]["uid"], version, document))
    await closed.outbox.open(4, 0)
    assert await used(closed) == {SHOOTS: "1"}
    with pytest.raises(Forbidden, match="exceeded quota"):
        await closed.store.create(a_shoot("two"), preconditions=WITHIN)


CREATIONS, HARD, REPLICAS = 10_000, 100, 4


async def _create_all(store: Store, replica: int) -> int:
    """Create a replica's share in batches and one by one at once; returns how many there were."""
    names = [f"s-{replica}-{number}" for number in range(CREATIONS // REPLICAS)]

    async def batch(some: list[str]) -> int:
        results = await store.create_many([Creation(a_shoot(name), preconditions=WITHIN) for name in some])
        return sum(not isinstance(result, Forbidden) for result in results)

    async def one(name: str) -> int:
        try:
            await store.create(a_shoot(name), preconditions=WITHIN)
        except Forbidden:
            return 0
        return 1

    singles, rest = names[:100], names[100:]
    batches = [batch(rest[start : start + 50]) for start in range(0, len(rest), 50)]
    return sum(await asyncio.gather(*batches, *map(one, singles)))


async def test_of_ten_thousand_at_once_exactly_as_many_are_created_as_are_allowed(store_server: Server) -> None:
    kit = on_redis(store_server.url)
    assert kit.connection is not None
    connections = [
        RedisConnection(store_server.url, kit.connection.prefix, timeout_seconds=60) for _ in range(REPLICAS)
    ]
    try:
        await kit.open()
        await kit.created(a_quota(shoots=str(HARD)))
        stores = [RedisStore(connection, kit.clock) for connection in connections]
        created = await asyncio.gather(*(_create_all(store, number) for number, store in enumerate(stores)))
        assert sum(created) == HARD
        assert await used(kit) == {SHOOTS: str(HARD)}
        assert len((await kit.store.list_page("shoot", limit=200)).objects) == HARD
    finally:
        for connection in (*connections, kit.connection):
            await connection.close()
