"""Gardenlets that die while extensions act on a shoot, on real API servers: successors go by the objects alone."""

import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from msgspec.structs import replace

from gardenbus.common.api.document import Document, section
from gardenbus.gardenlet.domain.extension_objects.contract import TIMESTAMP
from gardenbus.gardenlet.domain.extension_objects.kinds import CLUSTERS, WAITS, path_of
from gardenbus.gardenlet.domain.flows import OperationType, shoot_flow
from tests.kube.test_extensions import a_seed_with, succeeds, the_garden, the_shoot
from tests.support.eventually import eventually
from tests.support.kube_clusters import RealCluster, real_clusters
from tests.support.overlaid_lives import COMPLETE, FENCED_OFF, KILLED, Life, live
from tests.support.overlaid_seeds import cut, namespace_of_shoot, overlaid_seed, saved_state
from tests.support.stub_extension import StubExtension, define_kinds, running


@pytest.mark.timeout(900)
async def test_an_operation_that_is_cut_anywhere_is_taken_up_from_the_objects_alone(
    tmp_path: Path, binaries: str
) -> None:
    shoot, chance = the_shoot(), random.Random(7)
    async with (
        real_clusters(tmp_path, binaries, ["api"]) as (cluster,),
        a_seed_with(tmp_path, cluster, "one") as (_, stub),
    ):
        operations: tuple[OperationType, ...] = ("Create", "Reconcile", "Delete")
        for token, operation in enumerate(operations, start=2):
            for _ in range(4):
                async with overlaid_seed(tmp_path / "one", cluster, the_garden("one"), token=token) as seed:
                    run = asyncio.create_task(seed.run(shoot, operation))
                    await asyncio.wait([run], timeout=chance.uniform(0.1, 3))
                    await cut(run)
            async with overlaid_seed(tmp_path / "one", cluster, the_garden("one"), token=token) as seed:
                await succeeds(seed, shoot, operation)
                if operation != "Delete":
                    assert {kind for kind, _ in await seed.all_objects(shoot)} == set(WAITS)
                    assert len({key[0] for key in stub.made}) == len(WAITS)
        assert stub.made == {}


class ProcessDied(Exception):
    """The end of an extension's process."""


@dataclass
class DyingExtension(StubExtension):
    """One whose process dies in each operation on each object: once it has begun, and before it says that it ended."""

    deaths: set[tuple[str, str, str, str]] = field(default_factory=set[tuple[str, str, str, str]])

    async def run(self) -> None:
        """Act until cancelled; each death is followed by a start."""
        while True:
            with suppress(ProcessDied):
                await super().run()

    def _die(self, *where: str) -> None:
        moment, operation, kind, name = where
        if (moment, operation, kind, name) not in self.deaths:
            self.deaths.add((moment, operation, kind, name))
            raise ProcessDied

    async def _begin(self, key: tuple[str, str, str], live: Document, operation: str) -> bool:
        begun = await super()._begin(key, live, operation)
        self._die("begun", operation, key[0], key[2])
        return begun

    async def _end(self, key: tuple[str, str, str], live: Document, operation: str, status: Document) -> None:
        self._die("not ended", operation, key[0], key[2])
        await super()._end(key, live, operation, status)


@pytest.mark.timeout(900)
async def test_an_extension_that_dies_in_each_operation_is_waited_for(tmp_path: Path, binaries: str) -> None:
    shoot = the_shoot()
    async with real_clusters(tmp_path, binaries, ["api"]) as (cluster,):
        await define_kinds(cluster.client)
        stub = DyingExtension(cluster.client)
        async with (
            running(stub),
            overlaid_seed(tmp_path / "one", cluster, the_garden("one")) as seed,
        ):
            operations: tuple[OperationType, ...] = ("Create", "Reconcile", "Migrate", "Restore", "Delete")
            made = dict[tuple[str, str, str], str]()
            for operation in operations:
                state = saved_state(seed, shoot) if operation == "Restore" else None
                await succeeds(seed, shoot, operation, restored_from=state)
                made = made or dict(stub.made)
                assert stub.made == ({} if operation == "Delete" else made)
            for operation in operations:
                for moment in ("begun", "not ended"):
                    died = {kind for when, what, kind, _ in stub.deaths if (when, what) == (moment, operation)}
                    assert died == set(WAITS), (moment, operation)


def in_order(operation: OperationType) -> list[str]:
    """Steps of an operation, each after those that it depends on."""
    flow, done = shoot_flow(operation, has_workers=True, has_extensions=True), list[str]()
    while ready := flow.ready(done):
        done += [step.name for step in ready]
    return done


def a_life(
    directory: Path, name: str, cluster: RealCluster, shoot: Document, operation: OperationType = "Create"
) -> Life:
    return Life(
        directory=str(directory / name),
        kubeconfig=cluster.kubeconfig,
        garden=the_garden(name).objects,
        shoot=shoot,
        operation=operation,
    )


async def walk(life: Life, *, chance: random.Random, begins_at: int) -> int:
    """Have a gardenlet killed in each step of an operation, then complete it; returns the last token."""
    steps, token = in_order(life.operation), begins_at
    for number, step in enumerate(steps):
        token += 1
        killed = replace(life, token=token, begun=steps[:number], killed_in=step, killed_after=chance.uniform(0, 1))
        assert await live(killed) == KILLED, step
    assert await live(replace(life, token=token + 1)) == COMPLETE
    return token + 1


@pytest.mark.timeout(1800)
async def test_a_gardenlet_that_is_killed_in_each_step_leaves_its_successor_what_it_needs(
    tmp_path: Path, binaries: str
) -> None:
    shoot, chance = the_shoot(), random.Random(11)
    async with real_clusters(tmp_path, binaries, ["api"]) as (cluster,):
        await define_kinds(cluster.client)
        first = a_life(tmp_path, "one", cluster, shoot)
        async with running(StubExtension(cluster.client)) as stub:
            token = await walk(first, chance=chance, begins_at=1)
            made = dict(stub.made)
            token = await walk(replace(first, operation="Reconcile"), chance=chance, begins_at=token)
            assert stub.made == made
            await walk(replace(first, operation="Delete"), chance=chance, begins_at=token)
            assert len({kind for kind, _, _ in made}) == len(WAITS)
            assert stub.made == {}, "what was made is gone"
            assert await cluster.client.get(f"/api/v1/namespaces/{namespace_of_shoot(shoot)}") is None
            assert await cluster.client.items(CLUSTERS) == []


@pytest.mark.timeout(1800)
async def test_a_shoot_moves_with_its_state_though_gardenlets_are_killed_in_each_step_of_both_seeds(
    tmp_path: Path, binaries: str
) -> None:
    shoot, chance = the_shoot(), random.Random(13)
    async with real_clusters(tmp_path, binaries, ["from", "to"]) as (here, there):
        for cluster in (here, there):
            await define_kinds(cluster.client)
        source = a_life(tmp_path, "one", here, shoot, "Migrate")
        destination = a_life(tmp_path, "two", there, shoot, "Restore")
        async with (
            running(StubExtension(here.client)) as source_stub,
            running(StubExtension(there.client)) as destination_stub,
        ):
            assert await live(replace(source, operation="Create")) == COMPLETE
            made, kept = dict(source_stub.made), dict(source_stub.kept)
            created = len(source_stub.history)

            token = await walk(source, chance=chance, begins_at=1)
            assert {operation for operation, _, _ in source_stub.history[created:]} == {"Migrate"}
            assert source_stub.made == made, "nothing is destroyed"
            assert await here.client.get(f"/api/v1/namespaces/{namespace_of_shoot(shoot)}") is None
            async with overlaid_seed(tmp_path / "one", here, the_garden("one"), token=token + 1) as seed:
                assert await seed.all_objects(shoot) == []
                state = saved_state(seed, shoot)
            migrated = len(source_stub.history)

            token = await walk(replace(destination, restored_from=state), chance=chance, begins_at=0)
            assert {operation for operation, _, _ in destination_stub.history} == {"Restore"}
            assert destination_stub.made == made, "each is what it was"
            assert destination_stub.found == kept, "its state was there before it was restored"
            assert destination_stub.missing == []
            assert destination_stub.changed == [], "and is not given once more to what goes on from it"
            assert len(source_stub.history) == migrated, "one seed acts on it"
            assert await live(replace(destination, operation="Delete", token=token + 1)) == COMPLETE
            assert destination_stub.made == {}


@pytest.mark.timeout(600)
async def test_of_two_processes_on_one_seed_the_one_with_the_older_token_ends(tmp_path: Path, binaries: str) -> None:
    shoot = the_shoot()
    async with (
        real_clusters(tmp_path, binaries, ["api"]) as (cluster,),
        running(StubExtension(cluster.client, {"Infrastructure": "silent"})) as stub,
    ):
        await define_kinds(cluster.client)
        first = a_life(tmp_path, "one", cluster, shoot)
        older = asyncio.create_task(live(first))
        path = path_of("Infrastructure", namespace_of_shoot(shoot), "apollo")

        async def is_requested(times: int) -> None:
            live_object = await cluster.client.get(path) or {}
            found.add(section(live_object, "metadata", "annotations").get(TIMESTAMP))
            assert len(found - {None}) == times

        found: set[str | None] = set()
        await eventually(lambda: is_requested(1), every=0.05)
        younger = asyncio.create_task(live(replace(first, token=2)))
        await eventually(lambda: is_requested(2), every=0.05)
        stub.behaviours = {}
        assert await younger == COMPLETE
        assert await older == FENCED_OFF
        begun = [(kind, name) for _, kind, name in stub.history]
        assert len(begun) == len(set(begun)), "each object was requested by one of them"
        assert {kind for kind, _ in begun} == set(WAITS)
