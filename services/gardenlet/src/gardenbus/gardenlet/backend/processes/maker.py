"""Maker of the backend `processes`: control planes are processes of the gardenlet's machine.

A control plane is etcd, another one for Events, kube-apiserver, kube-controller-manager and, with workers,
kube-scheduler.

    <seed's directory>/control-planes/<technical id>--<uid>/      see `cluster`
    <backend.backups>/<bucket>/<technical id>--<uid>/             see `etcd_backups`

It makes no machines, networks and names: these steps do nothing. Another machine cannot take it over; a standby on the
same machine does, with all that runs.
"""

import asyncio
import contextlib
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec
import structlog

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.hibernation import is_hibernation_enabled
from gardenbus.common.errors import Conflict, GardenbusError, SettingsInvalid, Unavailable
from gardenbus.common.ports.clock import timestamp
from gardenbus.gardenlet.backend.cleanup import clean_up
from gardenbus.gardenlet.backend.health_server import HealthServer
from gardenbus.gardenlet.backend.pki import admin_kubeconfig, new_secrets
from gardenbus.gardenlet.backend.port import (
    Kept,
    KubeconfigRequest,
    MakerContext,
    StaleFencingToken,
    StepFailed,
    StepRequest,
)
from gardenbus.gardenlet.backend.processes.binaries import Programs, find_programs, missing_programs
from gardenbus.gardenlet.backend.processes.cluster import PORT_IN_USE, Cluster, start_slots
from gardenbus.gardenlet.backend.processes.etcd_backup import EtcdBackup
from gardenbus.gardenlet.backend.processes.etcd_backups import EtcdBackups
from gardenbus.gardenlet.backend.processes.etcd_client import EtcdClient
from gardenbus.gardenlet.backend.processes.etcd_defragmentation import EtcdDefragmentation
from gardenbus.gardenlet.backend.processes.probes import ProbeSession, components_of, control_plane_problems
from gardenbus.gardenlet.domain.control_plane import (
    API_SERVER,
    CONTROLLER_MANAGER,
    ETCD,
    ETCDS,
    EVENTS_ETCD,
    PORTS,
    SCHEDULER,
    Component,
    cluster_parameters,
)
from gardenbus.gardenlet.domain.flows import CONTROL_PLANE
from gardenbus.gardenlet.domain.operations import ObservedShoot
from gardenbus.gardenlet.domain.shoot_record import HIBERNATED, ShootName
from gardenbus.gardenlet.domain.shoot_status import technical_id
from gardenbus.gardenlet.domain.system_components import FIELD_MANAGER

_log = structlog.stdlib.get_logger()

CONFIGURATION_PROBLEM = "ERR_CONFIGURATION_PROBLEM"
RESOURCES_DEPLETED = "ERR_INFRA_RESOURCES_DEPLETED"
LEAST_MEMORY_MIB = 512
"""Memory that has to be left for another control plane: it takes half of that, and what runs needs some."""

BACKUP = "etcdBackup"
READY_SECONDS = 120.0
CLEANUP_SECONDS = 60.0
TEND_SECONDS = 1.0
_MOST_RESTARTS_A_ROUND = 2
_POLL_SECONDS = 0.1


class ProcessesMaker:
    """The backend `processes`. Implements `backend.port.Maker`."""

    healthy_message = ""
    has_kubeconfigs = True
    memory_file = Path("/proc/meminfo")

    def __init__(self, context: MakerContext) -> None:
        self._context = context
        self._clock = context.clock
        self._owned = context.owned
        self._directory = context.directory.absolute() / "control-planes"
        self._health = HealthServer(context.directory / "healthz-fails")
        self._versions: Mapping[str, Programs] = find_programs(context.settings.binaries, os.environ)
        if not self._versions:
            raise SettingsInvalid(
                (f"seed {context.seed_name}: {missing_programs(context.settings.binaries, os.environ)}",)
            )
        self._clusters: dict[Path, Cluster] = {}
        self.session = ProbeSession()
        self.backups = EtcdBackups(context, client=self.session.etcd, ready=self._etcd_ready)
        self.defragmentation = EtcdDefragmentation(self.session, self._clock, self._owned)
        self._tasks: list[asyncio.Task[None]] = []

    # ------------------------------------------------------------------------------------------ life

    async def start(self) -> None:
        """Serve `/healthz`."""
        await self._health.start()
        self.session.open()

    async def stop(self) -> None:
        """Stop serving; what runs goes on running, unless the settings say otherwise."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        if not self._context.settings.keep_running:
            with contextlib.suppress(StaleFencingToken):
                await asyncio.gather(*(cluster.end_all() for cluster in self._clusters.values()))
        self._clusters.clear()
        await self.session.close()
        await self._health.stop()

    async def take_over(self, shoots: Mapping[ShootName, Kept]) -> None:
        """Find what runs of all control planes here, and have it tended from now on."""
        del shoots  # the directories say what shall run
        directories = sorted(self._directory.iterdir()) if self._directory.is_dir() else []
        for directory in directories:
            self._cluster_in(directory)
        if all(task.done() for task in self._tasks):
            seed = self._context.seed_name
            self._tasks = [
                asyncio.create_task(self._tend(), name=f"components of {seed}"),
                asyncio.create_task(self.backups.keep(lambda: self.clusters), name=f"backups of {seed}"),
                asyncio.create_task(
                    self.defragmentation.keep(lambda: self.clusters), name=f"defragmentation of {seed}"
                ),
            ]

    @property
    def clusters(self) -> tuple[Cluster, ...]:
        """Control planes that are made, or tended, here."""
        return tuple(self._clusters.values())

    async def _tend(self) -> None:
        """Start anew what has ended, two control planes a round. Ends when another gardenlet acquires the seed."""
        while True:
            found = 0
            for cluster in self.clusters:
                try:
                    found += cluster.tend()
                except StaleFencingToken:
                    self._clusters.clear()
                    return
                except OSError as error:
                    _log.warning("component.not_started", directory=str(cluster.directory), reason=str(error))
                if found >= _MOST_RESTARTS_A_ROUND:
                    break
            await self._clock.sleep(TEND_SECONDS)

    @property
    def health_url(self) -> str:
        """URL of the seed's `/healthz`, which says that its gardenlet can run processes."""
        return f"{self._health.url}/healthz"

    @property
    def kubernetes_version(self) -> str:
        """The newest version that control planes can have here."""
        return next(iter(self._versions))

    async def seed_problem(self) -> str | None:
        """Programs that are gone, or a disk that is full."""
        gone = sorted(
            str(path) for programs in self._versions.values() for path in programs.values() if not path.exists()
        )
        if gone:
            return f"Programs are gone: {', '.join(gone[:3])}."
        free = shutil.disk_usage(self._context.directory).free
        return f"The disk is full: {free >> 20} MiB are left." if free < 2**28 else None

    async def ensure_bucket(self, name: str) -> None:
        """Make the bucket, into which shoots are backed up from now on."""
        await self.backups.ensure_bucket(name)

    async def delete_bucket(self, name: str) -> None:
        """Remove the bucket. Raises StepFailed while a backup in it may be needed."""
        await self.backups.delete_bucket(name)

    async def delete_backups(self, entry: str) -> None:
        """Remove all backups of a control plane."""
        try:
            await self.backups.remove(entry)
        except StaleFencingToken:
            raise
        except GardenbusError as error:
            raise StepFailed(error.message) from error

    # ------------------------------------------------------------------------------------------ steps

    async def make(self, request: StepRequest) -> Document:
        """Have the result of a step be there. Steps that have nothing to do here return at once."""
        with self._owned():
            cluster = self._cluster(request.shoot, request.uid)
        steps = {
            "namespace": self._make_namespace,
            "secrets": self._make_secrets,
            "etcd": self._make_etcd,
            CONTROL_PLANE: self._make_control_plane,
            "wait-for-api-server": self._await_api_server,
            "system-components": self._apply_system_components,
            "clean-up-cluster": self._clean_up,
            "delete-control-plane": self._stop_api_server,
            "delete-etcd": self._delete_etcd,
            "delete-namespace": self._remove,
            "stop-control-plane": self._back_up,
            "release-etcd": self._release_etcd,
            "release-namespace": self._remove,
        }
        step = steps.get(request.step)
        if step is None:
            return {}
        try:
            async with cluster.busy:
                return await step(cluster, request)
        except StaleFencingToken:
            raise
        except Unavailable as error:
            raise StepFailed(error.message) from error
        except GardenbusError as error:
            raise error if isinstance(error, StepFailed) else StepFailed(error.message) from error
        except OSError as error:
            raise StepFailed(f"{request.step}: {error}") from error

    async def _make_namespace(self, cluster: Cluster, request: StepRequest) -> Document:
        observed = _required(request)
        parameters = cluster_parameters(observed.spec, technical_id=technical_id(*request.shoot))
        if (problem := self._version_problem(parameters.version)) is not None:
            raise StepFailed(problem, (CONFIGURATION_PROBLEM,))
        maintenance = section(observed.spec, "maintenance")
        cluster.establish(request.uid, parameters, shoot=request.shoot, maintenance=maintenance)
        cluster.programs = self._versions[parameters.version]
        return {}

    async def _make_secrets(self, cluster: Cluster, request: StepRequest) -> Document:
        made = dict(request.kept.get("secrets") or {})
        if not made:
            made = await asyncio.to_thread(new_secrets, technical_id(*request.shoot), self._clock.now())
        cluster.write_keys(made)
        return made

    async def _make_etcd(self, cluster: Cluster, request: StepRequest) -> Document:
        migrated, has_moved = _migrated(request), request.operation == "Restore"
        if "etcd" not in request.kept:
            cluster.set_unused_data_aside()
        if cluster.is_empty:
            await self.backups.restore(cluster, migrated, has_moved=has_moved)
        is_awake = not is_hibernation_enabled(_required(request).spec)
        if is_awake:
            async with start_slots():
                self._check_memory(cluster)
                await self._start(cluster, ETCD)
        cluster.note_data(present=not cluster.is_empty)
        if is_awake:
            await self._start(cluster, EVENTS_ETCD)
        if has_moved:
            await self.backups.drop_sources(cluster, migrated)
        return {}

    async def _make_control_plane(self, cluster: Cluster, request: StepRequest) -> Document:
        if is_hibernation_enabled(_required(request).spec):
            await cluster.stop((API_SERVER, CONTROLLER_MANAGER, SCHEDULER))
            keeper = self.backups.keeper(cluster)
            if keeper is not None and cluster.child(ETCD) is not None:
                await keeper.back_up(at_once=True)
            await cluster.stop(PORTS)
            return {HIBERNATED: True}
        async with start_slots():
            self._check_memory(cluster)
            await self._start(cluster, *PORTS)
            if not cluster.components([SCHEDULER]):
                await cluster.stop([SCHEDULER])
        return {}

    def _check_memory(self, cluster: Cluster) -> None:
        """Raise StepFailed where another API server does not fit the machine; it is tried again later."""
        left = re.search(r"MemAvailable: *(\d+) kB", self.memory_file.read_text())
        if cluster.child(API_SERVER) is None and left and (mib := int(left[1]) >> 10) < LEAST_MEMORY_MIB:
            raise StepFailed(
                f"The machine has {mib} MiB of memory left, and starts no control plane with less than "
                f"{LEAST_MEMORY_MIB}: have shoots hibernate, or move them away.",
                (RESOURCES_DEPLETED,),
            )

    async def _await_api_server(self, cluster: Cluster, request: StepRequest) -> Document:
        """Wait until objects can be made: the service account of the default namespace is the controllers' work."""
        if is_hibernation_enabled(_required(request).spec):
            return {}
        deadline = self._clock.monotonic() + READY_SECONDS
        client = self.session.client(cluster)
        while await client.get("/api/v1/namespaces/default/serviceaccounts/default") is None:
            if self._clock.monotonic() > deadline:
                raise StepFailed("The namespace default has no service account: the controller manager is not at work.")
            await self._clock.sleep(_POLL_SECONDS)
        return {}

    async def _apply_system_components(self, cluster: Cluster, request: StepRequest) -> Document:
        observed = _required(request)
        if not is_hibernation_enabled(observed.spec):
            client = self.session.client(cluster)
            for each in components_of(cluster, observed):
                await client.apply(each.path, each.manifest, manager=FIELD_MANAGER)
        return {}

    async def _clean_up(self, cluster: Cluster, request: StepRequest) -> Document:
        """Clean the cluster up, for which a hibernated one is woken; one that never responded has nothing in it."""
        if "wait-for-api-server" not in request.kept or cluster.state is None or cluster.is_empty:
            return {}
        async with start_slots():
            await self._start(cluster, *ETCDS, API_SERVER, CONTROLLER_MANAGER)
        await clean_up(self.session.client(cluster), self._clock, within_seconds=CLEANUP_SECONDS)
        return {}

    async def _stop_api_server(self, cluster: Cluster, request: StepRequest) -> Document:
        del request
        await cluster.stop((API_SERVER, CONTROLLER_MANAGER, SCHEDULER))
        return {}

    async def _delete_etcd(self, cluster: Cluster, request: StepRequest) -> Document:
        await self._release_etcd(cluster, request)
        if not self._context.keeps_backups:
            await self.delete_backups(cluster.directory.name)
        return {}

    async def _release_etcd(self, cluster: Cluster, request: StepRequest) -> Document:
        del request
        self.backups.release(cluster)
        await cluster.stop(ETCDS)
        cluster.remove_data()
        return {}

    async def _remove(self, cluster: Cluster, request: StepRequest) -> Document:
        del request
        await cluster.stop(PORTS)
        cluster.remove()
        self._clusters.pop(cluster.directory, None)
        return {}

    async def _back_up(self, cluster: Cluster, request: StepRequest) -> Document:
        """Stop whoever writes, and save etcd for the next seed; not for a shoot that is another seed's already."""
        await cluster.stop((API_SERVER, CONTROLLER_MANAGER, SCHEDULER))
        if request.operation != "Migrate" or cluster.state is None:
            return {}
        if cluster.has_lost_data:
            await self.backups.restore(cluster, None)
        if cluster.is_empty:
            return {}
        async with start_slots():
            await self._start(cluster, ETCD)
        saved = await self.backups.save_for_migration(cluster)
        return {BACKUP: msgspec.to_builtins(saved)}

    # ------------------------------------------------------------------------------------------ components

    async def _start(self, cluster: Cluster, *names: str) -> None:
        """Start components in their order, each once the one before is ready. Raises StepFailed with its last words."""
        for component in cluster.components(names):
            await cluster.start(component)
            await self._until_ready(cluster, component)

    async def _etcd_ready(self, cluster: Cluster, component: Component) -> EtcdClient:
        """Run an etcd that restores: it is not one of those that shall run."""
        await cluster.run(component)
        await self._until_ready(cluster, component)
        return self.session.etcd(cluster)

    async def _until_ready(self, cluster: Cluster, component: Component) -> None:
        name = component.name
        deadline = self._clock.monotonic() + READY_SECONDS
        while (problem := await self.session.component_problem(cluster, component)) is not None:
            has_ended = cluster.child(name) is None
            if has_ended and PORT_IN_USE in cluster.last_words(name):
                cluster.choose_other_ports()
            if has_ended or self._clock.monotonic() > deadline:
                raise StepFailed(f"{problem}; the end of its log: {cluster.last_words(name) or 'empty'}")
            await self._clock.sleep(_POLL_SECONDS)

    def _cluster(self, shoot: ShootName, uid: str) -> Cluster:
        return self._cluster_in(self._directory / _entry(shoot, uid))

    def _cluster_in(self, directory: Path) -> Cluster:
        cluster = self._clusters.get(directory)
        if cluster is None:
            cluster = Cluster(directory, clock=self._clock, owned=self._owned)
            if cluster.state is not None:
                cluster.programs = self._versions.get(cluster.state.parameters.version, {})
                cluster.find_survivors()
            self._clusters[directory] = cluster
        return cluster

    # ------------------------------------------------------------------------------------------ health

    async def problems(self, observed: ObservedShoot, kept: Kept) -> dict[str, str]:
        """Problems as found by requests to each component, and in the cluster; none of a shoot that sleeps."""
        if kept.get(CONTROL_PLANE, {}).get(HIBERNATED):
            return {}
        cluster = self._cluster(observed.full_name, observed.uid)
        if cluster.state is None:
            return {"ControlPlaneHealthy": "There is no control plane on this machine."}
        found = await control_plane_problems(self.session, cluster, observed)
        backups = self.backups.problem(cluster)
        first = (self._version_problem(cluster.state.parameters.version), backups and f"{backups}.")
        if problems := [each for each in (*first, found.get("ControlPlaneHealthy")) if each]:
            found["ControlPlaneHealthy"] = " ".join(problems)
        return found

    def _version_problem(self, version: str) -> str | None:
        if version in self._versions:
            return None
        return (
            f"Kubernetes {version or 'without a version'} cannot run on this seed; it has {', '.join(self._versions)}."
        )

    async def admin_kubeconfig(self, request: KubeconfigRequest) -> Document:
        """Sign a certificate with the shoot's own authority, here."""
        name = technical_id(*request.shoot)
        state = Cluster(self._directory / _entry(request.shoot, request.uid), clock=self._clock, owned=self._owned)
        if "secrets" not in request.kept or state.state is None:
            raise Conflict(f"{name} has no API server yet")
        if request.kept.get(CONTROL_PLANE, {}).get(HIBERNATED):
            raise Conflict(f"{name} is hibernated: wake it first (spec.hibernation.enabled: false)")
        now = self._clock.now()
        config = admin_kubeconfig(
            request.kept["secrets"], name=name, server=state.url, user=request.user, now=now, life=request.life
        )
        return {"kubeconfig": config, "expirationTimestamp": timestamp(now + request.life)}


def _entry(shoot: ShootName, uid: str) -> str:
    """Name of a shoot's directory, as Gardener names BackupEntries."""
    return f"{technical_id(*shoot)}--{uid}"


def _migrated(request: StepRequest) -> EtcdBackup | None:
    """The snapshot that a shoot has come with from another seed."""
    backup = request.kept.get("stop-control-plane", {}).get(BACKUP)
    return None if backup is None else msgspec.convert(backup, EtcdBackup)


def _required(request: StepRequest) -> ObservedShoot:
    if request.observed is None:
        raise StepFailed(f"{request.step}: the shoot is not on this seed any more")
    return request.observed
