"""Backups of a store on Redis: written while it is written to, and restored into another one."""

import asyncio
import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gardenbus.common.adapters.redis.backups import RedisBackups
from gardenbus.common.api.identity.revocations import REVOCATIONS, revocation, revocations_in
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.backups.catalog import Chain
from gardenbus.common.backups.creating import BackupSource, create_delta, create_full, latest_of, read_catalog
from gardenbus.common.backups.directory import DirectoryDestination
from gardenbus.common.backups.restoring import chosen_chain, restore, verify
from gardenbus.common.errors import Conflict, Forbidden, NotFound
from gardenbus.common.ports.backups import BackupPage
from gardenbus.common.ports.bus import StreamPosition
from gardenbus.common.ports.store import WritePrecondition
from gardenbus.common.ports.stream_history import StreamEntry
from tests.support.builders import a_requesting_shoot, a_seed, a_shoot, merged
from tests.support.servers import Server, start_redis
from tests.support.stores import StoreUnderTest, on_redis

_numbers = itertools.count()
OLD_FORMAT = 1
"""Format of a store that each version reads."""
INDEXES_OF_THEIR_OWN = (
    *("recovery_due", "alive"),
    *("outbox", "relay", "opening", "leader", "led", "version", "usage_version", "usage_changed", "losses"),
)
"""Keys that are not as they were after a restore, on purpose."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A redis-server of these tests' own."""
    server = start_redis(tmp_path_factory.mktemp("redis"))
    yield server
    server.stop()


@pytest.fixture
def destination(tmp_path: Path) -> DirectoryDestination:
    """An empty directory."""
    return DirectoryDestination(tmp_path / "backups")


@asynccontextmanager
async def a_store(url: str, prefix: str) -> AsyncGenerator[StoreUnderTest]:
    kit = on_redis(url, prefix)
    assert kit.connection is not None
    await kit.connection.ensure_ready()
    try:
        yield kit
    finally:
        await kit.connection.close()


@pytest.fixture
async def kit(server: Server) -> AsyncIterator[StoreUnderTest]:
    """An open store."""
    async with a_store(server.url, f"landscape{next(_numbers)}") as kit:
        await kit.open()
        yield kit


def source_of(kit: StoreUnderTest) -> BackupSource:
    assert kit.connection is not None
    return BackupSource(RedisBackups(kit.connection), kit.connection.prefix, "0.1.0")


def now() -> datetime:
    return datetime.now(UTC)


async def latest_chain(destination: DirectoryDestination) -> Chain:
    return chosen_chain(await read_catalog(destination), "", destination.place)


async def content(kit: StoreUnderTest) -> dict[str, Any]:
    """Every key of a store with what it holds, but for what differs after a restore."""
    connection = kit.connection
    assert connection is not None
    found: dict[str, Any] = {}
    for key in sorted(await connection.command("KEYS", f"{connection.prefix}:*")):
        name = key.decode().removeprefix(f"{connection.prefix}:")
        if name not in INDEXES_OF_THEIR_OWN and not name.startswith("event:"):
            found[name] = await _value(kit, key)
    return {name: value for name, value in found.items() if value not in ([], b"0")}


async def _value(kit: StoreUnderTest, key: bytes) -> Any:
    connection = kit.connection
    assert connection is not None
    match (await connection.command("TYPE", key)).decode():
        case "hash":
            flat = await connection.command("HGETALL", key)
            return sorted(pair for pair in zip(flat[::2], flat[1::2], strict=True) if pair[1] not in (b"", b"0"))
        case "set":
            return sorted(await connection.command("SMEMBERS", key))
        case "zset":
            return await connection.command("ZRANGE", key, 0, -1, "WITHSCORES")
        case "list":
            return await connection.command("LRANGE", key, 0, -1)
        case _:
            return await connection.command("GET", key)


async def restored_elsewhere(
    kit: StoreUnderTest, elsewhere: StoreUnderTest, destination: DirectoryDestination
) -> dict[str, Any]:
    """Restore the latest chain into another database; the content of that."""
    assert elsewhere.connection is not None
    await restore(
        RedisBackups(elsewhere.connection), destination, await latest_chain(destination), source_of(kit).prefix
    )
    return await content(elsewhere)


def other_database(server: Server) -> str:
    """A database that is empty: the landscape has the same prefix there."""
    return f"{server.url}/1"


@pytest.fixture
async def elsewhere(server: Server, kit: StoreUnderTest) -> AsyncIterator[StoreUnderTest]:
    """An empty store of the same landscape in another database."""
    assert kit.connection is not None
    async with a_store(other_database(server), kit.connection.prefix) as other:
        assert other.connection is not None
        await other.connection.command("DEL", *[f"{kit.connection.prefix}:{name}" for name in ("opening", "leader")])
        yield other


async def a_landscape(kit: StoreUnderTest) -> None:
    """Two seeds; shoots that wait, are bound, move, are deleted, and are gone."""
    for seed in ("aws-eu1", "aws-eu2"):
        await kit.created(a_seed(seed))
    await kit.outbox.observe_stream("garden_REQUESTS", 2**60 + 1, [StreamEntry(2**40, 2**50)], acknowledged=7)
    for name in ("waits", "bound", "moves", "leaves", "gone"):
        await kit.created(a_shoot(name))
    for name in ("bound", "moves", "leaves"):
        await kit.bound(await kit.now(ObjectKey("shoot", "garden-dev", name)), "aws-eu1")
    moving = await kit.now(ObjectKey("shoot", "garden-dev", "moves"))
    reported = await kit.changed(moving, merged(moving.document(), {"status": {"seedName": "aws-eu1"}}))
    await kit.changed(reported, merged(reported.document(), {"spec": {"seedName": "aws-eu2"}}))
    await kit.store.delete(await kit.now(ObjectKey("shoot", "garden-dev", "leaves")))
    await kit.store.delete(await kit.now(ObjectKey("shoot", "garden-dev", "gone")))
    cpu = {"cpu": "4"}
    await kit.created(merged(a_seed("sized"), {"status": {"capacity": cpu, "allocatable": cpu}}))
    requesting = await kit.created(a_requesting_shoot("requesting", {"cpu": 1500}))
    assert await kit.bound(requesting, "sized") == "bound"


async def test_a_restored_store_is_as_it_was_in_every_index(
    kit: StoreUnderTest, elsewhere: StoreUnderTest, destination: DirectoryDestination
) -> None:
    await a_landscape(kit)
    created = await create_full(source_of(kit), destination, now)
    assert created.records >= 7
    assert await restored_elsewhere(kit, elsewhere, destination) == await content(kit)


async def test_quotas_hold_in_a_restored_store(
    kit: StoreUnderTest, elsewhere: StoreUnderTest, destination: DirectoryDestination
) -> None:
    namespace, shoots = "garden-dev", "count/shoots.core.gardener.cloud"
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"namespace": namespace, "name": "gardener"}}
    await kit.created({**quota, "spec": {"hard": {shoots: "1"}}})
    pool = {"name": "pool", "machine": {"type": "m5.large"}, "minimum": 1, "maximum": 2}
    spec = {"credentialsBindingName": "aws", "provider": {"type": "aws", "workers": [pool]}}
    await kit.created(merged(a_shoot("one", namespace), {"spec": spec}))
    assert any(name.startswith("demand:") for name in await content(kit))
    await create_full(source_of(kit), destination, now)
    assert await restored_elsewhere(kit, elsewhere, destination) == await content(kit)
    await elsewhere.open()
    within = (WritePrecondition("quota", "", "refused"),)
    with pytest.raises(Forbidden, match="exceeded quota"):
        await elsewhere.store.create(a_shoot("two", namespace), preconditions=within)


async def test_deltas_are_replayed_over_the_full_backup(
    kit: StoreUnderTest, elsewhere: StoreUnderTest, destination: DirectoryDestination
) -> None:
    await a_landscape(kit)
    latest = (await create_full(source_of(kit), destination, now)).latest
    assert await create_delta(source_of(kit), destination, now, latest) is None
    await kit.created(a_shoot("later"))
    await kit.store.delete(await kit.now(ObjectKey("shoot", "garden-dev", "waits")))
    delta = await create_delta(source_of(kit), destination, now, latest)
    assert delta is not None
    assert delta.records == 2
    await kit.created(a_shoot("waits"))
    found = await latest_of(destination, await read_catalog(destination), source_of(kit).prefix)
    assert found is not None
    assert found.opening == latest.opening
    assert await create_delta(source_of(kit), destination, now, found) is not None
    assert [len(chain.deltas) for chain in (await read_catalog(destination)).chains] == [2]
    assert await restored_elsewhere(kit, elsewhere, destination) == await content(kit)
    results = await verify(destination, await latest_chain(destination))
    assert [each.problem for each in results] == ["", "", ""]


async def test_two_deltas_that_go_on_from_one_backup_are_replayed_both(
    kit: StoreUnderTest, elsewhere: StoreUnderTest, destination: DirectoryDestination
) -> None:
    await a_landscape(kit)
    latest = (await create_full(source_of(kit), destination, now)).latest
    await kit.created(a_shoot("later"))
    await kit.created(a_shoot("gone"))
    await kit.store.delete(await kit.now(ObjectKey("shoot", "garden-dev", "waits")))
    assert await create_delta(source_of(kit), destination, now, latest) is not None
    await kit.store.delete(await kit.now(ObjectKey("shoot", "garden-dev", "gone")))
    await kit.created(a_shoot("waits"))
    assert await create_delta(source_of(kit), destination, now, latest) is not None
    assert [len(chain.deltas) for chain in (await read_catalog(destination)).chains] == [2]
    assert await restored_elsewhere(kit, elsewhere, destination) == await content(kit)


async def test_a_backup_under_load_has_every_write_acknowledged_before_it_and_is_one_state(
    kit: StoreUnderTest, elsewhere: StoreUnderTest, destination: DirectoryDestination
) -> None:
    """Each round writes a pair of shoots, first the left one: each state has at most one left one alone."""
    for number in range(150):
        await kit.created(a_shoot(f"first-{number:03}"))
    acknowledged: list[str] = []
    is_over = False

    async def write() -> None:
        for number in itertools.count():
            for side in ("left", "right"):
                await kit.created(a_shoot(f"{side}-{number:04}"))
                acknowledged.append(f"{side}-{number:04}")
            old = await kit.now(ObjectKey("shoot", "garden-dev", f"first-{number % 150:03}"))
            await kit.changed(old, merged(old.document(), {"metadata": {"labels": {"round": str(number)}}}))
            if is_over:
                return

    writing = asyncio.create_task(write())
    while len(acknowledged) < 10:
        await asyncio.sleep(0)
    before = list(acknowledged)
    await create_full(source_of(kit), destination, now)
    is_over = True
    await writing
    await restored_elsewhere(kit, elsewhere, destination)
    await elsewhere.open()
    page = await elsewhere.store.list_page("shoot")
    shoots = {each.key.name for each in page.objects}
    while page.continue_token:
        page = await elsewhere.store.list_page("shoot", continue_token=page.continue_token)
        shoots |= {each.key.name for each in page.objects}
    assert set(before) <= shoots
    lefts = {name.removeprefix("left-") for name in shoots if name.startswith("left-")}
    rights = {name.removeprefix("right-") for name in shoots if name.startswith("right-")}
    assert rights <= lefts
    assert len(lefts - rights) <= 1


async def test_a_store_that_was_opened_anew_needs_a_full_backup(
    kit: StoreUnderTest, destination: DirectoryDestination
) -> None:
    await kit.created(a_seed())
    latest = (await create_full(source_of(kit), destination, now)).latest
    await kit.close_for_writes()
    await kit.open()
    await kit.created(a_shoot())
    with pytest.raises(NotFound, match="opened anew"):
        await create_delta(source_of(kit), destination, now, latest)


async def test_removals_that_are_forgotten_need_a_full_backup(
    kit: StoreUnderTest, destination: DirectoryDestination
) -> None:
    shoot = await kit.created(a_shoot())
    latest = (await create_full(source_of(kit), destination, now)).latest
    await kit.store.delete(shoot)
    assert await kit.outbox.collect_tombstones("9999", StreamPosition(2**60, 1)) == 1
    await kit.created(a_shoot())
    with pytest.raises(NotFound, match="not remembered"):
        await create_delta(source_of(kit), destination, now, latest)


async def test_a_store_with_objects_or_a_leader_is_not_restored_into(
    kit: StoreUnderTest, elsewhere: StoreUnderTest, destination: DirectoryDestination
) -> None:
    await kit.created(a_seed())
    await create_full(source_of(kit), destination, now)
    chain = await latest_chain(destination)
    assert kit.connection is not None
    with pytest.raises(Conflict, match="relay leads the store"):
        await restore(RedisBackups(kit.connection), destination, chain, kit.connection.prefix)
    await kit.outbox.resign()
    with pytest.raises(Conflict, match="has 1 objects: a backup goes into an empty one"):
        await restore(RedisBackups(kit.connection), destination, chain, kit.connection.prefix)
    assert await restored_elsewhere(kit, elsewhere, destination) == await content(kit)


async def test_a_backup_of_a_store_that_only_a_newer_version_reads_is_not_restored(
    kit: StoreUnderTest, elsewhere: StoreUnderTest, destination: DirectoryDestination
) -> None:
    await a_landscape(kit)
    source = source_of(kit)

    class Newer(RedisBackups):
        async def page(self, after: int, *, is_delta: bool = False) -> BackupPage:
            page = await super().page(after, is_delta=is_delta)
            return page._replace(store_format=page.store_format + 1)

    assert kit.connection is not None
    newer = source._replace(store=Newer(kit.connection))
    await create_full(newer, destination, now)
    with pytest.raises(Conflict, match=r"format \d+, which this version of gardenbus does not read"):
        await restored_elsewhere(kit, elsewhere, destination)
    assert await content(elsewhere) == {}


async def revoke(kit: StoreUnderTest, user: str) -> None:
    document, stored = revocation(user, now(), "stolen"), await kit.store.get(REVOCATIONS)
    await (kit.created(document) if stored is None else kit.changed(stored, merged(stored.document(), document)))


@pytest.mark.parametrize("is_damaged", [False, True], ids=["", "and the latest backup is damaged"])
async def test_who_was_revoked_after_the_backup_that_is_restored_stays_revoked(
    kit: StoreUnderTest, elsewhere: StoreUnderTest, destination: DirectoryDestination, *, is_damaged: bool
) -> None:
    await a_landscape(kit)
    latest = (await create_full(source_of(kit), destination, now)).latest
    chain = await latest_chain(destination)
    await revoke(kit, "seed:aws-eu2")
    delta = await create_delta(source_of(kit), destination, now, latest)
    assert delta is not None
    await revoke(kit, "ann")
    last = await create_delta(source_of(kit), destination, now, delta.latest)
    assert last is not None
    name = last.latest.backup.name
    if is_damaged:
        file = Path(destination.place) / name
        file.write_bytes(file.read_bytes()[:-20])
    assert elsewhere.connection is not None
    backups = RedisBackups(elsewhere.connection)
    done = await restore(backups, destination, chain, source_of(kit).prefix)
    assert done.unread == ((name,) if is_damaged else ())
    await elsewhere.open()
    found = revocations_in(await elsewhere.now(REVOCATIONS))
    before = now() - timedelta(hours=1)
    assert found.rejects("seed:aws-eu2", issued_at=before)
    assert found.rejects("ann", issued_at=before) is not is_damaged
    assert not found.rejects("seed:aws-eu2", issued_at=now() + timedelta(hours=1))


async def test_a_restore_that_died_keeps_the_store_closed_until_it_is_ended(
    kit: StoreUnderTest, elsewhere: StoreUnderTest, destination: DirectoryDestination
) -> None:
    await a_landscape(kit)
    await create_full(source_of(kit), destination, now)
    chain = await latest_chain(destination)
    assert elsewhere.connection is not None
    died = RedisBackups(elsewhere.connection)
    await died.begin_restore(chain.last.name, "restore-1", OLD_FORMAT)
    page = await source_of(kit).store.page(0)
    await died.restore(page.records[:3])
    with pytest.raises(Conflict, match="restore-1 leads the store"):
        await restored_elsewhere(kit, elsewhere, destination)
    await elsewhere.connection.command("DEL", f"{elsewhere.connection.prefix}:leader")
    assert not (await elsewhere.outbox.lead(5)).leading
    with pytest.raises(Conflict, match="was begun here"):
        await died.begin_restore("another", "restore-2", OLD_FORMAT)
    assert await restored_elsewhere(kit, elsewhere, destination) == await content(kit)
    assert (await elsewhere.outbox.lead(5)).leading


async def test_a_restore_that_is_begun_anew_counts_each_demand_once(
    kit: StoreUnderTest, elsewhere: StoreUnderTest, destination: DirectoryDestination
) -> None:
    await kit.created(merged(a_shoot(), {"spec": {"credentialsBindingName": "aws"}}))
    await create_full(source_of(kit), destination, now)
    assert elsewhere.connection is not None
    died = RedisBackups(elsewhere.connection)
    await died.begin_restore((await latest_chain(destination)).last.name, "restore-1", OLD_FORMAT)
    await died.restore((await source_of(kit).store.page(0)).records)
    await elsewhere.connection.command("DEL", f"{elsewhere.connection.prefix}:leader")
    assert any(name.startswith("demand:") for name in await content(kit))
    assert await restored_elsewhere(kit, elsewhere, destination) == await content(kit)


async def test_a_restored_store_says_since_when_what_was_written_is_gone(
    kit: StoreUnderTest, elsewhere: StoreUnderTest, destination: DirectoryDestination
) -> None:
    await kit.created(a_seed())
    created = await create_full(source_of(kit), destination, now)
    await restored_elsewhere(kit, elsewhere, destination)
    (loss,) = await elsewhere.outbox.stream_losses()
    assert loss.since.startswith(created.latest.backup.taken_at.strftime("%Y-%m-%dT%H:%M:%S"))
    assert "restored from a backup" in loss.text
