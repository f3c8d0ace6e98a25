"""The etcds of a real control plane, beside their backups."""

import asyncio
import shutil
import signal
from collections.abc import AsyncGenerator
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest
from msgspec.structs import replace
from prometheus_client import REGISTRY

from gardenbus.common.api.configuration.gardenlet import ShootBackendSettings
from gardenbus.common.errors import Unavailable
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.gardenlet.backend.port import FencingToken, StaleFencingToken
from gardenbus.gardenlet.backend.processes.child import running_below
from gardenbus.gardenlet.backend.processes.cluster import Cluster
from gardenbus.gardenlet.backend.processes.etcd_client import EtcdClient
from gardenbus.gardenlet.backend.processes.etcd_defragmentation import AGAIN_SECONDS, EtcdDefragmentation
from gardenbus.gardenlet.backend.processes.maker import ProcessesMaker
from gardenbus.gardenlet.backend.processes.probes import ProbeSession
from gardenbus.gardenlet.backend.seed_backend import SeedBackend
from gardenbus.gardenlet.domain.control_plane import (
    API_SERVER,
    CA,
    ETCD,
    ETCD_CA,
    ETCD_CLIENT,
    ETCDS,
    EVENTS_ETCD,
    PORTS,
    etcd_url,
)
from gardenbus.gardenlet.domain.etcd_events import EtcdEvent, KeyValue
from gardenbus.gardenlet.domain.flows import shoot_flow
from gardenbus.gardenlet.domain.operations import ObservedShoot
from gardenbus.gardenlet.domain.shoot_record import Run, ShootRecord
from tests.support.builders import a_shoot
from tests.support.clocks import FakeClock
from tests.support.control_plane_processes import left_below
from tests.support.eventually import eventually
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


async def a_life(directory: Path, binaries: str, number: int) -> SeedBackend:
    settings = ShootBackendSettings(type="processes", binaries=binaries)
    backend = a_local_backend(directory / "seed", settings, SystemClock())
    await backend.start()
    await backend.acquire(FencingToken(1, number))
    return backend


@pytest.fixture
async def backend(tmp_path: Path, binaries: str) -> AsyncGenerator[SeedBackend]:
    """A seed with one shoot."""
    backend = await a_life(tmp_path, binaries, 1)
    run = Run(operation="Create", generation=1, number=1)
    backend.save(ShootRecord(namespace=SHOOT[0], name=SHOOT[1], uid="u1", has_workers=False, run=run))
    for step in shoot_flow("Create", has_workers=False).steps:
        await backend.perform(SHOOT, step, observed())
    yield backend
    await backend.stop()
    backend = await a_life(tmp_path, binaries, 9)
    for step in ("delete-control-plane", "delete-etcd", "delete-namespace"):
        await backend.perform(SHOOT, step, observed())
    await backend.stop()
    assert left_below(tmp_path) == []


async def reconcile(backend: SeedBackend) -> None:
    """Run all steps of a reconciliation, as a gardenlet does."""
    record = backend.load(SHOOT)
    assert record is not None
    backend.save(replace(record, run=Run(operation="Reconcile", generation=2, number=2)))
    for step in shoot_flow("Reconcile", has_workers=False).steps:
        await backend.perform(SHOOT, step, observed())


async def write(backend: SeedBackend, name: str) -> None:
    """Make a ConfigMap and an Event of this name."""
    client = maker_of(backend).session.client(cluster_of(backend))
    metadata = {"name": name, "namespace": "default"}
    about = {"kind": "ConfigMap", "apiVersion": "v1", **metadata}
    for plural, manifest in (
        ("configmaps", {"kind": "ConfigMap"}),
        ("events", {"kind": "Event", "involvedObject": about, "reason": "Written", "message": name}),
    ):
        path = f"/api/v1/namespaces/default/{plural}"
        await client.create(path, {"apiVersion": "v1", **manifest, "metadata": metadata}, manager="test")


async def kept(backend: SeedBackend, etcd: str) -> set[tuple[str, str]]:
    """Resources and names of what was written that this etcd has."""
    cluster = cluster_of(backend)
    process = await asyncio.create_subprocess_exec(
        str(cluster.program("etcdctl")),
        f"--endpoints={etcd_url(cluster.where, etcd)}",
        f"--cacert={cluster.keys}/{ETCD_CA}.crt",
        f"--cert={cluster.keys}/{ETCD_CLIENT}.crt",
        f"--key={cluster.keys}/{ETCD_CLIENT}.key",
        *("get", "--prefix", "--keys-only", "/registry/"),
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    paths = [line.split("/") for line in output.decode().split()]
    return {(path[2], path[4]) for path in paths if len(path) > 4 and path[4].startswith("written")}


async def until_well(backend: SeedBackend) -> None:
    async def is_well() -> None:
        assert await backend.problems(observed()) == {}

    await eventually(is_well, every=0.3)


class ElsewhereSession(ProbeSession):
    """Finds an API server where etcd should be."""

    def etcd(self, cluster: Cluster, name: str = ETCD) -> EtcdClient:
        del name
        assert self._session is not None
        return EtcdClient(self._session, cluster.url, self._tls_of(cluster, CA))


def defragmented(result: str) -> float:
    """Number of defragmentations with this result so far."""
    name = "gardenbus_gardenlet_etcd_defragmentations_total"
    return REGISTRY.get_sample_value(name, {"result": result}) or 0.0


async def test_events_are_in_an_etcd_of_their_own_that_sleeps_and_wakes_with_the_other(backend: SeedBackend) -> None:
    await write(backend, "written")
    assert await kept(backend, ETCD) == {("configmaps", "written")}
    assert await kept(backend, EVENTS_ETCD) == {("events", "written")}
    await cluster_of(backend).stop(PORTS)
    assert not list(running_below(cluster_of(backend).directory))
    await reconcile(backend)
    await until_well(backend)
    assert await kept(backend, ETCD) == {("configmaps", "written")}
    assert await kept(backend, EVENTS_ETCD) == {("events", "written")}


async def test_a_control_plane_with_one_etcd_goes_on_with_it_and_gets_the_second_when_it_is_reconciled(
    backend: SeedBackend, tmp_path: Path, binaries: str
) -> None:
    cluster = cluster_of(backend)
    async with cluster.busy:  # made as it was before there were two
        await cluster.stop((API_SERVER, EVENTS_ETCD))
        assert cluster.state is not None
        cluster._keep(  # pyright: ignore[reportPrivateUsage]
            replace(
                cluster.state,
                ports={name: port for name, port in cluster.state.ports.items() if not name.startswith(EVENTS_ETCD)},
            )
        )
        shutil.rmtree(cluster.events)
        (api_server,) = cluster.components([API_SERVER])
        await cluster.start(api_server)
    await until_well(backend)
    await write(backend, "written-before")
    assert await kept(backend, ETCD) == {("configmaps", "written-before"), ("events", "written-before")}

    # Its gardenlet is replaced, and its API server ends: it is started anew as it was.
    await backend.stop()
    backend = await a_life(tmp_path, binaries, 2)
    before = cluster_of(backend).child(API_SERVER)
    assert before is not None
    before.signal(signal.SIGKILL)
    await until_well(backend)
    assert cluster_of(backend).child(EVENTS_ETCD) is None

    await reconcile(backend)
    await until_well(backend)
    await write(backend, "written-after")
    assert await kept(backend, EVENTS_ETCD) == {("events", "written-after")}
    assert {("configmaps", "written-before"), ("configmaps", "written-after")} <= await kept(backend, ETCD)
    await backend.stop()


async def test_events_whose_etcd_cannot_read_its_data_are_lost_and_nothing_else_is(backend: SeedBackend) -> None:
    await write(backend, "written")
    cluster = cluster_of(backend)
    api_server, events = cluster.child(API_SERVER), cluster.child(EVENTS_ETCD)
    assert events is not None
    async with cluster.busy:
        events.signal(signal.SIGKILL)
        with (cluster.events / "member" / "snap" / "db").open("r+b") as data:
            data.write(b"\xa5" * 16384)

    async def writes_again() -> None:
        assert cluster.child(EVENTS_ETCD) is not None
        try:
            await write(backend, f"written-{uuid4().hex}")
        except Unavailable as error:  # the API server goes on with a lease that is gone, for a minute
            raise AssertionError(error.message) from error

    await eventually(writes_again, every=1.0)
    await until_well(backend)
    assert ("events", "written") not in await kept(backend, EVENTS_ETCD)
    assert ("configmaps", "written") in await kept(backend, ETCD)
    assert cluster.child(API_SERVER) == api_server, "its API server goes on"


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
