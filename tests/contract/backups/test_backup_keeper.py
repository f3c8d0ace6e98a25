"""The relay's backups by themselves, on a real Redis and with a clock of the test's own."""

import itertools
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from gardenbus.common.adapters.redis.backups import RedisBackups
from gardenbus.common.backups.creating import BackupSource, create_delta, create_full, latest_of, read_catalog
from gardenbus.common.backups.directory import DirectoryDestination
from gardenbus.common.backups.restoring import chosen_chain, verify
from gardenbus.common.backups.schedule import parse_window
from gardenbus.common.errors import Conflict, Unavailable
from gardenbus.relay.backups import BackupKeeper, BackupPlan
from tests.support.builders import a_seed, a_shoot
from tests.support.clocks import FakeClock
from tests.support.servers import Server, start_redis
from tests.support.stores import StoreUnderTest, on_redis

_numbers = itertools.count()
PLAN = BackupPlan(parse_window("220000+0000/220100+0000"))
HOUR = 3600.0


class Kept(NamedTuple):
    """A keeper with its store, clock and destination."""

    kit: StoreUnderTest
    keeper: BackupKeeper
    clock: FakeClock
    destination: DirectoryDestination
    source: BackupSource

    async def names(self) -> list[str]:
        """Kinds of the backups that are there, in order."""
        return ["full" if each.is_full else "delta" for each in (await read_catalog(self.destination)).backups]

    async def verified(self) -> Sequence[int]:
        """Versions up to which the backups of the latest chain are, which must be all that are there since its full."""
        catalog = await read_catalog(self.destination)
        assert catalog.loose == ()
        chain = chosen_chain(catalog, "", "here")
        assert chain.last == catalog.backups[-1]
        assert [each.problem for each in await verify(self.destination, chain) if each.problem] == []
        return [each.version for each in chain.backups]

    async def created(self, *, is_full: bool) -> None:
        """Somebody else makes a backup at the same place."""
        if is_full:
            await create_full(self.source, self.destination, self.clock.now)
            return
        latest = await latest_of(self.destination, await read_catalog(self.destination), self.source.prefix)
        assert latest is not None
        assert await create_delta(self.source, self.destination, self.clock.now, latest) is not None

    def another(self, plan: BackupPlan = PLAN) -> BackupKeeper:
        """The keeper of a relay that has come to lead."""
        return BackupKeeper(self.source, self.destination, self.clock, plan, lambda: True)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A redis-server of these tests' own."""
    server = start_redis(tmp_path_factory.mktemp("redis"))
    yield server
    server.stop()


@pytest.fixture
async def kept(server: Server, tmp_path: Path) -> AsyncIterator[Kept]:
    """An open store with a seed, at noon; nothing is backed up yet."""
    kit = on_redis(server.url, f"kept{next(_numbers)}")
    assert kit.connection is not None
    await kit.connection.ensure_ready()
    await kit.open()
    await kit.created(a_seed())
    clock = FakeClock(datetime(2026, 11, 23, 12, 0, tzinfo=UTC))
    destination = DirectoryDestination(tmp_path / "backups")
    source = BackupSource(RedisBackups(kit.connection), kit.connection.prefix, "0.1.0")
    yield Kept(kit, BackupKeeper(source, destination, clock, PLAN, lambda: True), clock, destination, source)
    await kit.connection.close()


async def test_a_full_backup_comes_first_and_deltas_of_what_changed_every_five_minutes(kept: Kept) -> None:
    await kept.keeper.step()
    await kept.keeper.step()
    assert await kept.names() == ["full"]
    await kept.kit.created(a_shoot())
    await kept.keeper.step()
    assert await kept.names() == ["full"]
    kept.clock.advance(300)
    await kept.keeper.step()
    assert await kept.names() == ["full", "delta"]
    kept.clock.advance(300)
    await kept.keeper.step()
    assert await kept.names() == ["full", "delta"]


async def test_much_that_changed_is_backed_up_before_its_time(kept: Kept) -> None:
    keeper = kept.another(PLAN._replace(delta_bytes=400.0))
    await keeper.step()
    await keeper.step()
    assert await kept.names() == ["full"]
    await kept.kit.created(a_shoot())
    kept.clock.advance(5)
    await keeper.step()
    assert await kept.names() == ["full", "delta"]


async def test_a_full_backup_is_made_in_the_window_of_each_day(kept: Kept) -> None:
    await kept.keeper.step()
    kept.clock.advance(9.9 * HOUR)
    await kept.keeper.step()
    assert await kept.names() == ["full"]
    kept.clock.advance(0.2 * HOUR)
    await kept.keeper.step()
    assert await kept.names() == ["full", "full"]
    kept.clock.advance(HOUR)
    await kept.keeper.step()
    assert await kept.names() == ["full", "full"]


async def test_a_relay_that_comes_to_lead_goes_on_from_the_latest_backup(kept: Kept) -> None:
    await kept.keeper.step()
    await kept.kit.created(a_shoot())
    kept.clock.advance(10)
    await kept.another().step()
    assert await kept.names() == ["full", "delta"]


@pytest.mark.parametrize(("is_full", "has_changed"), [(True, True), (True, False), (False, True)])
async def test_the_relay_goes_on_from_what_somebody_else_backed_up_meanwhile(
    kept: Kept, is_full: bool, has_changed: bool
) -> None:
    await kept.keeper.step()
    if has_changed:
        await kept.kit.created(a_shoot())
    kept.clock.advance(10)
    await kept.created(is_full=is_full)
    for name in ("boreas", "ceres"):
        await kept.kit.created(a_shoot(name))
        kept.clock.advance(300)
        await kept.keeper.step()
    assert len(await kept.verified()) == (3 if is_full else 4)


@pytest.mark.parametrize("is_full", [True, False])
async def test_backups_that_are_made_at_the_same_time_are_one_chain(kept: Kept, is_full: bool) -> None:
    await kept.keeper.step()
    latest = await latest_of(kept.destination, await read_catalog(kept.destination), kept.source.prefix)
    assert latest is not None
    await kept.kit.created(a_shoot())
    kept.clock.advance(10)
    await kept.created(is_full=is_full)
    await kept.kit.created(a_shoot("boreas"))
    kept.clock.advance(1)
    created = await create_delta(kept.source, kept.destination, kept.clock.now, latest)
    assert created is not None
    assert (await kept.verified())[-1] == created.latest.backup.version


async def test_a_delta_of_a_store_that_was_opened_anew_fits_no_earlier_backup(kept: Kept) -> None:
    first = (await create_full(kept.source, kept.destination, kept.clock.now)).latest
    await kept.kit.close_for_writes()
    await kept.kit.open()
    await kept.kit.created(a_shoot())
    opening, _ = await kept.source.store.changes(0)
    kept.clock.advance(1)
    await create_delta(kept.source, kept.destination, kept.clock.now, first._replace(opening=opening))
    chain = chosen_chain(await read_catalog(kept.destination), "", "here")
    found = [each.problem for each in await verify(kept.destination, chain)]
    assert found[0] == ""
    assert "opened anew" in found[1]


async def test_after_a_restart_of_redis_a_full_backup_is_made(kept: Kept) -> None:
    await kept.keeper.step()
    await kept.kit.close_for_writes()
    await kept.kit.open()
    kept.clock.advance(300)
    await kept.keeper.step()
    assert await kept.names() == ["full", "full"]


async def test_where_the_latest_backup_is_cut_a_full_one_is_made(kept: Kept) -> None:
    await kept.keeper.step()
    (file,) = await kept.destination.list()
    path = await kept.destination.fetch(file.name, Path())
    path.write_bytes(path.read_bytes()[:20])
    kept.clock.advance(300)
    await kept.another().step()
    assert await kept.names() == ["full", "full"]


async def test_what_is_not_kept_is_collected_every_twelve_hours(kept: Kept) -> None:
    keeper = kept.another(PLAN._replace(window=parse_window("000000+0000/000000+0000")))
    for _ in range(3):
        await create_full(kept.source, kept.destination, kept.clock.now)
        kept.clock.advance(60)
    await keeper.step()
    assert len(await kept.names()) == 3
    kept.clock.advance(48 * HOUR)  # a whole day is in it, whenever the minute is that is drawn for that
    await keeper.step()
    remaining = (await read_catalog(kept.destination)).backups
    assert [each.taken_at.isoformat()[:16] for each in remaining] == ["2026-11-23T12:02", "2026-11-25T12:03"]


async def test_a_place_with_backups_of_another_landscape_is_refused(kept: Kept) -> None:
    await create_full(kept.source._replace(prefix="other"), kept.destination, kept.clock.now)
    with pytest.raises(Conflict, match="backups of the landscape other"):
        await kept.keeper.step()


async def emptied(kept: Kept) -> None:
    """Empty the store, and open it as a relay does that has found nothing on the bus."""
    assert kept.kit.connection is not None
    await kept.kit.connection.command("FLUSHALL")
    await kept.kit.open()


async def test_of_a_store_that_was_emptied_no_full_backup_is_made_whatever_is_new_in_it(kept: Kept) -> None:
    await kept.keeper.step()
    await kept.kit.created(a_shoot())
    kept.clock.advance(300)
    await kept.keeper.step()
    good = await kept.destination.list()
    await emptied(kept)
    kept.clock.advance(300)
    with pytest.raises(Conflict, match="Stop the services, empty Redis and run gardenbus backup restore"):
        await kept.keeper.step()
    await kept.kit.created(a_seed())
    await kept.kit.created(a_shoot())
    for keeper in (kept.keeper, kept.another()):
        kept.clock.advance(24 * HOUR)
        with pytest.raises(Conflict, match="none of the objects of the latest backups in"):
            await keeper.step()
    assert await kept.destination.list() == good


async def test_while_an_emptied_store_is_closed_nobody_calls_it_another_one(kept: Kept) -> None:
    await kept.keeper.step()
    assert kept.kit.connection is not None
    await kept.kit.connection.command("FLUSHALL")
    kept.clock.advance(24 * HOUR)
    with pytest.raises(Unavailable):
        await kept.keeper.step()


async def test_a_store_whose_objects_were_all_removed_is_backed_up_after_a_restart(kept: Kept) -> None:
    await kept.keeper.step()
    (seed,) = (await kept.kit.store.list_page("seed")).objects
    assert await kept.kit.store.delete(seed) is None
    await kept.kit.close_for_writes()
    await kept.kit.open()
    kept.clock.advance(300)
    await kept.keeper.step()
    assert await kept.names() == ["full", "full"]
    await emptied(kept)
    await kept.kit.created(a_seed())
    kept.clock.advance(300)
    await kept.keeper.step()
    assert await kept.names() == ["full", "full", "full"]
