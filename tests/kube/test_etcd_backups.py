"""Backups of a real etcd: what is written comes back after its data is gone, from a folder and from S3."""

import asyncio
import base64
import shutil
import signal
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from gardenbus.agent.kubernetes.client import KubernetesClient
from gardenbus.common.api.configuration.gardenlet import ShootBackendSettings
from gardenbus.common.backups.catalog import Chain
from gardenbus.common.backups.creating import read_catalog
from gardenbus.common.backups.destinations import folder_of
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.gardenlet.backend.port import FencingToken, StepFailed
from gardenbus.gardenlet.backend.processes.cluster import Cluster
from gardenbus.gardenlet.backend.processes.maker import ProcessesMaker
from gardenbus.gardenlet.backend.seed_backend import SeedBackend
from gardenbus.gardenlet.domain.control_plane import ETCD
from gardenbus.gardenlet.domain.etcd_events import EtcdEvent, KeyValue
from gardenbus.gardenlet.domain.flows import shoot_flow
from gardenbus.gardenlet.domain.operations import ObservedShoot
from gardenbus.gardenlet.domain.shoot_record import Run, ShootRecord
from tests.support.builders import a_shoot
from tests.support.control_plane_processes import left_below
from tests.support.eventually import eventually
from tests.support.s3_server import KEYS, make_bucket, start_s3
from tests.support.seed_backends import a_local_backend
from tests.support.servers import Server

SHOOT = ("garden-dev", "apollo")
WITHIN = 90.0


class Seed(NamedTuple):
    """A seed with one shoot, and where its backups are."""

    backend: SeedBackend
    maker: ProcessesMaker
    place: str

    @property
    def cluster(self) -> Cluster:
        (cluster,) = self.maker.clusters
        return cluster

    async def chain(self) -> Chain:
        catalog = await read_catalog(folder_of(self.place).folder("b1").folder(self.cluster.directory.name))
        return catalog.chains[-1]


@pytest.fixture(scope="module")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = start_s3(tmp_path_factory.mktemp("s3"))
    yield server
    server.stop()


@pytest.fixture
async def seed(
    request: pytest.FixtureRequest, tmp_path: Path, binaries: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[Seed]:
    """A seed with a bucket, and a shoot with an API server."""
    place = str(tmp_path / "backups")
    if getattr(request, "param", "folder") == "s3":
        for name, value in KEYS.items():
            monkeypatch.setenv(name, value)
        place = make_bucket(request.getfixturevalue("s3_server"), "landscape")
    backend = await a_life(tmp_path, binaries, place, 1)
    await backend.ensure_bucket("b1")
    run = Run(operation="Create", generation=1, number=1)
    backend.save(ShootRecord(namespace=SHOOT[0], name=SHOOT[1], uid="u1", has_workers=False, run=run))
    for step in shoot_flow("Create", has_workers=False).steps:
        await backend.perform(SHOOT, step, observed())
    yield Seed(backend, maker_of(backend), place)
    for step in shoot_flow("Delete", has_workers=False).steps:
        if step != "clean-up-cluster":
            await backend.perform(SHOOT, step, observed())
    await backend.stop()
    assert left_below(tmp_path) == []
    assert list(await folder_of(place).folder("b1").folders()) == []


async def a_life(directory: Path, binaries: str, place: str, number: int) -> SeedBackend:
    settings = ShootBackendSettings(type="processes", binaries=binaries, backups=place)
    backend = a_local_backend(directory / "seed", settings, SystemClock())
    await backend.start()
    await backend.acquire(FencingToken(1, number))
    return backend


def maker_of(backend: SeedBackend) -> ProcessesMaker:
    assert isinstance(backend.maker, ProcessesMaker)
    return backend.maker


def observed() -> ObservedShoot:
    shoot = a_shoot(spec={"kubernetes": {"version": "1.34.4"}, "provider": {"workers": []}})
    return ObservedShoot.of(shoot, uid="u1", version=1, role="run")


def client(seed: Seed) -> KubernetesClient:
    return seed.maker.session.client(seed.cluster)


async def write(seed: Seed, name: str) -> None:
    path = f"/api/v1/namespaces/default/configmaps/{name}"
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"by": name}}
    await client(seed).apply(path, manifest, manager="test")


async def versions(seed: Seed) -> dict[str, int]:
    """Versions of the ConfigMaps that were written."""
    found = await client(seed).items("/api/v1/namespaces/default/configmaps")
    return {each["metadata"]["name"]: int(each["metadata"]["resourceVersion"]) for each in found if "data" in each}


async def until_restored(seed: Seed, *names: str) -> dict[str, int]:
    async def restored() -> dict[str, int]:
        assert await seed.backend.problems(observed()) == {}
        found = await versions(seed)
        assert set(names) <= set(found)
        return found

    return await eventually(restored, every=0.3)


@pytest.mark.parametrize("seed", ["s3"], indirect=True)
async def test_what_was_written_comes_back_from_full_and_deltas(seed: Seed) -> None:
    keeper = seed.maker.backups.keeper(seed.cluster)
    assert keeper is not None
    await eventually(seed.chain, every=0.2)  # the first is made at once
    await write(seed, "in-the-first-delta")
    await write(seed, "removed")
    await keeper.back_up(at_once=True)
    await client(seed).delete("/api/v1/namespaces/default/configmaps/removed")
    await write(seed, "in-the-second-delta")
    etcd = seed.maker.session.etcd(seed.cluster)
    await etcd.grant(77)
    key = base64.b64encode(b"/leased").decode()
    await etcd.transact([EtcdEvent(KeyValue(key, 0, key, lease=77))])
    await keeper.back_up(at_once=True)
    await keeper.back_up(at_once=True)
    chain = await seed.chain()
    assert len(chain.deltas) >= 2
    before = await versions(seed)

    # The gardenlet's own loop finds that the data is gone, though etcd still runs on its open files.
    shutil.rmtree(seed.cluster.data)
    found = await until_restored(seed, "in-the-first-delta", "in-the-second-delta")
    assert found == before  # objects have the versions that they had
    await write(seed, "later")
    assert (await versions(seed))["later"] > max(before.values()) + 1_000_000

    async def begun_anew() -> None:
        latest = await seed.chain()
        assert latest.full.version > chain.last.version

    await eventually(begun_anew, every=0.3)


async def test_an_etcd_that_died_with_its_data_is_restored_by_the_next_gardenlet(seed: Seed) -> None:
    keeper = seed.maker.backups.keeper(seed.cluster)
    assert keeper is not None
    await eventually(seed.chain, every=0.2)
    await write(seed, "written")
    await keeper.back_up(at_once=True)
    cluster = seed.cluster
    assert cluster.state is not None
    await seed.maker.stop()
    for name in cluster.state.running:
        child = cluster.child(name)
        assert child is not None
        child.signal(signal.SIGKILL)
    await asyncio.to_thread(shutil.rmtree, cluster.data)
    await seed.maker.start()
    await seed.maker.take_over({})
    await until_restored(seed, "written")


async def test_data_that_is_gone_without_a_backup_is_said_and_never_replaced_by_nothing(seed: Seed) -> None:
    await eventually(seed.chain, every=0.2)
    async with seed.cluster.busy:
        await folder_of(seed.place).folder("b1").folder(seed.cluster.directory.name).remove()
        child = seed.cluster.child(ETCD)
        assert child is not None
        child.signal(signal.SIGKILL)
        shutil.rmtree(seed.cluster.data)

    async def reported() -> None:
        problem = (await seed.backend.problems(observed()))["ControlPlaneHealthy"]
        assert problem.startswith(
            "The data of etcd is gone, and is restored: The data of etcd is gone, and there is no"
        )

    await eventually(reported, every=0.2)
    with pytest.raises(StepFailed, match="there is no backup of it"):
        await seed.backend.perform(SHOOT, "etcd", observed())
    assert seed.cluster.child(ETCD) is None


async def end_etcd_and_write(seed: Seed, file: Path, offset: int) -> None:
    """Have etcd die, and its file carry something else from an offset on."""
    child = seed.cluster.child(ETCD)
    assert child is not None
    child.signal(signal.SIGKILL)
    with file.open("r+b") as data:
        data.seek(offset)
        data.write(b"\xa5" * 16384)


async def test_data_that_etcd_cannot_read_is_restored_and_without_a_backup_left_alone_and_said(seed: Seed) -> None:
    keeper = seed.maker.backups.keeper(seed.cluster)
    assert keeper is not None
    await eventually(seed.chain, every=0.2)
    await write(seed, "written")
    await keeper.back_up(at_once=True)
    cluster = seed.cluster
    await end_etcd_and_write(seed, cluster.data / "member" / "snap" / "db", 0)

    async def set_aside() -> None:
        assert (cluster.damaged / "member" / "snap" / "db").is_file()

    await eventually(set_aside, every=0.2)
    await until_restored(seed, "written")
    assert await seed.backend.problems(observed()) == {}

    (log,) = (cluster.data / "member" / "wal").glob("*.wal")
    async with cluster.busy:
        await folder_of(seed.place).folder("b1").folder(cluster.directory.name).remove()
        await end_etcd_and_write(seed, log, 0)

    async def reported() -> None:
        problem = (await seed.backend.problems(observed()))["ControlPlaneHealthy"]
        assert "there is no backup of it: put a good copy in the place of" in problem

    await eventually(reported, every=0.2)
    assert log.is_file()
