"""Backups of a store on a Redis with replicas, named by its Sentinels or as a list, over failovers."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gardenbus.cli.client.store_address import connect_store
from gardenbus.cli.client.targets import LandscapeTarget
from gardenbus.cli.local.directory import LandscapeDirectory, LandscapeFile
from gardenbus.common.adapters.redis.backups import RedisBackups
from gardenbus.common.adapters.redis.connection import RedisConnection
from gardenbus.common.adapters.redis.store import RedisStore
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.backups.catalog import Chain
from gardenbus.common.backups.creating import BackupSource, create_full, read_catalog
from gardenbus.common.backups.directory import DirectoryDestination
from gardenbus.common.backups.restoring import chosen_chain, restore
from gardenbus.common.backups.schedule import parse_window
from gardenbus.common.errors import BadRequest, Conflict, Unavailable
from gardenbus.common.ports.backups import BackupRecord
from gardenbus.relay.adapters.redis_outbox import RedisOutbox
from gardenbus.relay.backups import BackupKeeper, BackupPlan
from tests.support.builders import a_project
from tests.support.clocks import FakeClock
from tests.support.commands import gardenbus_program
from tests.support.eventually import eventually
from tests.support.landscape import ended
from tests.support.redis_replicas import RedisReplicas, start_redis_replicas

PLAN = BackupPlan(parse_window("220000+0000/220100+0000"), delta_seconds=0.0)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisReplicas]:
    """A primary, two replicas and three Sentinels of these tests' own; each test has a prefix of its own."""
    with ExitStack() as stack:
        yield start_redis_replicas(stack, tmp_path_factory.mktemp("servers"))


@pytest.fixture(autouse=True)
async def complete(servers: RedisReplicas) -> None:
    """Three servers and three Sentinels that know each other."""

    async def are_complete() -> None:
        assert await asyncio.to_thread(servers.are_complete)

    await eventually(are_complete)


@pytest.fixture
def destination(tmp_path: Path) -> DirectoryDestination:
    return DirectoryDestination(tmp_path / "backups")


@asynccontextmanager
async def connected(url: str, prefix: str, *, replicas: int = 1) -> AsyncGenerator[RedisConnection]:
    connection = RedisConnection(url, prefix, replicas=replicas)
    try:
        await connection.ensure_ready()
        yield connection
    finally:
        await connection.close()


async def opened(connection: RedisConnection) -> None:
    """Open the store of whichever master there is by now, as a relay does."""
    outbox = RedisOutbox(connection, FakeClock(), leader="relay")

    async def is_open() -> None:
        try:
            if not (await outbox.lead(86_400)).is_open:
                await outbox.open(0, 0)
        except Unavailable as error:
            raise AssertionError from error

    await eventually(is_open)


async def written(connection: RedisConnection, names: Sequence[str]) -> None:
    store = RedisStore(connection, FakeClock())
    await asyncio.gather(*(store.create(a_project(name)) for name in names))


async def missing(connection: RedisConnection, names: Sequence[str]) -> list[str]:
    store = RedisStore(connection, FakeClock())
    found = await asyncio.gather(*(store.get(ObjectKey("project", "", name)) for name in names))
    return [name for name, each in zip(names, found, strict=True) if each is None]


async def latest(destination: DirectoryDestination) -> Chain:
    return chosen_chain(await read_catalog(destination), "", destination.place)


async def fail_over(servers: RedisReplicas) -> None:
    """Kill the primary, wait for the next, and bring the old one back as a replica."""
    old = await asyncio.to_thread(servers.primary)
    await asyncio.to_thread(old.kill)

    async def moved() -> None:
        assert await asyncio.to_thread(servers.primary) is not old

    await eventually(moved)
    await asyncio.to_thread(old.start)


def source_of(connection: RedisConnection) -> BackupSource:
    return BackupSource(RedisBackups(connection), connection.prefix, "0.1.0")


def now() -> datetime:
    return datetime.now(UTC)


async def test_the_relay_goes_on_with_a_full_backup_after_a_failover_and_no_acknowledged_write_is_missing_in_it(
    servers: RedisReplicas, destination: DirectoryDestination
) -> None:
    names = [f"n-{number}" for number in range(120)]
    async with connected(servers.url, "kept") as connection:
        await opened(connection)
        await written(connection, names[:100])
        keeper = BackupKeeper(source_of(connection), destination, FakeClock(now()), PLAN, lambda: True)
        await keeper.step()
        await written(connection, names[100:110])
        await keeper.step()
        await fail_over(servers)
        await opened(connection)
        await written(connection, names[110:])
        await keeper.step()
    made = (await read_catalog(destination)).backups
    assert ["full" if each.is_full else "delta" for each in made] == ["full", "delta", "full"]
    async with connected(f"{servers.url}/1", "kept") as elsewhere:
        result = await restore(RedisBackups(elsewhere), destination, await latest(destination), "kept")
        assert result.objects == len(names)
        await opened(elsewhere)
        assert await missing(elsewhere, names) == []


async def test_what_is_restored_is_at_the_replicas_when_the_restore_has_ended(
    servers: RedisReplicas, destination: DirectoryDestination
) -> None:
    names = [f"n-{number}" for number in range(250)]
    async with connected(servers.listed_url, "ended") as connection:
        await opened(connection)
        await written(connection, names)
        await create_full(source_of(connection), destination, now)
    async with connected(f"{servers.url}/1", "ended") as elsewhere:
        await restore(RedisBackups(elsewhere), destination, await latest(destination), "ended")
        await fail_over(servers)
        await opened(elsewhere)
        assert await missing(elsewhere, names) == []


class Forgetful(RedisBackups):
    """A store whose server is replaced during the restore by one that lacks a record."""

    forgets = True

    def __init__(self, connection: RedisConnection) -> None:
        super().__init__(connection)
        self._of = connection

    async def restore(self, records: Sequence[BackupRecord]) -> None:
        """Store them, and lose the first."""
        await super().restore(records)
        if self.forgets:
            key, prefix = records[0].key, self._of.prefix
            await self._of.command("ZREM", f"{prefix}:by_version", key)
            await self._of.command("DEL", f"{prefix}:o:{key}")


async def test_a_restore_whose_server_has_lost_records_meanwhile_says_so_and_is_run_again(
    servers: RedisReplicas, destination: DirectoryDestination
) -> None:
    names = ["one", "two"]
    async with connected(servers.url, "lossy", replicas=0) as connection:
        await opened(connection)
        await written(connection, names)
        await create_full(source_of(connection), destination, now)
    async with connected(f"{servers.url}/1", "lossy", replicas=0) as elsewhere:
        chain = await latest(destination)
        backups = Forgetful(elsewhere)
        with pytest.raises(Conflict, match=r"has 1 of 2 objects .* Restore again"):
            await restore(backups, destination, chain, "lossy")
        await elsewhere.command("DEL", "lossy:leader")
        backups.forgets = False
        assert (await restore(backups, destination, chain, "lossy")).objects == 2


async def test_a_backup_by_the_command_line_prints_its_result_alone(servers: RedisReplicas, tmp_path: Path) -> None:
    async with connected(servers.url, "printed") as connection:
        await opened(connection)
        await written(connection, ["one"])
    where = ("--nats-url", "nats://127.0.0.1:1", "--prefix", "printed", "--redis-url", servers.url)
    process = await asyncio.create_subprocess_exec(
        str(gardenbus_program()),
        *("backup", "create", "--without-requests", "-d", str(tmp_path / "backups"), *where),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    done = await ended(process)
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.startswith("backup ")
    assert "created in" in done.stdout


async def test_the_command_line_finds_the_store_by_sentinels_and_waits_for_the_replicas_that_are_set(
    servers: RedisReplicas, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GARDENBUS_REDIS_URL", servers.url)
    monkeypatch.setenv("GARDENBUS_REDIS_REPLICAS", "3")
    where = LandscapeTarget("nats://127.0.0.1:1", "command", directory=tmp_path)
    connection = connect_store(where, None, None)
    try:
        await connection.ensure_ready()
        with pytest.raises(Unavailable, match="2 of 3 Redis replicas have it"):
            await RedisBackups(connection).begin_restore("one", "restore-1", 1)
    finally:
        await connection.close()
    monkeypatch.setenv("GARDENBUS_REDIS_REPLICAS", "two")
    with pytest.raises(BadRequest, match="GARDENBUS_REDIS_REPLICAS is 'two'"):
        connect_store(where, None, None)


async def test_a_restore_into_a_cluster_of_this_machine_waits_for_a_replica_and_leaves_no_lead_while_there_is_none(
    servers: RedisReplicas, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GARDENBUS_REDIS_REPLICAS", raising=False)
    place = LandscapeDirectory(tmp_path / "lab")
    landscape = LandscapeFile(nats_url="nats://127.0.0.1:1", redis_url=servers.url, ports={"redis-1": 1})
    place.write(landscape)
    where = LandscapeTarget(landscape.nats_url, "local", directory=place.path)
    connection = connect_store(where, None, None)
    try:
        await connection.ensure_ready()
        backups = RedisBackups(connection)
        replicas = await asyncio.to_thread(servers.replicas)
        for each in replicas:
            each.pause()
        try:
            with pytest.raises(Unavailable, match="0 of 1 Redis replicas have it"):
                await backups.begin_restore("one", "restore-1", 1)
        finally:
            for each in replicas:
                each.resume()
        assert await connection.command("EXISTS", "local:leader", "local:restoring") == 0

        async def is_begun() -> None:
            try:
                await backups.begin_restore("one", "restore-2", 1)
            except Unavailable as error:
                raise AssertionError from error

        await eventually(is_begun)
    finally:
        await connection.close()
