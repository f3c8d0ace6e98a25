"""Backups of a landscape under load, and both disks gone: restored, nothing torn down, and what was lost is named."""

import asyncio
import itertools
import json
import os
import shutil
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import nats.errors
import pytest
import yaml

from gardenbus.common.backups.catalog import Backup, backup_of
from gardenbus.common.ports.clock import timestamp
from tests.support.builders import merged
from tests.support.commands import gardenbus_program
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.landscape import Ended, Landscape, RequestRejected, attached_to, ended
from tests.support.servers import Server, start_nats, start_redis

SESSION = Path(__file__).parents[2] / "examples" / "session"
SHOOTS_UNDER_LOAD = 40
Document = dict[str, Any]


class Site(NamedTuple):
    """Both servers, the state directory of a landscape on them, and the place of its backups."""

    nats: Server
    redis: Server
    directory: Path
    backups: Path

    async def call(self, *arguments: str, within: float = HANG_SECONDS) -> Ended:
        """Run `gardenbus` to its end."""
        process = await asyncio.create_subprocess_exec(
            str(gardenbus_program()),
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "NO_COLOR": "1"},
        )
        return await ended(process, within=within)

    async def backup(self, verb: str, *arguments: str) -> Ended:
        """Run `gardenbus backup`, on the servers themselves where it needs them."""
        servers = ("--nats-url", self.nats.url, "--redis-url", self.redis.url) if verb in ("create", "restore") else ()
        return await self.call("backup", verb, "-d", str(self.backups), *servers, *arguments)

    async def up(self, *arguments: str) -> None:
        """Start the services."""
        at = ("--dir", str(self.directory), "--nats-url", self.nats.url, "--redis-url", self.redis.url)
        started = await self.call("up", *at, "--detach", *arguments)
        assert started.code == 0, started

    async def down(self) -> None:
        """Stop the services."""
        await self.call("down", "--dir", str(self.directory))

    def lose_both_disks(self) -> None:
        """Kill both servers, and start them with nothing."""
        self.take_both_disks()
        self.start_with_nothing()

    def take_both_disks(self) -> None:
        """Kill both servers, and remove what they have."""
        for server, folder in ((self.nats, "jetstream"), (self.redis, "")):
            server.kill()
            for entry in (server.directory / folder).iterdir():
                if entry.name not in ("nats.conf", "server.log"):
                    shutil.rmtree(entry) if entry.is_dir() else entry.unlink()

    def start_with_nothing(self) -> None:
        """Start both servers after their disks are gone."""
        self.nats.start()
        self.redis.start()

    def latest_delta(self) -> Backup | None:
        """The latest backup, unless it is a full one."""
        found = [backup for file in self.backups.glob("*") if (backup := backup_of(file.name))]
        latest = max(found, key=lambda each: each.taken_at, default=None)
        return None if latest is None or latest.is_full else latest


@pytest.fixture
def kept_by_the_relay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings by which the relay makes backups where the site keeps them."""
    monkeypatch.setenv("GARDENBUS_BACKUP_DESTINATION", str(tmp_path / "backups"))
    monkeypatch.setenv("GARDENBUS_BACKUP_DELTA_SECONDS", "1")


@asynccontextmanager
async def a_site(directory: Path, *seeds: str) -> AsyncGenerator[Site]:
    """A landscape with these seeds, on servers of its own."""
    site = Site(
        start_nats(directory / "nats"), start_redis(directory / "redis"), directory / "state", directory / "backups"
    )
    try:
        gardenlet = yaml.safe_load((SESSION / "gardenlet.yaml").read_text())
        gardenlet["resources"]["capacity"]["shoots"] = 100
        named = [merged(gardenlet, {"seedConfig": {"metadata": {"name": name}}}) for name in seeds]
        (directory / "gardenlets.yaml").write_text(yaml.safe_dump_all(named))
        await site.up("-f", str(SESSION / "landscape.yaml"), "-f", str(directory / "gardenlets.yaml"))
        yield site
    finally:
        await site.down()
        site.nats.stop()
        site.redis.stop()


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    """A landscape with one seed, on servers of its own."""
    async with a_site(tmp_path, "earth-1") as site:
        yield site


def a_shoot(name: str) -> Document:
    document: Document = yaml.safe_load((SESSION / "shoot.yaml").read_text())
    return {**document, "metadata": {**document["metadata"], "name": name}}


async def shoots_of(landscape: Landscape) -> dict[str, Document]:
    return {each["metadata"]["name"]: each for each in await landscape.list("shoot")}


async def until_built(landscape: Landscape, names: set[str]) -> dict[str, Document]:
    """Wait until shoots are built; all shoots."""

    async def built() -> dict[str, Document]:
        shoots = await shoots_of(landscape)
        assert names <= shoots.keys()
        states = {name: shoots[name].get("status", {}).get("lastOperation", {}) for name in names}
        assert all(each.get("state") == "Succeeded" for each in states.values()), states
        return shoots

    return await eventually(built, every=0.5)


async def until_changed(landscape: Landscape, name: str, spec: Document) -> None:
    """Wait until the gardenlet has carried out a shoot with these fields."""

    async def observed() -> None:
        shoot = (await shoots_of(landscape))[name]
        assert shoot["spec"].items() >= spec.items()
        assert shoot["status"]["observedGeneration"] == shoot["metadata"]["generation"]

    await eventually(observed, every=0.5)


def control_planes(site: Site, seed: str = "earth-1") -> dict[str, tuple[str, str]]:
    """What runs on a seed: the uid of each shoot, and since when its API server has been available."""
    files = (site.directory / "gardenlets" / seed / "shoots" / "garden-session").glob("*.json")
    records = {file.stem: json.loads(file.read_text()) for file in files}
    return {
        name: (record["uid"], each["lastTransitionTime"])
        for name, record in records.items()
        for each in record["status"]["conditions"]
        if each["type"] == "APIServerAvailable"
    }


class Acknowledged(NamedTuple):
    """A change that counts."""

    name: str
    round: int
    at: datetime


class Load:
    """Somebody who applies shoots one after the other, each again and again with another label."""

    def __init__(self, landscape: Landscape) -> None:
        self.acknowledged: list[Acknowledged] = []
        self._landscape = landscape
        self._is_over = False
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        for number in itertools.count():
            name = f"load-{number % SHOOTS_UNDER_LOAD:02}"
            labels = {"round": str(number)}
            await self._landscape.query("apply", merged(a_shoot(name), {"metadata": {"labels": labels}}))
            self.acknowledged.append(Acknowledged(name, number, datetime.now(UTC)))
            if self._is_over:
                return

    async def until(self, count: int) -> None:
        """Wait for so many acknowledgements."""

        async def acknowledged() -> None:
            assert len(self.acknowledged) >= count

        await eventually(acknowledged)

    @property
    def names(self) -> set[str]:
        """Names of all shoots of which anything is acknowledged."""
        return {each.name for each in self.acknowledged}

    async def end(self) -> None:
        """Stop after the request in flight."""
        self._is_over = True
        await self._task

    async def is_interrupted(self) -> None:
        """Wait until a request fails."""
        with pytest.raises((nats.errors.Error, OSError, RequestRejected)):
            await asyncio.wait_for(self._task, HANG_SECONDS)


async def until_unknown(landscape: Landscape, names: set[str]) -> None:
    """Wait until these shoots, and no other, are reported as unknown."""

    async def reported() -> None:
        assert {each["name"] for each in (await landscape.query("unknown"))["items"]} == names

    await eventually(reported, every=1)


async def losses(site: Site) -> list[str]:
    """What `gardenbus doctor` finds of it."""
    found = json.loads((await site.call("doctor", "--dir", str(site.directory), "-o", "json")).stdout)["findings"]
    return [each["found"] for each in found if each["check"] in ("lost", "unknown")]


async def until_reverted(site: Site, shoot: str) -> None:
    """Wait until `gardenbus doctor` names this shoot, and no other, as one that a restore has reverted."""

    async def reported() -> None:
        (text,) = (text for text in await losses(site) if "earlier generation" in text)
        assert text.endswith(f": shoot {shoot}")

    await eventually(reported, every=1)


@pytest.mark.long
async def test_both_disks_gone_under_load(site: Site) -> None:
    async with attached_to(site.nats.url, site.directory) as landscape:
        early = {f"early-{number}" for number in range(5)}
        await landscape.publish("garden.apply", [a_shoot(name) for name in sorted(early)])
        await until_built(landscape, early)
        load = Load(landscape)
        await load.until(3)
        assert (await site.backup("create")).code == 0
        saved = load.names
        assert (await site.backup("create", "--delta")).code == 0
        await load.end()
        lost = {"after-1", "after-2"}
        purpose = {"purpose": "development"}
        changed = merged(a_shoot("early-0"), {"spec": purpose})
        await landscape.publish("garden.apply", [changed, *(a_shoot(name) for name in sorted(lost))])
        await until_changed(landscape, "early-0", purpose)
        before = await until_built(landscape, {*early, *load.names, *lost})
    listed = json.loads((await site.backup("ls", "-o", "json")).stdout)["items"]
    assert [(each["kind"], each["usable"]) for each in listed] == [("full", True), ("delta", True)]
    checked = await site.backup("verify")
    assert checked.code == 0, checked
    rejected = await site.backup("restore")
    assert (rejected.code, "apiserver" in rejected.stderr) == (1, True), rejected

    running = control_planes(site)
    assert running.keys() == before.keys()
    site.lose_both_disks()
    await site.down()
    site.lose_both_disks()  # services that still ran may have written into the empty ones
    restored = await site.backup("restore")
    assert restored.code == 0, restored
    assert "what was written after that is gone" in restored.stdout
    await site.up()

    async with attached_to(site.nats.url, site.directory) as landscape:
        after = await shoots_of(landscape)
        assert {*early, *saved} <= after.keys()
        gone = before.keys() - after.keys()
        assert lost <= gone
        assert {name: each["metadata"]["uid"] for name, each in after.items()} == {
            name: before[name]["metadata"]["uid"] for name in after
        }

        await until_unknown(landscape, gone)
        texts = await losses(site)
        assert any("restored from a backup of" in text for text in texts), texts
        assert any("garden-session/after-1" in text for text in texts), texts
        await until_reverted(site, "garden-session/early-0")
        adopted = await site.call(
            "adopt", "shoot", "garden-session/after-1", "--seed", "earth-1", "--dir", str(site.directory)
        )
        assert adopted.code == 0, adopted
        await landscape.publish("garden.apply", [a_shoot("new")])
        await until_built(landscape, {*after, "after-1", "new"})
    still = control_planes(site)
    assert {name: still.get(name) for name in running} == running


async def until_later_delta(site: Site, than: Backup | None) -> Backup:
    """Wait for a delta that the relay makes after this one."""

    async def later() -> Backup:
        latest = site.latest_delta()
        assert latest is not None
        assert latest != than
        return latest

    return await eventually(later)


async def with_a_shoot_after_the_last_delta(site: Site, landscape: Landscape, load: Load) -> tuple[str, Backup]:
    """Wait until a shoot is built of which no backup knows; its name, and the latest backup."""
    delta = site.latest_delta()
    for number in range(10):
        delta = await until_later_delta(site, delta)
        await landscape.query("apply", a_shoot(f"after-{number}"))
        await until_built(landscape, {f"after-{number}"})
        await load.until(len(load.acknowledged) + 3)
        if site.latest_delta() == delta:
            return f"after-{number}", delta
    raise AssertionError("there was always another delta before the shoot was built")


@pytest.mark.long
@pytest.mark.usefixtures("kept_by_the_relay", "site")
async def test_both_disks_gone_while_the_relay_backs_up_and_the_load_goes_on(site: Site) -> None:
    async with attached_to(site.nats.url, site.directory) as landscape:
        load = Load(landscape)
        await load.until(SHOOTS_UNDER_LOAD)
        await until_built(landscape, load.names)
        lost, delta = await with_a_shoot_after_the_last_delta(site, landscape, load)
        before, running = await shoots_of(landscape), control_planes(site)
        await asyncio.to_thread(site.take_both_disks)
        await load.is_interrupted()
    await site.down()
    last = site.latest_delta()
    assert last is not None
    saved = {each.name: each.round for each in load.acknowledged if each.at < last.taken_at}
    assert len(saved) == SHOOTS_UNDER_LOAD
    assert load.acknowledged[-1].at > last.taken_at

    site.start_with_nothing()
    restored = await site.backup("restore")
    assert restored.code == 0, restored
    assert f"The store is as it was at {timestamp(last.taken_at)}: what was written after" in restored.stdout
    await site.up()

    async with attached_to(site.nats.url, site.directory) as landscape:
        after = await shoots_of(landscape)
        stored = {name: int(each["metadata"].get("labels", {}).get("round", -1)) for name, each in after.items()}
        assert {name: at for name, at in saved.items() if stored.get(name, -1) < at} == {}
        gone = running.keys() - after.keys()
        assert lost in gone or last != delta, "a later delta may have it"
        assert {name: each["metadata"]["uid"] for name, each in after.items()} == {
            name: before[name]["metadata"]["uid"] for name in after
        }
        await until_unknown(landscape, gone)
        texts = await losses(site)
        assert any(f"restored from a backup of {timestamp(last.taken_at)}:" in text for text in texts), texts
        await landscape.query("apply", a_shoot("new"))
        await until_built(landscape, {"new"})
    still = control_planes(site)
    assert {name: still.get(name) for name in running} == running


@pytest.mark.usefixtures("kept_by_the_relay", "site")
async def test_the_relay_backs_up_what_is_written_by_itself(site: Site) -> None:
    async def listed() -> list[Document]:
        items = json.loads((await site.backup("ls", "-o", "json")).stdout)["items"]
        assert items
        return items

    await eventually(listed, every=0.5)
    async with attached_to(site.nats.url, site.directory) as landscape:
        await landscape.query("apply", a_shoot("apollo"))
        version = int((await landscape.query("get.shoot.garden-session.apollo"))["metadata"]["resourceVersion"])

    async def saved() -> None:
        items = await listed()
        assert items[0]["kind"] == "full"
        assert all(each["usable"] for each in items), items
        assert items[-1]["kind"] == "delta"
        assert items[-1]["version"] >= version

    await eventually(saved, every=0.5)
    checked = await site.backup("verify", "--all")
    assert checked.code == 0, checked
