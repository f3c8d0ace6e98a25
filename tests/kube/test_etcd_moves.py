"""Backups of a real etcd whose shoot moves: they go along into the bucket of the other seed."""

import asyncio
import base64
import shutil
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from gardenbus.common.api.configuration.gardenlet import ShootBackendSettings
from gardenbus.common.api.document import Document
from gardenbus.common.backups.creating import read_catalog
from gardenbus.common.backups.destinations import folder_of
from gardenbus.common.backups.directory import DirectoryDestination
from gardenbus.common.errors import Unavailable
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.gardenlet.backend.port import FencingToken, StepFailed
from gardenbus.gardenlet.backend.processes.backup_keeper import EtcdBackupKeeper
from gardenbus.gardenlet.backend.processes.binaries import ETCDCTL
from gardenbus.gardenlet.backend.processes.cluster import Cluster
from gardenbus.gardenlet.backend.processes.maker import ProcessesMaker
from gardenbus.gardenlet.backend.seed_backend import SeedBackend
from gardenbus.gardenlet.domain.control_plane import ETCD, ETCD_CA, ETCD_CLIENT, etcd_url
from gardenbus.gardenlet.domain.etcd_events import EtcdEvent, KeyValue
from gardenbus.gardenlet.domain.flows import OperationType
from gardenbus.gardenlet.domain.operations import ObservedShoot
from gardenbus.gardenlet.domain.shoot_record import Run, ShootRecord
from tests.support.builders import a_shoot
from tests.support.control_plane_processes import end_all_below
from tests.support.eventually import eventually
from tests.support.seed_backends import a_local_backend

SHOOT = ("garden-dev", "apollo")
ENTRY = "shoot--dev--apollo--u1"


def observed() -> ObservedShoot:
    shoot = a_shoot(spec={"kubernetes": {"version": "1.34.4"}, "provider": {"workers": []}})
    return ObservedShoot.of(shoot, uid="u1", version=1, role="run")


class Seed(NamedTuple):
    """A seed whose bucket has its name, and where all buckets are."""

    name: str
    backend: SeedBackend
    place: Path

    @property
    def maker(self) -> ProcessesMaker:
        assert isinstance(self.backend.maker, ProcessesMaker)
        return self.backend.maker

    @property
    def cluster(self) -> Cluster:
        (cluster,) = self.maker.clusters
        return cluster

    @property
    def keeper(self) -> EtcdBackupKeeper:
        keeper = self.maker.backups.keeper(self.cluster)
        assert keeper is not None
        return keeper

    async def begin(self, operation: OperationType, state: dict[str, Document] | None = None) -> None:
        """Have the shoot be in an operation, with all steps before its etcd done."""
        run = Run(operation=operation, generation=1, number=1)
        record = ShootRecord(namespace=SHOOT[0], name=SHOOT[1], uid="u1", has_workers=False, run=run, state=state or {})
        self.backend.save(record)
        await self.perform("namespace", "secrets")

    async def perform(self, *steps: str) -> ShootRecord:
        for step in steps:
            await self.backend.perform(SHOOT, step, observed())
        record = self.backend.load(SHOOT)
        assert record is not None
        return record

    async def write(self, key: str) -> None:
        encoded = base64.b64encode(key.encode()).decode()
        await self.maker.session.etcd(self.cluster).transact([EtcdEvent(KeyValue(encoded, 0, encoded))])

    async def keys(self) -> set[str]:
        """Keys that etcd has."""
        pki = self.cluster.keys
        read = await asyncio.create_subprocess_exec(
            str(self.cluster.program(ETCDCTL)),
            f"--endpoints={etcd_url(self.cluster.where)}",
            f"--cacert={pki / ETCD_CA}.crt",
            f"--cert={pki / ETCD_CLIENT}.crt",
            f"--key={pki / ETCD_CLIENT}.key",
            *("get", "", "--prefix", "--keys-only"),
            stdout=asyncio.subprocess.PIPE,
        )
        output, _ = await read.communicate()
        assert read.returncode == 0
        return set(output.decode().split())

    async def names(self) -> list[str]:
        """Names of the backups in its bucket."""
        folder = folder_of(str(self.place)).folder(self.name).folder(ENTRY)
        return [each.name for each in (await read_catalog(folder)).backups]

    async def end_with_its_machine(self) -> None:
        """Lose gardenlet, etcd and disk at once."""
        cluster = self.cluster
        child = cluster.child(ETCD)
        assert child is not None
        await self.maker.stop()
        child.signal(signal.SIGKILL)
        await asyncio.to_thread(shutil.rmtree, cluster.data)


@asynccontextmanager
async def a_seed(directory: Path, name: str, binaries: str) -> AsyncGenerator[Seed]:
    place = directory / "backups"
    settings = ShootBackendSettings(type="processes", binaries=binaries, backups=str(place))
    backend = a_local_backend(directory / name, settings, SystemClock())
    await backend.start()
    await backend.acquire(FencingToken(1, 1))
    await backend.ensure_bucket(name)
    try:
        yield Seed(name, backend, place)
    finally:
        await backend.stop()
        end_all_below(directory / name)


@pytest.fixture
async def seeds(tmp_path: Path, binaries: str) -> AsyncGenerator[tuple[Seed, Seed]]:
    """Two seeds; the first has a shoot whose etcd was backed up, in full and by a delta, and written to since."""
    async with a_seed(tmp_path, "one", binaries) as one, a_seed(tmp_path, "two", binaries) as two:
        await one.begin("Create")
        await one.perform("etcd")
        await one.write("in-full")
        await one.keeper.back_up(at_once=True)
        await one.write("in-a-delta")
        await one.keeper.back_up(at_once=True)
        await one.write("last")
        yield one, two


async def migrated(one: Seed) -> dict[str, Document]:
    """Have the shoot leave its seed; returns what it takes along."""
    record = await one.perform()
    one.backend.save(replace(record, run=Run(operation="Migrate", generation=1, number=2)))
    record = await one.perform("stop-control-plane", "release-etcd", "release-namespace")
    return record.state


async def test_all_backups_go_along_into_the_bucket_of_the_other_seed(seeds: tuple[Seed, Seed]) -> None:
    one, two = seeds
    state = await migrated(one)
    left = await one.names()
    await two.begin("Restore", state)
    await two.perform("etcd")
    assert {"in-full", "in-a-delta", "last"} <= await two.keys()
    assert (await two.names())[: len(left)] == left
    assert await one.names() == []

    # Whatever happens before the first backup of its own, that bucket has what the shoot came with.
    await two.end_with_its_machine()
    folder = folder_of(str(two.place)).folder("two").folder(ENTRY)
    for name in set(await two.names()) - set(left):
        await folder.delete(name)
    await two.maker.start()
    await two.maker.take_over({})

    async def is_there_again() -> None:
        assert two.cluster.child(ETCD) is not None
        assert {"in-full", "in-a-delta", "last"} <= await two.keys()

    await eventually(is_there_again, every=0.3)


async def test_a_shoot_whose_source_is_lost_has_what_is_in_the_bucket_of_that(seeds: tuple[Seed, Seed]) -> None:
    one, two = seeds
    left = await one.names()
    await one.end_with_its_machine()
    await two.begin("Restore")
    await two.perform("etcd")
    found = await two.keys()
    assert {"in-full", "in-a-delta"} <= found
    assert "last" not in found, "nobody has backed it up"
    assert (await two.names())[: len(left)] == left
    assert await one.names() == []


async def test_a_copy_that_is_cut_goes_on_where_it_was(
    seeds: tuple[Seed, Seed], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = seeds
    state = await migrated(one)
    left = await one.names()
    put, stored = DirectoryDestination.put, list[str]()

    async def put_once(folder: DirectoryDestination, name: str, file: Path) -> None:
        if stored:
            raise Unavailable("the disk of the buckets is away")
        stored.append(name)
        await put(folder, name, file)

    await two.begin("Restore", state)
    monkeypatch.setattr(DirectoryDestination, "put", put_once)
    with pytest.raises(StepFailed, match="the disk of the buckets is away"):
        await two.perform("etcd")
    monkeypatch.undo()
    assert await two.names() == left[:1]
    assert await one.names() == left, "nothing is removed before etcd is there"
    assert two.cluster.child(ETCD) is None
    await two.perform("etcd")
    assert {"in-full", "in-a-delta", "last"} <= await two.keys()
    assert (await two.names())[: len(left)] == left


async def test_a_snapshot_that_no_bucket_has_is_named(seeds: tuple[Seed, Seed]) -> None:
    one, two = seeds
    state = await migrated(one)
    await folder_of(str(one.place)).folder("one").folder(ENTRY).remove()
    await two.begin("Restore", state)
    with pytest.raises(StepFailed, match=f"The etcd snapshot is gone: no bucket has {ENTRY}/") as failure:
        await two.perform("etcd")
    assert failure.value.codes == ("ERR_INFRA_DEPENDENCIES",)
    assert two.cluster.child(ETCD) is None
