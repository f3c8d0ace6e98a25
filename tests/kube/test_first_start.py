"""An etcd whose first start was cut: whatever it has left, the step is taken up again and the shoot has its etcd."""

import os
import shutil
import signal
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from gardenbus.common.api.configuration.gardenlet import ShootBackendSettings
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.gardenlet.backend.port import FencingToken, StepFailed, StepRequest
from gardenbus.gardenlet.backend.processes.cluster import Cluster
from gardenbus.gardenlet.backend.processes.etcd_backup import REVISIONS_SKIPPED
from gardenbus.gardenlet.backend.processes.maker import ProcessesMaker
from gardenbus.gardenlet.backend.seed_backend import SeedBackend
from gardenbus.gardenlet.domain.control_plane import ETCD
from gardenbus.gardenlet.domain.etcd_events import EtcdEvent, KeyValue
from gardenbus.gardenlet.domain.operations import ObservedShoot
from gardenbus.gardenlet.domain.shoot_record import Run, ShootRecord
from tests.support.builders import a_shoot
from tests.support.control_plane_processes import left_below
from tests.support.eventually import eventually
from tests.support.seed_backends import a_local_backend

SHOOT = ("garden-dev", "apollo")
WITHIN = 25.0


def observed() -> ObservedShoot:
    shoot = a_shoot(spec={"kubernetes": {"version": "1.34.4"}, "provider": {"workers": []}})
    return ObservedShoot.of(shoot, uid="u1", version=1, role="run")


@pytest.fixture
async def backend(tmp_path: Path, binaries: str) -> AsyncGenerator[SeedBackend]:
    """A seed whose shoot has its keys, and nothing else."""
    settings = ShootBackendSettings(type="processes", binaries=binaries)
    backend = a_local_backend(tmp_path / "seed", settings, SystemClock())
    await backend.start()
    await backend.acquire(FencingToken(1, 1))
    run = Run(operation="Create", generation=1, number=1)
    backend.save(ShootRecord(namespace=SHOOT[0], name=SHOOT[1], uid="u1", has_workers=False, run=run))
    for step in ("namespace", "secrets"):
        await backend.perform(SHOOT, step, observed())
    yield backend
    for step in ("delete-control-plane", "delete-etcd", "delete-namespace"):
        await backend.perform(SHOOT, step, observed())
    await backend.stop()
    assert left_below(tmp_path) == []


def cluster_of(backend: SeedBackend) -> Cluster:
    assert isinstance(backend.maker, ProcessesMaker)
    (cluster,) = backend.maker.clusters
    return cluster


def database(cluster: Cluster) -> Path:
    return cluster.data / "member" / "snap" / "db"


def log(cluster: Cluster) -> Path:
    return next((cluster.data / "member" / "wal").glob("*.wal"), cluster.data / "none")


def database_cut(cluster: Cluster) -> None:
    """As a disk leaves it that was full, or lost its power."""
    os.truncate(database(cluster), 100)


def log_overwritten(cluster: Cluster) -> None:
    with log(cluster).open("r+b") as opened:
        opened.write(b"\xa5" * 16384)


def database_cut_and_no_logs(cluster: Cluster) -> None:
    database_cut(cluster)
    shutil.rmtree(log(cluster).parent)


@pytest.mark.parametrize("damage", [database_cut, log_overwritten, database_cut_and_no_logs])
async def test_data_that_was_damaged_before_etcd_was_ready_for_the_first_time_is_made_anew(
    backend: SeedBackend, damage: Callable[[Cluster], None]
) -> None:
    cluster = cluster_of(backend)

    async def has_files() -> None:
        assert log(cluster).is_file()
        assert database(cluster).is_file()

    async with cluster.busy:
        await cluster.start(*cluster.components([ETCD]))
        await eventually(has_files)
        child = cluster.child(ETCD)
        assert child is not None
        child.signal(signal.SIGKILL)
        damage(cluster)

    async def taken_up() -> ShootRecord:
        try:
            return await backend.perform(SHOOT, "etcd", observed())
        except StepFailed as error:  # one that was started once more, and has not ended yet
            raise AssertionError(error.message) from error

    done = await eventually(taken_up)
    assert done.run is not None
    assert "etcd" in done.run.done
    assert cluster.child(ETCD) is not None


async def test_data_of_a_shoot_that_has_moved_is_restored_once_more_when_its_first_start_was_cut(
    backend: SeedBackend,
) -> None:
    """What the shoot came with is kept until its etcd was ready."""
    maker = backend.maker
    assert isinstance(maker, ProcessesMaker)
    await backend.perform(SHOOT, "etcd", observed())
    cluster = cluster_of(backend)
    written = await maker.session.etcd(cluster).transact([EtcdEvent(KeyValue("Lw==", 0, "Lw=="))])
    saved = await maker.make(StepRequest(SHOOT, "u1", "stop-control-plane", "Migrate", observed(), kept={}))
    await maker.make(StepRequest(SHOOT, "u1", "release-etcd", "Migrate", observed(), kept={}))
    log_folder = cluster.data / "member" / "wal"
    log_folder.mkdir(parents=True)
    database(cluster).parent.mkdir()
    database(cluster).write_bytes(b"half")
    kept = {"stop-control-plane": saved}
    await maker.make(StepRequest(SHOOT, "u1", "etcd", "Restore", observed(), kept=kept))
    assert await maker.session.etcd(cluster).revision() >= written + REVISIONS_SKIPPED
