"""Objects of an older format: indexed while a relay opens the store, so that quotas count them from then on."""

from collections.abc import AsyncIterator, Sequence

import pytest

from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Forbidden
from gardenbus.common.ports.store import WritePrecondition
from tests.support.builders import a_shoot, merged
from tests.support.servers import Server
from tests.support.stores import StoreUnderTest, on_redis

NAMESPACE = "garden-dev"
SHOOTS = "count/shoots.core.gardener.cloud"
TRIAL = ObjectKey("quota", "garden-trial", "trial")
PROFILE = ObjectKey("cloudprofile", "", "aws")
MACHINES = "bare-machines\tcloudprofile:_:aws\tm5.large"
WITHIN = (WritePrecondition("quota", "", "refused"),)
LATER_FIELDS = ("refs", "claims", "quota", "demand")


@pytest.fixture
async def kit(redis_server: Server) -> AsyncIterator[StoreUnderTest]:
    kit = on_redis(redis_server.url)
    await kit.open()
    yield kit
    await kit.store.close()


def a_cluster(name: str) -> Document:
    pool = {"name": "pool", "machine": {"type": "m5.large"}, "minimum": 1, "maximum": 1}
    spec = {"credentialsBindingName": "aws", "cloudProfile": {"kind": "CloudProfile", "name": "aws"}}
    return merged(a_shoot(name, NAMESPACE), {"spec": {**spec, "provider": {"type": "aws", "workers": [pool]}}})


def a_binding() -> Document:
    metadata = {"namespace": NAMESPACE, "name": "aws"}
    secret = {"apiVersion": "v1", "kind": "Secret", "namespace": NAMESPACE, "name": "key"}
    quotas = [{"namespace": TRIAL.namespace, "name": TRIAL.name}]
    kind = {"apiVersion": "security.gardener.cloud/v1alpha1", "kind": "CredentialsBinding"}
    return {**kind, "metadata": metadata, "credentialsRef": secret, "quotas": quotas}


def a_resource_quota(most: int) -> Document:
    metadata = {"namespace": NAMESPACE, "name": "gardener"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": {SHOOTS: str(most)}}}


async def leave_as_older_format(kit: StoreUnderTest, written: Sequence[StoredObject]) -> None:
    """Leave the store as a library that knew neither these indexes nor their fields would have left it."""
    connection = kit.connection
    assert connection is not None
    for each in written:
        await connection.command("HDEL", connection.key(f"o:{each.key.stored}"), *LATER_FIELDS)
    for pattern in ("demand:*", "hard:*", "refs:*", "claims", "indexed"):
        for key in await connection.command("KEYS", connection.key(pattern)):
            await connection.command("DEL", key)


async def index_all(kit: StoreUnderTest, after: int = 0) -> int:
    """Walk to an end, a page at a time."""
    progress = await kit.outbox.index_older(after)
    while not progress.is_end:
        progress = await kit.outbox.index_older(progress.version)
    return progress.version


async def indexed(kit: StoreUnderTest) -> str | None:
    assert kit.connection is not None
    value = await kit.connection.command("GET", kit.connection.key("indexed"))
    return None if value is None else value.decode()


async def test_what_an_older_format_stored_counts_as_soon_as_the_store_is_open(
    kit: StoreUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gardenbus.relay.adapters.redis_outbox._PAGE", 2)
    written = [await kit.created(document) for document in (a_resource_quota(3), a_binding())]
    written += [await kit.created(a_cluster(name)) for name in ("one", "two", "three")]
    await leave_as_older_format(kit, written)
    assert await kit.store.demand(TRIAL) == {}
    await kit.close_for_writes()

    end = await index_all(kit)
    assert await indexed(kit) is None, "an older library may still write"
    await kit.outbox.open(0, 0)
    assert await kit.store.demand(TRIAL) == {MACHINES: 3, "loadbalancers": 3}
    with pytest.raises(Forbidden, match=r"used: .*=3, limited"):
        await kit.store.create(a_cluster("four"), preconditions=WITHIN)
    in_use = (WritePrecondition("references", PROFILE.stored, "it is in use"),)
    quota = await kit.now(written[0].key)
    with pytest.raises(Forbidden, match="it is in use"):
        await kit.store.update(quota, a_resource_quota(4), preconditions=in_use)

    await index_all(kit, end)
    assert await indexed(kit) is not None
    quota = await kit.now(written[0].key)
    assert quota.document()["status"]["used"] == {SHOOTS: "3"}
    for shoot in written[2:]:
        assert await kit.store.delete(await kit.now(shoot.key)) is None
    assert await kit.store.demand(TRIAL) == {}


async def test_what_was_written_between_the_walk_and_the_opening_is_indexed_afterwards(kit: StoreUnderTest) -> None:
    binding = await kit.created(a_binding())
    early = await kit.created(a_cluster("early"))
    await leave_as_older_format(kit, (binding, early))
    await kit.close_for_writes()
    end = await index_all(kit)
    await kit.outbox.open(0, 0)
    late = await kit.created(a_cluster("late"))  # as if an older library had: its reference is there, its demand is not
    connection = kit.connection
    assert connection is not None
    await connection.command("HDEL", connection.key(f"o:{late.key.stored}"), "demand")
    await connection.command("HINCRBY", connection.key("demand:credentialsbinding:garden-dev:aws"), MACHINES, "-1")
    assert (await kit.store.demand(TRIAL))[MACHINES] == 1
    await index_all(kit, end)
    assert (await kit.store.demand(TRIAL))[MACHINES] == 2


async def test_an_object_that_changed_since_its_page_was_read_is_left_alone(
    kit: StoreUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    binding, shoot = await kit.created(a_binding()), await kit.created(a_cluster("one"))
    await leave_as_older_format(kit, (binding, shoot))
    connection = kit.connection
    assert connection is not None
    call = connection.call

    async def change_before_it_is_indexed(function: str, operation: Document, **options: bool) -> object:
        if function == "index_objects":
            monkeypatch.undo()
            await kit.changed(shoot, merged(shoot.document(), {"metadata": {"labels": {"a": "b"}}}))
        return await call(function, operation, **options)

    monkeypatch.setattr(connection, "call", change_before_it_is_indexed)
    await index_all(kit)
    assert await kit.store.demand(TRIAL) == {MACHINES: 1, "loadbalancers": 1}


async def test_a_store_that_is_indexed_is_not_walked_again(kit: StoreUnderTest) -> None:
    await kit.created(a_binding())
    shoot = await kit.created(a_cluster("one"))
    await index_all(kit)
    assert await indexed(kit) is not None
    assert kit.connection is not None
    await kit.connection.command("HDEL", kit.connection.key(f"o:{shoot.key.stored}"), "demand")
    assert await index_all(kit) == 0
    assert await kit.store.demand(TRIAL) == {MACHINES: 1, "loadbalancers": 1}
