"""A store that is emptied while the relay lives: no backup of the emptiness takes the place of a good one."""

import itertools
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
import redis.asyncio

from gardenbus.common.backups.catalog import Backup, backup_of
from tests.e2e.test_backups import Site, a_shoot, kept_by_the_relay, shoots_of, site, until_built
from tests.support.builders import merged
from tests.support.eventually import eventually
from tests.support.landscape import Landscape, attached_to

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("kept_by_the_relay", "site")]
__all__ = ["kept_by_the_relay", "site"]

SHOOTS = frozenset({"apollo", "sisyphus"})


def backups_of(site: Site) -> list[Backup]:
    """All backups that are there, in the order of time."""
    found = [backup for file in site.backups.glob("*") if (backup := backup_of(file.name))]
    return sorted(found, key=lambda each: (each.taken_at, each.version))


async def until_backed_up(site: Site, landscape: Landscape) -> None:
    """Change a shoot until there is a backup of later than now."""
    now, numbers = datetime.now(UTC), itertools.count()

    async def backed_up() -> None:
        labels = {"metadata": {"labels": {"round": str(next(numbers))}}}
        await landscape.query("apply", merged(a_shoot("apollo"), labels))
        assert (found := backups_of(site))
        assert found[-1].taken_at > now

    await eventually(backed_up, every=1)


async def built_and_backed_up(site: Site) -> dict[str, str]:
    """Shoots by their uids, once the latest backup has them."""
    async with attached_to(site.nats.url, site.directory) as landscape:
        await landscape.publish("garden.apply", [a_shoot(name) for name in sorted(SHOOTS)])
        built = await until_built(landscape, set(SHOOTS))
        await until_backed_up(site, landscape)
    return {name: each["metadata"]["uid"] for name, each in built.items()}


def relay_log(site: Site) -> str:
    return "".join(file.read_text() for file in Path(site.directory).glob("logs/relay*.log"))


async def test_of_a_store_that_was_emptied_with_the_bus_no_full_backup_is_made_and_the_good_one_is_restored(
    site: Site,
) -> None:
    uids = await built_and_backed_up(site)
    good = backups_of(site)
    site.lose_both_disks()

    async def has_failed() -> None:
        assert "backup.failed" in relay_log(site)
        assert "gardenbus backup restore" in relay_log(site)

    async with attached_to(site.nats.url, site.directory) as landscape:

        async def is_used_again() -> None:
            assert len(await landscape.list("seed")) == 1
            assert await shoots_of(landscape) == {}

        await eventually(is_used_again, every=0.5)
        await eventually(has_failed, every=0.5)
    assert backups_of(site) == good

    await site.down()
    site.lose_both_disks()
    listed = json.loads((await site.backup("ls", "-o", "json")).stdout)["items"]
    assert listed[-1]["name"] == good[-1].name
    restored = await site.backup("restore")
    assert restored.code == 0, restored
    assert good[-1].name in restored.stdout
    await site.up()
    async with attached_to(site.nats.url, site.directory) as landscape:
        after = await until_built(landscape, set(SHOOTS))
        assert {name: each["metadata"]["uid"] for name, each in after.items()} == uids
        await until_backed_up(site, landscape)


async def test_of_a_store_that_was_emptied_alone_the_next_full_backup_has_what_the_bus_put_back(site: Site) -> None:
    uids = await built_and_backed_up(site)
    before = backups_of(site)
    async with redis.asyncio.Redis(port=site.redis.port) as client:
        await client.flushall()  # pyright: ignore[reportUnknownMemberType]

    async def is_backed_up_anew() -> None:
        assert any(each.is_full for each in backups_of(site)[len(before) :])

    await eventually(is_backed_up_anew, every=0.5)
    await site.down()
    site.lose_both_disks()
    restored = await site.backup("restore")
    assert restored.code == 0, restored
    await site.up()
    async with attached_to(site.nats.url, site.directory) as landscape:
        after = await until_built(landscape, set(SHOOTS))
        assert {name: each["metadata"]["uid"] for name, each in after.items()} == uids
