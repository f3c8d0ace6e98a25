"""Embedded landscape: started all at once (services wait for servers), recorded in landscape.json, stopped in order."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import msgspec

from gardenbus.cli.client.api_error import ApiError
from gardenbus.cli.client.targets import LandscapeTarget
from gardenbus.cli.local.directory import (
    DirectoryUnwritable,
    LandscapeDirectory,
    LandscapeFile,
    LandscapeState,
    ServiceEntry,
    write_whole,
)
from gardenbus.cli.manifests.files import SortedManifests
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.keys import Subjects
from gardenbus.common.errors import GardenbusError
from gardenbus.embedded.agents import ROLES as AGENTS
from gardenbus.embedded.agents import agents_of, configured_clusters, give_tokens, without_credentials
from gardenbus.embedded.clusters import cluster_plan, cluster_servers
from gardenbus.embedded.configurations import write_configurations
from gardenbus.embedded.durability import Durability
from gardenbus.embedded.external import probe_servers
from gardenbus.embedded.forking import ForkServer
from gardenbus.embedded.identities import EmbeddedIdentities
from gardenbus.embedded.ports import LOOPBACK, PortInUse, ReservedPort, choose_port
from gardenbus.embedded.process_specs import (
    STOP_ORDER,
    Addresses,
    ProcessSpec,
    dashboard_spec,
    kubeapi_spec,
    service_specs,
    unknown_schedulers,
)
from gardenbus.embedded.processes import ManagedProcess, landscape_environ
from gardenbus.embedded.redis_users import OPERATOR, RedisUsers, redis_users
from gardenbus.embedded.restoring import restore_backup
from gardenbus.embedded.server_certificate import keep_certificate
from gardenbus.embedded.servers import (
    NATS,
    NATS_WITH_IDENTITIES,
    REDIS,
    RedisAddress,
    find_server,
    fits_address,
    go_memory_limit,
    keep_streams,
    nats_configuration,
    new_monitor_path,
    redis_configuration,
)

START_SECONDS = 60.0
NEWCOMER_SECONDS = 0.1
"""Further time for each agent that has to be let in first."""

KUBERNETES_PORT = 6443

SERVERS = ("nats", "redis", "sentinel")

ADMITTING = ("apiserver", "identity")
"""Without these nobody gets a token."""

INVALID_SETTINGS = 2


class StartFailed(Exception):
    """The landscape did not come up; the message names the process and the cause."""


class UpOptions(NamedTuple):
    """Options of `gardenbus up`."""

    directory: Path
    given: SortedManifests
    replicas: Mapping[str, int]
    nats_url: str | None = None
    redis_url: str | None = None
    nats_port: int | None = None
    redis_port: int | None = None
    dashboard_port: int | None = None
    kube_port: int | None = None
    prefix: str = "garden"
    durability: Durability = Durability.PROCESS
    is_insecure: bool = False
    """Clients of the embedded NATS may act as anybody."""
    log_level: str | None = None
    backend: str | None = None
    is_cluster: bool = False
    """Three servers of NATS, and a Redis with replicas and Sentinels."""
    restored_from: str = ""
    """Place of the backup that the store begins with."""


class EmbeddedLandscape:
    """All processes of one landscape. Needs the directory's lock to be held."""

    def __init__(self, options: UpOptions, *, notify: Callable[[str], None]) -> None:
        self._options = options
        self._notify = notify
        self.directory = LandscapeDirectory(options.directory)
        self.processes: list[ManagedProcess] = []
        self.seeds: Sequence[str] = ()
        """Seeds whose gardenlets are started here."""
        self.clusters: Sequence[str] = ()
        """Member clusters whose agents are started here."""
        self.dashboard_url = ""
        self._ports: dict[str, int] = {}
        self._addresses = Addresses("", "", options.prefix)
        self._identities: EmbeddedIdentities | None = None
        self._file_state = LandscapeFile(nats_url="", redis_url="")
        self._redis_users: RedisUsers | None = None
        self._supervisor_pid: int | None = None
        self._ports_in_use: set[int] = set()
        self._kubernetes_port: ReservedPort | None = None
        """The usual port of a Kubernetes API, where this landscape has it."""
        self._newcomers: Mapping[Principal, Path] = {}
        """Agents that need a token to come in, and their directories."""
        self._keeping: asyncio.Task[None] | None = None

    @property
    def addresses(self) -> Addresses:
        """Addresses of its servers."""
        return self._addresses

    @property
    def target(self) -> LandscapeTarget:
        """The landscape as its operator's client sees it."""
        login = self._identities.operator if self._identities else None
        return LandscapeTarget(
            self._addresses.nats_url,
            self._addresses.prefix,
            login=(login.user, login.password) if login else None,
            ca=self._ca or None,
        )

    @property
    def _ca(self) -> str:
        return str(self._identities.authorities_file) if self._identities else ""

    async def start(self, supervisor_pid: int) -> None:
        """Bring everything up until it is ready; that it is, is recorded once `note_ready` is called.

        Raises StartFailed, PortTaken, ServerMissing, DirectoryUnwritable, Unavailable.
        """
        await probe_servers(self._options.nats_url, self._options.redis_url)
        self.directory.prepare()
        self._supervisor_pid = supervisor_pid
        servers = self._server_specs()
        configurations, self.seeds = write_configurations(self.directory, self._options.given)
        self.clusters = configured_clusters(configurations)
        if unknown := unknown_schedulers(self._options.replicas, configurations.schedulers):
            names = ", ".join(configurations.schedulers)
            raise StartFailed(f"--replicas {unknown[0]}: no configuration has this schedulerName; there are {names}")
        services = service_specs(
            self.directory,
            addresses=self._addresses,
            configurations=configurations,
            replicas=self._options.replicas,
            log_level=self._options.log_level,
        )
        services = [self._redis_users.admitted(spec) for spec in services] if self._redis_users else services
        services.append(self._dashboard_spec())
        if self._identities and find_spec("gardenbus.kubeapi"):
            services.append(self._kubeapi_spec())
        if self._identities:
            agents = agents_of(self.directory, configurations, self.seeds)
            self._newcomers = without_credentials(agents, self._identities.authorities(), datetime.now(UTC))
        self._write("starting", is_needed=True)
        await self._start_all([*servers, *services])
        if self._identities is not None:
            keeping = keep_certificate(self._identities, self._reload_nats, notify=self._notify)
            self._keeping = asyncio.create_task(keeping, name="certificate of NATS")

    def note_ready(self) -> None:
        """Record that all runs, and has what it was to begin with: `up --detach` returns."""
        self._write("ready")

    def _reload_nats(self) -> None:
        self._notify("NATS has another certificate")
        for process in self.processes:
            if process.spec.role == "nats":
                process.reload()

    async def stop(self) -> None:
        """Stop everything, in an order in which no process waits for another, even if nothing can be written."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.wait((self._keeping,))
        if not self._addresses.nats_url:
            self._write_never_started()
            return
        self._write("stopping")
        for roles in STOP_ORDER:
            group = [process for process in self.processes if process.spec.role in roles]
            await asyncio.gather(*(process.stop() for process in group))
        if self._kubernetes_port is not None:
            self._kubernetes_port.release()
        self._supervisor_pid = None
        self._write("stopped")

    def _server_specs(self) -> Sequence[ProcessSpec]:
        before = self.directory.read()
        previous = before.ports if before else {}
        self._require_same_servers()
        self._ports = dict(previous)
        if self._options.is_cluster:
            return self._cluster_specs(previous)
        in_use = self._ports_in_use
        specs: list[ProcessSpec] = []
        nats_url, redis_url = self._options.nats_url, self._options.redis_url
        if nats_url is None and not self._options.is_insecure:
            self._identities = EmbeddedIdentities(self.directory.identity, Subjects(self._options.prefix))
        if nats_url is None:
            port = choose_port(self._options.nats_port, previous.get("nats"), in_use)
            monitor = choose_port(None, previous.get("nats-monitor"), in_use)
            self._ports |= {"nats": port, "nats-monitor": monitor}
            specs.append(self._nats_spec(port, monitor))
            nats_url = f"nats://{LOOPBACK}:{port}"
        if redis_url is None:
            redis = self._redis_address(previous.get("redis"))
            specs.append(self._redis_spec(redis))
            redis_url = redis.url
        syncs_always = self._options.durability is Durability.POWER
        identity_of = self._identities.environ if self._identities else None
        self._addresses = Addresses(
            nats_url, redis_url, self._options.prefix, syncs_always, identity_of, agents_share=self._options.is_insecure
        )
        return specs

    def _require_same_servers(self) -> None:
        """Raise StartFailed where the state is that of a cluster and none is wanted, or the other way round."""
        place = self.directory
        if self._options.is_cluster and any(
            state.exists() for state in (place.nats / "jetstream", place.redis / "appendonlydir")
        ):
            raise StartFailed(f"{place.path} has the state of single servers: start without --cluster, or with --fresh")
        if not self._options.is_cluster and (place.redis / "redis-1").exists() and self._options.redis_url is None:
            raise StartFailed(f"{place.path} has the state of a cluster: start with --cluster, or with --fresh")

    def _cluster_specs(self, previous: Mapping[str, int]) -> Sequence[ProcessSpec]:
        options, prefix = self._options, self._options.prefix
        if not options.is_insecure:
            self._identities = EmbeddedIdentities(self.directory.identity, Subjects(prefix))
        else:
            self._notify("INSECURE: whoever reaches NATS on this machine may act as anybody")
        self._redis_users = redis_users(self.directory, prefix)
        cluster = cluster_servers(
            cluster_plan(self.directory, options.durability, previous, self._ports_in_use),
            nats=find_server(NATS_WITH_IDENTITIES if self._identities else NATS),
            redis=find_server(REDIS),
            authorization=self._identities.server_configuration() if self._identities else "",
            users=self._redis_users,
        )
        self._ports |= cluster.ports
        syncs_always = options.durability is Durability.POWER
        identity_of = self._identities.environ if self._identities else None
        self._addresses = Addresses(
            cluster.nats_url,
            cluster.redis_url,
            prefix,
            syncs_always,
            identity_of,
            agents_share=options.is_insecure,
            are_clustered=True,
        )
        return cluster.specs

    def _nats_spec(self, port: int, monitor_port: int) -> ProcessSpec:
        program = find_server(NATS_WITH_IDENTITIES if self._identities else NATS)
        file = self.directory.config / "nats.conf"
        path = new_monitor_path()
        text = nats_configuration(
            port=port,
            monitor_port=monitor_port,
            monitor_path=path,
            store=self.directory.nats,
            durability=self._options.durability,
        )
        if self._identities:
            text += self._identities.server_configuration()
        else:
            self._notify(f"INSECURE: whoever reaches NATS on port {port} of this machine may act as anybody")
        keep_streams(self.directory.nats, has_accounts=self._identities is not None)
        write_whole(file, text.encode())
        return ProcessSpec(
            name="nats",
            role="nats",
            command=[str(program), "-c", str(file)],
            environ=go_memory_limit(),
            kind="nats",
            port=monitor_port,
            path=path,
            store=self.directory.nats,
        )

    def _redis_address(self, previous_port: int | None) -> RedisAddress:
        """A socket below the state directory; a port with a password where one is wanted or the path is too long."""
        wanted, socket = self._options.redis_port, self.directory.redis_socket
        if wanted is None and fits_address(socket):
            self._ports.pop("redis", None)
            return RedisAddress(socket)
        port = choose_port(wanted, previous_port, self._ports_in_use)
        self._ports["redis"] = port
        return RedisAddress(port=port)

    def _redis_spec(self, address: RedisAddress) -> ProcessSpec:
        program = find_server(REDIS)
        file = self.directory.config / "redis.conf"
        users = self._redis_users = redis_users(self.directory, self._options.prefix)
        text = redis_configuration(
            **address._asdict(),
            store=self.directory.redis,
            durability=self._options.durability,
            acl_file=users.acl_file,
        )
        write_whole(file, text.encode())
        return ProcessSpec(
            name="redis",
            role="redis",
            command=[str(program), str(file)],
            environ={},
            kind="redis",
            **address._asdict(),
            user=OPERATOR,
            password=users.operator_password,
            store=self.directory.redis,
        )

    def _dashboard_spec(self) -> ProcessSpec:
        port = choose_port(self._options.dashboard_port, self._ports.get("dashboard"), self._ports_in_use)
        self._ports["dashboard"] = port
        spec = dashboard_spec(
            self.directory,
            addresses=self._addresses,
            host=LOOPBACK,
            port=port,
            log_level=self._options.log_level,
        )
        self.dashboard_url = spec.url or ""
        return spec

    def _kubeapi_spec(self) -> ProcessSpec:
        """The Kubernetes API, which serves those alone who prove who they are: on its usual port where that is free."""
        previous = self._ports.get("kubeapi", KUBERNETES_PORT)
        if previous == KUBERNETES_PORT and self._options.kube_port is None:
            try:
                self._kubernetes_port = ReservedPort(KUBERNETES_PORT)
            except PortInUse:
                previous = None
        port = self._ports["kubeapi"] = choose_port(self._options.kube_port, previous, self._ports_in_use)
        return kubeapi_spec(
            self.directory,
            addresses=self._addresses,
            host=LOOPBACK,
            port=port,
            log_level=self._options.log_level,
        )

    async def _start_all(self, specs: Sequence[ProcessSpec]) -> None:
        fork_server = ForkServer()
        try:
            await fork_server.start(self.directory.path, landscape_environ(self.directory))
            await self._start_each(specs, fork_server)
        finally:
            await fork_server.close()

    async def _start_each(self, specs: Sequence[ProcessSpec], fork_server: ForkServer) -> None:
        started = [
            ManagedProcess(
                spec, self.directory, notify=self._notify, changed=lambda: self._write(None), fork_server=fork_server
            )
            for spec in specs
        ]
        self.processes += started
        late = [process for process in started if self._newcomers and process.spec.role in AGENTS]
        servers = [process for process in started if process.spec.role in SERVERS]
        for process in servers:
            process.start()
        if self._options.restored_from:
            await self._restore(servers, asyncio.get_running_loop().time() + START_SECONDS)
        deadline = asyncio.get_running_loop().time() + START_SECONDS + NEWCOMER_SECONDS * len(self._newcomers)
        for process in started:
            if process not in (*servers, *late):
                process.start()
        if late:
            await self._admit([process for process in started if process.spec.role in ADMITTING], deadline)
        for process in late:
            process.start()
        await self._until_ready(started, deadline)

    async def _restore(self, servers: Sequence[ManagedProcess], deadline: float) -> None:
        """Fill the store before anybody serves it."""
        await self._until_ready(servers, deadline)
        try:
            done = await restore_backup(self._options.restored_from, self.target, self.directory.path)
        except (GardenbusError, OSError) as error:
            raise StartFailed(f"nothing is restored from {self._options.restored_from}: {error}") from error
        self._notify(f"{done.objects} objects and {done.requests} requests restored, as of {done.taken_at}")
        for name in done.unread:
            self._notify(f"{name} could not be read: who was revoked since may come in again")

    async def _admit(self, admitting: Sequence[ManagedProcess], deadline: float) -> None:
        """Have tokens lie ready for agents that start for the first time, once somebody can make and check them."""
        await self._until_ready(admitting, deadline)
        try:
            await give_tokens(self.target, self._newcomers)
        except (ApiError, GardenbusError, OSError) as error:
            raise StartFailed(f"no bootstrap tokens for the agents: {error}") from error

    async def _until_ready(self, started: Sequence[ManagedProcess], deadline: float) -> None:
        while unready := [process for process in started if process.state != "ready"]:
            for process in unready:
                if process.last_exit == INVALID_SETTINGS:
                    raise StartFailed(f"{process.spec.name} rejects its settings: {_tail(process.log_file)}")
            if asyncio.get_running_loop().time() > deadline:
                troubles = "; ".join(f"{process.spec.name}: {process.trouble}" for process in unready)
                raise StartFailed(f"not ready in time: {troubles} (logs: {self.directory.logs})")
            await asyncio.sleep(0.05)

    def _operators_redis_url(self) -> str:
        url = self._addresses.redis_url
        return self._redis_users.operators_url(url) if self._redis_users else url

    def _write_never_started(self) -> None:
        """Keep an earlier `up`'s landscape.json (its ports are used again), but record that nothing is up."""
        before = self.directory.read()
        if before is not None:
            with contextlib.suppress(DirectoryUnwritable):
                self.directory.write(msgspec.structs.replace(before, state="stopped", supervisor_pid=None))

    def _write(self, state: LandscapeState | None, *, is_needed: bool = False) -> None:
        """Keep landscape.json current; None keeps the recorded state.

        Raises DirectoryUnwritable if it `is_needed`; else that is only said, and the next change writes it.
        """
        entries = [process.entry() for process in self.processes]
        external = {"nats": self._options.nats_url, "redis": self._options.redis_url}
        entries = [ServiceEntry(name=name) for name, url in external.items() if url] + entries
        operator = self._identities.operator if self._identities else None
        landscape = LandscapeFile(
            nats_url=self._addresses.nats_url,
            redis_url=self._operators_redis_url(),
            prefix=self._addresses.prefix,
            services=tuple(entries),
            state=state or self._file_state.state,
            supervisor_pid=self._supervisor_pid,
            ports=self._ports,
            nats_user=operator.user if operator else "",
            nats_password=operator.password if operator else "",
            ca=self._ca,
        )
        if landscape == self._file_state:
            return
        try:
            self.directory.write(landscape)
        except DirectoryUnwritable as error:
            if is_needed:
                raise
            self._notify(str(error))
        self._file_state = landscape


def _tail(file: Path, lines: int = 5) -> str:
    try:
        text = file.read_text(errors="replace")
    except OSError:
        return "no log"
    return " | ".join(text.splitlines()[-lines:])
