"""Control planes move from seed to seed, with real processes: one runs each of them at any time, whoever dies."""

import asyncio
import contextlib
import itertools
import json
import signal
import subprocess
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import nats.errors
import pytest
import yaml
from nats.aio.msg import Msg

from tests.support.builders import a_cloudprofile, a_project, a_shoot
from tests.support.commands import gardenbus_program
from tests.support.control_planes import ControlPlanes, GardenletProcesses
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.landscape import Landscape, RequestRejected, a_landscape, attached, ended

pytestmark = pytest.mark.slow

Document = dict[str, Any]

_numbers = itertools.count(1)
KILLED = ("gardenlet", "apiserver", "relay", "lifecycle", "nats", "redis")
MOST_ROUNDS = 600
BIND_SECONDS = 10.0
"""Time after which a bind is taken for lost with the apiserver that had it."""
KILLING_SECONDS = 12
MOVED_UNDER_FIRE = 20
MONITOR_PERIOD = "6s"
SECRET: Document = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "backup", "namespace": "garden"}}
BACKUP: Document = {
    "provider": "aws",
    "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "name": "backup", "namespace": "garden"},
}

STANDARD = [
    a_project("garden", "garden"),
    a_cloudprofile(),
    {**SECRET, "stringData": {"accessKeyID": "example"}},
    {
        "apiVersion": "controllermanager.config.gardener.cloud/v1alpha1",
        "kind": "ControllerManagerConfiguration",
        "controllers": {"seed": {"monitorPeriod": MONITOR_PERIOD, "syncPeriod": "1s"}},
    },
]


def a_seed_of(name: str, *, shoots: int = 30, steps: dict[str, float] | None = None) -> Document:
    """The configuration of a gardenlet whose seed stands in the region of its first part."""
    return {
        "apiVersion": "gardenlet.config.gardener.cloud/v1alpha1",
        "kind": "GardenletConfiguration",
        "resources": {"capacity": {"shoots": shoots}},
        "controllers": {"seed": {"leaseResyncSeconds": 1}},
        "backend": {"type": "local", "stepSeconds": 0.02, "stepSecondsByName": steps or {}},
        "seedConfig": {
            "metadata": {"name": name},
            "spec": {
                "provider": {"type": "aws", "region": name.partition("-")[0], "zones": ["a"]},
                "networks": {"nodes": "10.240.0.0/16", "pods": "10.241.0.0/16", "services": "10.242.0.0/16"},
                "backup": BACKUP,
            },
        },
    }


class Place:
    """A region of its own in a landscape, with a project of the same name: what a test is about."""

    def __init__(self, landscape: Landscape, gardenlets: GardenletProcesses, region: str) -> None:
        self.landscape = landscape
        self.gardenlets = gardenlets
        self.region = region
        self.namespace = f"garden-{region}"
        self.planes = ControlPlanes.of(landscape)

    def path(self, name: str) -> str:
        return f"{self.namespace}/{name}"

    def shoots(self, names: Sequence[str]) -> list[Document]:
        return [a_shoot(name, self.namespace, spec={"region": self.region}) for name in names]

    async def order(self, *names: str) -> None:
        for shoot in self.shoots(names):
            await self.landscape.query("apply", shoot)

    async def shoot(self, name: str) -> Document:
        return await self.landscape.query(f"get.shoot.{self.namespace}.{name}")

    async def bind(self, name: str, seed: str, **more: Any) -> Document:
        return await self.landscape.query("bind", {"namespace": self.namespace, "name": name, "seed": seed, **more})

    async def until_ready(self, *seeds: str) -> None:
        async def ready() -> None:
            for seed in seeds:
                found = await self.landscape.query(f"get.seed._.{seed}")
                assert condition(found, "GardenletReady")["status"] == "True", found.get("status")
                assert condition(found, "SeedSystemComponentsHealthy")["status"] == "True", found.get("status")

        await eventually(ready)

    async def until_on(self, seed: str, *names: str) -> None:
        """Wait until shoots are healthy on a seed, and nothing of them is kept anywhere else."""

        async def there() -> None:
            files = self.planes.files()
            for name in names:
                shoot = await self.shoot(name)
                assert shoot["spec"].get("seedName") == seed, shoot.get("status")
                assert is_healthy(shoot), shoot.get("status")
                assert files.get(self.path(name)) == {seed}, files
                assert self.planes.runs(seed, self.path(name))

        await eventually(there, every=0.05)

    async def used(self) -> dict[str, int]:
        """How many shoots of this place stand on each seed."""
        shoots = await self.landscape.list(f"shoot.{self.namespace}")
        return dict(Counter(shoot["status"]["seedName"] for shoot in shoots))


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory of a landscape that runs, without gardenlets; for tests that kill nothing but their own."""
    directory = tmp_path_factory.mktemp("migration") / "state"
    file = directory.with_name("landscape.yaml")
    file.write_text(yaml.safe_dump_all(STANDARD))
    up = [str(gardenbus_program()), "up", "--dir", str(directory), "--detach", "-f", str(file)]
    subprocess.run(up, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=HANG_SECONDS)
    yield directory
    subprocess.run([str(gardenbus_program()), "down", "--dir", str(directory)], check=True, timeout=HANG_SECONDS)


@pytest.fixture
async def place(running: Path, tmp_path: Path) -> AsyncIterator[Place]:
    """A place of the test's own; in the end its gardenlets are killed, and its seeds hidden from other tests."""
    region = f"region{next(_numbers)}"
    async with attached(running) as landscape:
        gardenlets = GardenletProcesses(landscape, tmp_path)
        await landscape.query("apply", a_project(region))
        try:
            yield Place(landscape, gardenlets, region)
        finally:
            await gardenlets.kill_all()
            for seed in await landscape.list("seed"):
                if seed["spec"]["provider"]["region"] == region:
                    hidden = {"spec": {"settings": {"scheduling": {"visible": False}}}}
                    await landscape.query(f"patch.seed._.{seed['metadata']['name']}", hidden)


def condition(document: Document, kind: str, field: str = "conditions") -> Document:
    """One condition; one that is not there has no status."""
    found: list[Document] = document.get("status", {}).get(field) or []
    return next((each for each in found if each["type"] == kind), {"status": None})


def is_healthy(shoot: Document) -> bool:
    """Whether its last operation succeeded on the seed where it shall be, and everything about it is well."""
    status = shoot.get("status", {})
    return (
        status.get("seedName") == shoot["spec"].get("seedName")
        and status.get("lastOperation", {}).get("state") == "Succeeded"
        and status["lastOperation"]["type"] != "Migrate"
        and status.get("observedGeneration") == shoot["metadata"]["generation"]
        and {each["status"] for each in status.get("conditions", [])} == {"True"}
        and shoot["metadata"]["labels"].get("shoot.gardener.cloud/status") == "healthy"
    )


async def in_full(landscape: Landscape, seed: str) -> Document:
    return await landscape.query(f"get.seed._.{seed}")


async def test_a_moving_shoot_counts_on_both_seeds_and_ends_as_one_on_the_destination(place: Place) -> None:
    one, two = f"{place.region}-one", f"{place.region}-two"
    slow = {"stop-control-plane": 2.0}
    await place.gardenlets.start("one", a_seed_of(one, shoots=1, steps=slow))
    await place.order("apollo")
    await place.until_on(one, "apollo")
    await place.gardenlets.start("two", a_seed_of(two, shoots=1))
    await place.until_ready(one, two)
    before = place.planes.identities(one, place.path("apollo"))

    async with place.planes.watched():
        await place.bind("apollo", two)
        await place.order("artemis")
        for full in (one, two):
            with pytest.raises(RequestRejected, match="maximum number"):
                await place.bind("artemis", full)
        apollo = await place.shoot("apollo")
        assert (apollo["spec"]["seedName"], apollo["status"]["seedName"]) == (two, one), "moved before it was looked at"
        await place.until_on(two, "apollo")
        await place.until_on(one, "artemis")  # the scheduler was waiting for the place that has become free

    assert place.planes.at_once == []
    assert place.planes.identities(two, place.path("apollo")) == before

    async def no_constraint() -> None:
        assert condition(await place.shoot("apollo"), "ReadyForMigration", "constraints")["status"] is None

    await eventually(no_constraint)


@contextlib.asynccontextmanager
async def killing(landscape: Landscape) -> AsyncGenerator[None]:
    """Kill one after the other, each second once requests are handled, for as long as the block lasts."""

    async def kill_in_turn() -> None:
        for name in itertools.cycle(KILLED):
            await asyncio.sleep(1)
            await landscape.responds()
            landscape.kill(name)

    killer = asyncio.create_task(kill_in_turn())
    try:
        yield
    finally:
        killer.cancel()


async def all_shoots(landscape: Landscape) -> list[Document]:
    """Every shoot; a landscape that does not respond in time is an AssertionError."""
    try:
        return await asyncio.wait_for(landscape.list("shoot"), HANG_SECONDS)
    except (nats.errors.Error, OSError, TimeoutError) as error:
        raise AssertionError(repr(error)) from error


async def move_to_and_fro(landscape: Landscape, seeds: Sequence[str]) -> Counter[str]:
    """Bind each shoot to the other seed whenever it is healthy, for a while and until each was; answers how often."""
    moved: Counter[str] = Counter()
    there, back = seeds
    for round_ in range(MOST_ROUNDS):
        if round_ >= KILLING_SECONDS * 2 and len(moved) == MOVED_UNDER_FIRE:
            break
        await asyncio.sleep(0.5)
        with contextlib.suppress(AssertionError, nats.errors.Error, OSError, TimeoutError):
            for shoot in filter(is_healthy, await all_shoots(landscape)):
                metadata = shoot["metadata"]
                target = back if shoot["spec"]["seedName"] == there else there
                wanted = {key: metadata[key] for key in ("namespace", "name", "resourceVersion")} | {"seed": target}
                with contextlib.suppress(RequestRejected):
                    await landscape.query("bind", wanted, timeout=BIND_SECONDS)
                    moved[metadata["name"]] += 1
    return moved


@pytest.mark.long
async def test_whatever_is_killed_each_control_plane_is_never_two_and_ends_as_one(tmp_path: Path) -> None:
    seeds = ("fire-one", "fire-two")
    names = [f"s{number:02}" for number in range(MOVED_UNDER_FIRE)]
    shoots = [a_shoot(name, "garden-fire", spec={"region": "fire"}) for name in names]
    file = tmp_path / "landscape.yaml"
    file.write_text(yaml.safe_dump_all([*STANDARD, a_project("fire"), *map(a_seed_of, seeds), *shoots]))
    async with a_landscape(tmp_path / "state", "-f", str(file)) as landscape:
        planes = ControlPlanes.of(landscape)

        async def all_healthy() -> dict[str, str]:
            found = {shoot["metadata"]["name"]: shoot for shoot in await all_shoots(landscape)}
            assert sorted(found) == names
            ill = {name: shoot.get("status") for name, shoot in found.items() if not is_healthy(shoot)}
            assert not ill, f"{len(ill)} are not healthy: {json.dumps(ill)}"
            where = {f"garden-fire/{name}": shoot["spec"]["seedName"] for name, shoot in found.items()}
            assert planes.files() == {path: {seed} for path, seed in where.items()}
            assert all(planes.runs(seed, path) for path, seed in where.items())
            return where

        where = await eventually(all_healthy, every=0.5)
        before = {path: planes.identities(seed, path) for path, seed in where.items()}
        async with planes.watched():
            async with killing(landscape):
                moved = await move_to_and_fro(landscape, seeds)
            where = await eventually(all_healthy, every=0.5)

    assert planes.at_once == []
    assert sorted(moved) == names, moved
    assert {path: planes.identities(seed, path) for path, seed in where.items()} == before


async def test_a_destination_that_is_dead_is_waited_for_and_the_order_can_be_taken_back(place: Place) -> None:
    one, two = f"{place.region}-one", f"{place.region}-two"
    await place.gardenlets.start("one", a_seed_of(one))
    await place.order("apollo")
    await place.until_on(one, "apollo")
    await place.gardenlets.start("two", a_seed_of(two))
    await place.until_ready(two)
    await place.gardenlets.kill("two")

    async def unknown() -> None:
        seed = await in_full(place.landscape, two)
        assert condition(seed, "GardenletReady")["status"] == "Unknown", seed["status"]

    await eventually(unknown)
    running = place.planes.runs(one, place.path("apollo"))
    await place.bind("apollo", two)

    async def waits() -> None:
        shoot = await place.shoot("apollo")
        constraint = condition(shoot, "ReadyForMigration", "constraints")
        assert (constraint["status"], constraint.get("reason")) == ("False", "DestinationSeedUnready"), shoot["status"]
        operation = shoot["status"]["lastOperation"]
        assert (operation["type"], operation["state"]) == ("Migrate", "Error"), operation
        assert "GardenletReady is Unknown" in operation["description"], operation
        assert shoot["status"]["seedName"] == one

    await eventually(waits)
    assert place.planes.runs(one, place.path("apollo")) == running

    taken_back = await place.landscape.command("bind", place.path("apollo"), one)
    assert taken_back.code == 0, taken_back
    assert "is cancelled" in taken_back.stdout
    await place.until_on(one, "apollo")

    await place.bind("apollo", two)
    await eventually(waits)
    await place.gardenlets.start("two", a_seed_of(two))
    await place.until_on(two, "apollo")


class Observed:
    """What is published on a subject while it is listened to."""

    def __init__(self) -> None:
        self.messages: list[Msg] = []

    async def take(self, message: Msg) -> None:
        self.messages.append(message)

    @classmethod
    async def on(cls, landscape: Landscape, subject: str) -> "Observed":
        observed = cls()
        await landscape.client.subscribe(subject, cb=observed.take)  # pyright: ignore[reportUnknownMemberType]
        await landscape.client.flush()
        return observed


async def test_a_shoot_whose_source_is_lost_is_restored_by_force_and_the_source_yields(place: Place) -> None:
    one, two = f"{place.region}-one", f"{place.region}-two"
    await place.gardenlets.start("one", a_seed_of(one))
    reports = await Observed.on(place.landscape, f"garden.report.{one}.shoot.>")
    await place.order("apollo", "artemis")
    await place.until_on(one, "apollo", "artemis")
    await place.gardenlets.start("two", a_seed_of(two))
    await place.until_ready(two)
    before = {name: place.planes.identities(one, place.path(name)) for name in ("apollo", "artemis")}

    async def saved() -> None:
        states = await place.landscape.list(f"shootstate.{place.namespace}")
        assert len(states) == len(before)

    await eventually(saved)
    place.gardenlets.pause("one")  # cut off: it knows nothing of what happens now
    for name in before:
        forced = await place.landscape.command("bind", place.path(name), two, "--force")
        assert forced.code == 0, forced

    async def restored() -> None:
        for name, identities in before.items():
            shoot = await place.shoot(name)
            assert (shoot["spec"]["seedName"], is_healthy(shoot)) == (two, True), shoot["status"]
            assert shoot["status"]["lastOperation"]["type"] == "Restore"
            assert place.planes.identities(two, place.path(name)) == identities

    await eventually(restored)

    rejected = await Observed.on(place.landscape, "garden.rejected.>")
    late = reports.messages[-1]
    claim = {"status": {"lastOperation": {"type": "Reconcile", "state": "Processing"}, "seedName": one}}
    await place.gardenlets.publish(late.subject, json.dumps(claim).encode(), late.headers or {})

    async def denied() -> None:
        reasons = [(message.headers or {}).get("Gardenbus-Reason", "") for message in rejected.messages]
        assert any(f"belongs to seed {two}, not to {one}" in reason for reason in reasons), reasons

    await eventually(denied)
    place.gardenlets.resume("one")
    await place.until_on(two, *before)
    await place.gardenlets.kill("one")
    await place.gardenlets.start("one", a_seed_of(one))
    await place.until_ready(one)
    everything = await Observed.on(place.landscape, f"garden.report.{one}.>")
    await asyncio.sleep(2)
    assert len(everything.messages) <= 4, [message.subject for message in everything.messages]
    await place.until_on(two, *before)
    for name in before:
        assert (await place.shoot(name))["status"]["lastOperation"]["type"] == "Restore"


async def test_a_drain_goes_on_after_ctrl_c_and_a_cordon_over_a_restart(place: Place) -> None:
    source, others = f"{place.region}-from", [f"{place.region}-a", f"{place.region}-b"]
    names = [f"s{number}" for number in range(10)]
    await place.gardenlets.start("from", a_seed_of(source))
    await place.order(*names)
    await place.until_on(source, *names)
    await place.gardenlets.start("others", *map(a_seed_of, others))
    await place.until_ready(source, *others)

    drain = await place.landscape.begin("drain", source, "--at-once", "1")  # slow enough to be interrupted

    async def begun() -> None:
        assert (await place.used()).get(source, 0) <= len(names) - 2

    await eventually(begun, every=0.05)
    drain.send_signal(signal.SIGINT)
    interrupted = await ended(drain, within=HANG_SECONDS)
    assert interrupted.code == 130, interrupted
    assert "go on by themselves" in interrupted.stderr
    assert f"gardenbus drain {source}" in interrupted.stderr
    assert (await place.used()).get(source, 0) > 0
    again = await place.landscape.command("drain", source, "--at-once", "4")

    assert again.code == 0, again
    assert f"seed {source} is empty" in again.stdout
    used = await place.used()
    assert sum(used.values()) == len(names)
    assert sorted(used) == others
    assert max(used.values()) - min(used.values()) <= 1, used
    assert {path: seeds for path, seeds in place.planes.files().items() if source in seeds} == {}

    async def visible_after_a_restart() -> bool:
        registrations = await Observed.on(place.landscape, f"garden.report.{source}.seed.>")
        await place.gardenlets.kill("from")
        await place.gardenlets.start("from", a_seed_of(source))

        async def registered() -> None:
            verbs = [(message.headers or {}).get("Gardenbus-Verb") for message in registrations.messages]
            assert "apply" in verbs, verbs

        await eventually(registered)
        await place.until_ready(source)
        seed = await in_full(place.landscape, source)
        assert seed["status"]["observedGeneration"] == seed["metadata"]["generation"]
        return seed["spec"]["settings"]["scheduling"]["visible"]

    assert not await visible_after_a_restart()
    assert (await place.landscape.command("uncordon", source)).code == 0
    assert await visible_after_a_restart()


async def test_rebalance_evens_out_what_its_plan_says(place: Place) -> None:
    full, empty = f"{place.region}-full", f"{place.region}-new"
    names = [f"s{number}" for number in range(6)]
    await place.gardenlets.start("full", a_seed_of(full, shoots=10))
    await place.order(*names)
    await place.until_on(full, *names)
    await place.gardenlets.start("new", a_seed_of(empty, shoots=10))
    await place.until_ready(full, empty)

    planned = await place.landscape.command("rebalance", "--band", "10%", "-o", "json")
    assert planned.code == 0, planned
    plan = json.loads(planned.stdout)
    assert len(plan["moves"]) == plan["lowerBound"] == 3
    assert (await place.used()) == {full: 6}
    async with place.planes.watched():
        applied = await place.landscape.command("rebalance", "--band", "10%", "--apply", "--at-once", "2", "-o", "json")

    assert applied.code == 0, applied
    result = json.loads(applied.stdout)
    assert [(each["shoot"], each["to"]) for each in result["moved"]] == [
        (each["shoot"], empty) for each in result["moves"]
    ]
    assert (await place.used()) == {full: 3, empty: 3}
    assert place.planes.at_once == []
    again = json.loads((await place.landscape.command("rebalance", "-o", "json")).stdout)
    assert again["moves"] == []
