"""Restores under load, again and again: nothing that waited in the backup, and runs, is bound anywhere else."""

import asyncio
import contextlib
import os
import signal
from pathlib import Path

import pytest
import redis

from tests.e2e.test_backups import Load, Site, a_shoot, a_site, control_planes, until_built, until_unknown
from tests.support.builders import merged
from tests.support.commands import gardenbus_program
from tests.support.eventually import eventually
from tests.support.landscape import Landscape, RequestRejected, attached_to

ROUNDS = 8
KILLED_IN = 3
"""Round in which the restore is killed half way, and run again."""

SEEDS = ("earth-1", "earth-2")


def running(site: Site) -> dict[str, dict[str, tuple[str, str]]]:
    """What runs on each seed: uid, and since when, of each shoot."""
    return {seed: control_planes(site, seed) for seed in SEEDS}


async def bind(landscape: Landscape, name: str, seed: str) -> None:
    await landscape.query("bind", {"namespace": "garden-session", "name": name, "seed": seed})


async def restore_killed_half_way(site: Site) -> None:
    """Kill a restore once it has closed the store, and before it has opened it again."""
    client = redis.Redis.from_url(site.redis.url)  # pyright: ignore[reportUnknownMemberType]
    for _ in range(20):
        process = await asyncio.create_subprocess_exec(
            *(str(gardenbus_program()), "backup", "restore", "-d", str(site.backups)),
            *("--nats-url", site.nats.url, "--redis-url", site.redis.url),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        while process.returncode is None and not client.exists("garden:restoring"):
            await asyncio.sleep(0)
        if process.returncode is None:
            os.kill(process.pid, signal.SIGKILL)
        await process.wait()
        if client.exists("garden:restoring"):
            client.delete("garden:leader")  # it would end by itself, seconds later
            return
        site.lose_both_disks()
    raise AssertionError("each restore was over before it could be killed")


async def until_recovered(landscape: Landscape, waiting: str) -> None:
    """Try to bind a shoot elsewhere until the recovery is over; it must never succeed."""

    async def over() -> None:
        with contextlib.suppress(RequestRejected):
            await bind(landscape, waiting, SEEDS[1])
            raise AssertionError(f"{waiting} was bound to {SEEDS[1]}, and runs on {SEEDS[0]}")
        assert (await landscape.query("recovery"))["recovery"] is None

    await eventually(over, within=240, every=0.2)
    with pytest.raises(RequestRejected, match="runs it"):
        await bind(landscape, waiting, SEEDS[1])


async def one_round(site: Site, number: int) -> None:
    waiting = f"waiting-{number}"
    async with attached_to(site.nats.url, site.directory) as landscape:
        shoot = merged(a_shoot(waiting), {"spec": {"schedulerName": "mine"}})
        await landscape.query("apply", shoot)
        load = Load(landscape)
        await load.until(5)
        saved = await site.backup("create")
        assert saved.code == 0, saved
        await bind(landscape, waiting, SEEDS[0])
        await load.end()
        await until_built(landscape, {waiting, *load.names})
    await site.down()
    before = running(site)
    assert waiting in before[SEEDS[0]]
    site.lose_both_disks()
    if number == KILLED_IN:
        await restore_killed_half_way(site)
    restored = await site.backup("restore")
    assert restored.code == 0, restored
    await site.up()
    async with attached_to(site.nats.url, site.directory) as landscape:
        await until_recovered(landscape, waiting)
        unknown = {each["name"]: each["seed"] for each in (await landscape.query("unknown"))["items"]}
        assert unknown[waiting] == SEEDS[0]
        for name, seed in unknown.items():
            await landscape.query(f"adopt.shoot.garden-session.{name}", {"seed": seed})
        await until_unknown(landscape, set())
        await until_built(landscape, {waiting})
    after = running(site)
    assert {seed: {name: each.get(name) for name in before[seed]} for seed, each in after.items()} == before
    twice = after[SEEDS[0]].keys() & after[SEEDS[1]].keys()
    assert not twice, f"{twice} run on both seeds"


@pytest.mark.long
@pytest.mark.timeout(3600)
async def test_eight_restores_under_load_of_which_one_is_killed_run_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GARDENBUS_RECOVERY_SECONDS", "5")
    async with a_site(tmp_path, *SEEDS) as site:
        for number in range(int(os.environ.get("RESTORES", str(ROUNDS)))):
            await one_round(site, number)
