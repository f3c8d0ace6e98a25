"""The etcds of a real control plane, beside their backups."""

import signal
from collections.abc import AsyncGenerator
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from gardenbus.common.api.configuration.gardenlet import ShootBackendSettings
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.gardenlet.backend.port import FencingToken, StaleFencingToken
from gardenbus.gardenlet.backend.processes.cluster import Cluster
from gardenbus.gardenlet.backend.processes.etcd_client import EtcdClient
from gardenbus.gardenlet.backend.processes.etcd_defragmentation import AGAIN_SECONDS, EtcdDefragmentation
from gardenbus.gardenlet.backend.processes.maker import ProcessesMaker
from gardenbus.gardenlet.backend.processes.probes import ProbeSession
from gardenbus.gardenlet.backend.seed_backend import SeedBackend
from gardenbus.gardenlet.domain.control_plane import API_SERVER, CA, ETCDS
from gardenbus.gardenlet.domain.etcd_events import EtcdEvent, KeyValue
from gardenbus.gardenlet.domain.flows import shoot_flow
from gardenbus.gardenlet.domain.operations import ObservedShoot
from gardenbus.gardenlet.domain.shoot_record import Run, ShootRecord
from tests.support.builders import a_shoot
from tests.support.clocks import FakeClock
from tests.support.control_plane_processes import left_below
from tests.support.seed_backends import a_local_backend

SHOOT = ("garden-dev", "apollo")
WINDOW = {"timeWindow": {"begin": "220000+0000", "end": "230000+0000"}}
BEFORE, LAST_MINUTE = datetime(2026, 11, 29, 21, 59, tzinfo=UTC), datetime(2026, 11, 29, 22, 44, tzinfo=UTC)


def observed() -> ObservedShoot:
    shoot = a_shoot(spec={"kubernetes": {"version": "1.34.4"}, "provider": {"workers": []}, "maintenance": WINDOW})
    return ObservedShoot.of(shoot, uid="u1", version=1, role="run")


def maker_of(backend: SeedBackend) -> ProcessesMaker:
    assert isinstance(backend.maker, ProcessesMaker)
    return backend.maker


def cluster_of(backend: SeedBackend) -> Cluster:
    (cluster,) = maker_of(backend).clusters
    return cluster


@pytest.fixture
async def backend(tmp_path: Path, binaries: str) -> AsyncGenerator[SeedBackend]:
    """A seed with one shoot."""
    settings = ShootBackendSettings(type="processes", binaries=binaries)
    backend = a_local_backend(tmp_path / "seed", settings, SystemClock())
    await backend.start()
    await backend.acquire(FencingToken(1, 1))
    run = Run(operation="Create", generation=1, number=1)
    backend.save(ShootRecord(namespace=SHOOT[0], name=SHOOT[1], uid="u1", has_workers=False, run=run))
    for step in shoot_flow("Create", has_workers=False).steps:
        await backend.perform(SHOOT, step, observed())
    yield backend
    for step in ("delete-control-plane", "delete-etcd", "delete-namespace"):
        await backend.perform(SHOOT, step, observed())
    await backend.stop()
    assert left_below(tmp_path) == []


class ElsewhereSession(ProbeSession):
    """Finds an API server where etcd should be."""

    def etcd(self, cluster: Cluster) -> EtcdClient:
        assert self._session is not None
        return EtcdClient(self._session, cluster.url, self._tls_of(cluster, CA))


def defragmented(result: str) -> float:
    """Number of defragmentations with this result so far."""
    name = "gardenbus_gardenlet_etcd_defragmentations_total"
    return REGISTRY.get_sample_value(name, {"result": result}) or 0.0


async def test_etcds_are_defragmented_once_a_window_and_only_in_a_healthy_control_plane(backend: SeedBackend) -> None:
    maker, cluster = maker_of(backend), cluster_of(backend)
    etcd = maker.session.etcd(cluster)
    written = 0
    for _ in range(20):
        written = await etcd.transact([EtcdEvent(KeyValue("L3g=", 0, "eHh4" * 100_000))])
    await etcd._post("/v3/kv/compaction", {"revision": written, "physical": True})  # pyright: ignore[reportPrivateUsage]
    full = await etcd.database_bytes()
    done, failed = defragmented("done"), defragmented("failed")

    async def checked(now: datetime) -> float:
        clock = FakeClock(now)
        await EtcdDefragmentation(maker.session, clock, nullcontext).defragment_due([cluster])
        return defragmented("done") - done

    assert await checked(BEFORE) == 0
    async with cluster.busy:
        assert await checked(LAST_MINUTE) == 0, "a step is at work"
    api_server = cluster.child(API_SERVER)
    assert api_server is not None
    api_server.signal(signal.SIGSTOP)
    assert await checked(LAST_MINUTE) == 0, "its API server does not respond"
    api_server.signal(signal.SIGCONT)
    assert await checked(LAST_MINUTE) == len(ETCDS)
    assert await etcd.database_bytes() < full / 2
    assert await etcd.revision() >= written
    assert await checked(LAST_MINUTE) == len(ETCDS), "not once more in this window"
    assert defragmented("failed") == failed


async def test_a_defragmentation_that_fails_is_counted_and_tried_again_some_minutes_later(
    backend: SeedBackend,
) -> None:
    maker, cluster, clock = maker_of(backend), cluster_of(backend), FakeClock(BEFORE)
    session = ElsewhereSession()
    session.open()
    done, failed = defragmented("done"), defragmented("failed")
    defragmentation = EtcdDefragmentation(session, clock, nullcontext)
    try:
        while defragmented("failed") == failed:
            clock.advance(60)
            assert clock.now() < LAST_MINUTE
            await defragmentation.defragment_due([cluster])
        for passed, failures in ((AGAIN_SECONDS - 1, 1), (2.0, 2)):
            clock.advance(passed)
            await defragmentation.defragment_due([cluster])
            assert defragmented("failed") - failed == failures
    finally:
        await session.close()
    assert await maker.session.etcd(cluster).revision() > 0
    assert defragmented("done") == done


async def test_a_gardenlet_that_has_lost_its_seed_defragments_nothing(backend: SeedBackend) -> None:
    def owned() -> AbstractContextManager[None]:
        raise StaleFencingToken("it belongs to another one")

    done = defragmented("done")
    defragmentation = EtcdDefragmentation(maker_of(backend).session, FakeClock(LAST_MINUTE), owned)
    await defragmentation.keep(lambda: [cluster_of(backend)])
    assert defragmented("done") == done
