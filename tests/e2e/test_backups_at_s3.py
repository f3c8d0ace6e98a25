"""A landscape is backed up at S3 and restored from there, by its own relay and by the command line (moto's server)."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.e2e.test_backups import Document, Site, a_shoot, a_site, control_planes, losses, shoots_of, until_built
from tests.support.eventually import eventually
from tests.support.landscape import Landscape, attached_to
from tests.support.s3_server import KEYS, make_bucket, start_s3
from tests.support.servers import Server

SEEDS = ("earth-1", "earth-2")


@pytest.fixture
def s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """An S3 server with a bucket, where the settings have relays and commands keep backups."""
    server = start_s3(tmp_path / "s3")
    make_bucket(server, "backups")
    kept = {"GARDENBUS_BACKUP_DESTINATION": "s3://backups/landscape", "GARDENBUS_BACKUP_DELTA_SECONDS": "1"}
    for name, value in {**KEYS, "AWS_ENDPOINT_URL": server.url, **kept}.items():
        monkeypatch.setenv(name, value)
    yield server
    server.resume()
    server.stop()


@pytest.fixture
async def site(tmp_path: Path, s3: Server) -> AsyncIterator[Site]:
    """A landscape with two seeds whose backups are at S3."""
    assert s3.process is not None
    async with a_site(tmp_path, *SEEDS) as site:
        yield site


async def backup(site: Site, verb: str, *arguments: str) -> str:
    """Run `gardenbus backup` at the destination of the settings; what it prints."""
    servers = ("--nats-url", site.nats.url, "--redis-url", site.redis.url) if verb in ("create", "restore") else ()
    done = await site.call("backup", verb, *servers, *arguments)
    assert done.code == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


async def listed(site: Site) -> list[Document]:
    """What `gardenbus backup ls` shows."""
    return json.loads(await backup(site, "ls", "-o", "json"))["items"]


async def until_backed_up(site: Site, landscape: Landscape) -> list[Document]:
    """Wait until the latest backup has all that the store has; all backups."""
    versions = [int(each["metadata"]["resourceVersion"]) for each in (await shoots_of(landscape)).values()]

    async def saved() -> list[Document]:
        found = await listed(site)
        assert found
        assert found[-1]["version"] >= max(versions)
        return found

    return await eventually(saved, every=1)


async def placements(landscape: Landscape) -> dict[str, tuple[str, str]]:
    """The uid of each shoot, and its seed."""
    return {
        name: (each["metadata"]["uid"], each["spec"]["seedName"]) for name, each in (await shoots_of(landscape)).items()
    }


async def placed(landscape: Landscape, *names: str) -> None:
    """Order shoots, and wait until they are built."""
    await landscape.publish("garden.apply", [a_shoot(name) for name in names])
    await until_built(landscape, set(names))


@pytest.mark.long
async def test_both_disks_gone_and_all_comes_back_from_s3(site: Site, s3: Server) -> None:
    async with attached_to(site.nats.url, site.directory) as landscape:
        await placed(landscape, *(f"early-{number}" for number in range(6)))
        await until_backed_up(site, landscape)
        await backup(site, "create")
        await placed(landscape, *(f"delta-{number}" for number in range(3)))
        await backup(site, "create", "--delta")
        s3.pause()
        await placed(landscape, *(f"away-{number}" for number in range(3)))
        s3.resume()
        found = await until_backed_up(site, landscape)
        assert {each["kind"] for each in found} == {"full", "delta"}
        assert [each["name"] for each in found if not each["usable"]] == []
        before, running = await placements(landscape), [control_planes(site, seed) for seed in SEEDS]
    assert all(running), "each seed has some"
    assert {name for each in running for name in each} == before.keys()

    await site.down()
    await asyncio.to_thread(site.lose_both_disks)
    assert await listed(site) == found
    await backup(site, "verify", "--all")
    assert f"up to {found[-1]['name']}" in await backup(site, "restore")
    await site.up()

    async with attached_to(site.nats.url, site.directory) as landscape:
        assert await placements(landscape) == before
        await placed(landscape, "new")
        await until_built(landscape, set(before))
        assert (await landscape.query("unknown"))["items"] == []
        assert any("restored from a backup of" in text for text in await losses(site))
        assert {name: seed for name, seed in (await placements(landscape)).items() if name != "new"} == before
        await until_backed_up(site, landscape)
    for seed, ran in zip(SEEDS, running, strict=True):
        still = control_planes(site, seed)
        assert {name: still.get(name) for name in ran} == ran
