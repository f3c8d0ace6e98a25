"""The landscape that is tried: all processes, each behind lines of its own and with a clock that can be shifted."""

import asyncio
import json
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import yaml

from gardenbus.cli.local.directory import LandscapeDirectory
from gardenbus.credentials.certificates import Authority, new_authority
from gardenbus.embedded.configurations import DEFAULT_SCHEDULER_CONFIGURATION
from gardenbus.embedded.durability import Durability
from gardenbus.embedded.forking import ForkServer
from gardenbus.embedded.ports import LOOPBACK, choose_port
from gardenbus.embedded.process_specs import (
    Addresses,
    Configurations,
    ProcessSpec,
    kubeapi_spec,
    service_specs,
)
from gardenbus.embedded.processes import ManagedProcess, landscape_environ
from gardenbus.embedded.servers import NATS, REDIS, find_server, nats_configuration, redis_configuration
from tests.chaos import manifests
from tests.chaos.cluster import NODES, SENTINELS, ChaosCluster
from tests.chaos.plan import Targets
from tests.chaos.proxy import Line
from tests.chaos.shifted import ClockShift
from tests.support.eventually import eventually

ROOT = Path(__file__).parents[2]
SERVERS = ("nats", "redis")
WITHOUT_REDIS = ("gardenlet", "memberagent", "kubeapi")
READY_SECONDS = 90.0
QUICK = {
    "GARDENBUS_RESOURCE_COLLECTION_SECONDS": "0.5",
    "GARDENBUS_RESOURCE_INTERVAL_SECONDS": "0.5",
    "GARDENBUS_BACKOFF_CAP_SECONDS": "20",
}
"""Settings by which a landscape settles in seconds after a fault, and not in minutes."""

DEFAULT_REPLICAS: Mapping[str, int] = {
    "relay": 2,
    "apiserver": 2,
    "scheduler": 2,
    f"scheduler/{manifests.OTHER_SCHEDULER}": 2,
    "lifecycle": 2,
    "placement": 2,
    "gardenlet": 2,
    "memberagent": 2,
    "kubeapi": 2,
}


class LandscapePorts(NamedTuple):
    """Ports of the servers themselves."""

    nats: int
    nats_monitor: int
    redis: int


class ChaosLandscape:
    """See the module."""

    def __init__(
        self,
        directory: Path,
        *,
        replicas: Mapping[str, int] = DEFAULT_REPLICAS,
        report: Callable[[str], None] = print,
        is_cluster: bool = False,
    ) -> None:
        self.directory = LandscapeDirectory(directory)
        self.processes: dict[str, ManagedProcess] = {}
        self.lines: dict[str, Line] = {}
        self.clocks: dict[str, ClockShift] = {}
        self.wanted_ends: Counter[str] = Counter()
        """How often each process was ended by a fault."""
        in_use: set[int] = set()
        self.ports = LandscapePorts(*(choose_port(None, None, in_use) for _ in range(3)))
        self.cluster: ChaosCluster | None = None
        if is_cluster:
            self.directory.prepare()
            self.cluster = ChaosCluster(self.directory, in_use)
        self._replicas = replicas
        self.kube_ports = [choose_port(None, None, in_use) for _ in range(replicas.get("kubeapi", 0))]
        """Port of each replica of the Kubernetes API."""
        self._report = report
        self._fork_server = ForkServer()

    @property
    def servers(self) -> Sequence[str]:
        """Names of the servers, in the order of their start."""
        return (*NODES, *SENTINELS) if self.cluster else SERVERS

    @property
    def stores(self) -> Sequence[str]:
        """Servers with a directory of data."""
        return NODES if self.cluster else SERVERS

    @property
    def nats_ports(self) -> Mapping[str, int]:
        """Port of each server of NATS, without a line in between."""
        return self.cluster.nats_ports if self.cluster else {"nats": self.ports.nats}

    @property
    def kube_ca(self) -> Path:
        """Authority of the certificates of the Kubernetes API."""
        return self.directory.identity / "ca.crt"

    @property
    def nats_urls(self) -> list[str]:
        """All of NATS, without a line in between."""
        return [f"nats://{LOOPBACK}:{port}" for port in self.nats_ports.values()]

    @property
    def redis_url(self) -> str:
        """Redis without a line in between."""
        return self.cluster.redis_url if self.cluster else f"redis://{LOOPBACK}:{self.ports.redis}/0"

    def store(self, server: str) -> Path:
        """Directory of a server's data."""
        if self.cluster:
            return self.cluster.store(server)
        return self.directory.nats if server == "nats" else self.directory.redis

    def targets(self) -> Targets:
        """What faults can hit."""
        services = [name for name in self.processes if name not in self.servers]
        rolling = self.processes if self.cluster else services
        roles = sorted({self.processes[name].spec.role for name in rolling})
        nodes = NODES if self.cluster else ()
        return Targets(services, self.servers, sorted(self.lines), roles, [manifests.STRANGER], nodes)

    async def start(self) -> None:
        """Start all processes, and wait until they are ready."""
        self.directory.prepare()
        os.environ["PYTHONPATH"] = str(ROOT)
        await self._fork_server.start(self.directory.path, landscape_environ(self.directory))
        if self.cluster:
            await self.cluster.start()
        for server in self.servers:
            self.start_server(server)
        for spec in self._service_specs():
            self._start(await self._behind_lines(spec))
        await self.until_ready(list(self.processes))

    async def stop(self) -> None:
        """Stop everything."""
        for group in ([name for name in self.processes if name not in self.servers], self.servers):
            for name in group:
                self.send(name, signal.SIGCONT)
            await asyncio.gather(*(self.processes[name].stop() for name in group if name in self.processes))
        await asyncio.gather(*(line.close() for line in self.lines.values()))
        if self.cluster:
            await self.cluster.close()
        await self._fork_server.close()

    def start_server(self, server: str) -> None:
        """Start NATS or Redis on what its directory has."""
        self.wanted_ends[server] = 0
        if self.cluster:
            self._start(next(spec for spec in self.cluster.specs if spec.name == server))
            return
        file = self.directory.config / f"{server}.conf"
        if server == "nats":
            program, kind, port = find_server(NATS), "nats", self.ports.nats_monitor
            text = nats_configuration(
                port=self.ports.nats, monitor_port=port, store=self.store(server), durability=Durability.PROCESS
            )
            command = [str(program), "-c", str(file)]
        else:
            program, kind, port = find_server(REDIS), "redis", self.ports.redis
            text = redis_configuration(port=port, store=self.store(server), durability=Durability.PROCESS)
            command = [str(program), str(file)]
        file.write_text(text)
        store = self.store(server)
        store.mkdir(exist_ok=True)
        self._start(
            ProcessSpec(name=server, role=server, command=command, environ={}, kind=kind, port=port, store=store)
        )

    def send(self, name: str, number: signal.Signals) -> None:
        """Send a signal to a process, if it runs now."""
        pid = self.processes[name].pid if name in self.processes else None
        if pid is not None:
            os.kill(pid, number)

    def end(self, name: str, number: signal.Signals) -> None:
        """End a process that will be started again by itself."""
        if self.processes[name].pid is not None:
            self.wanted_ends[name] += 1
            self.send(name, number)

    async def until_ready(self, names: Sequence[str]) -> None:
        """Wait until processes are ready."""

        async def ready() -> None:
            assert not (unready := self.unready(names)), unready

        await eventually(ready, within=READY_SECONDS, every=0.05)

    def unready(self, names: Sequence[str] | None = None) -> dict[str, str]:
        """Processes that are not ready, and why."""
        chosen = [self.processes[name] for name in names or self.processes]
        return {each.spec.name: each.trouble or each.state for each in chosen if each.state != "ready"}

    def died(self) -> dict[str, int]:
        """How often each process has ended by itself."""
        return {name: each.restarts - self.wanted_ends[name] for name, each in self.processes.items()}

    def memory_mb(self) -> dict[str, float]:
        """Resident memory of each process."""
        sizes: dict[str, float] = {}
        for name, process in self.processes.items():
            try:
                pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
            except (OSError, IndexError):
                continue
            sizes[name] = pages * os.sysconf("SC_PAGE_SIZE") / 2**20
        return sizes

    def copy(self, server: str, to: Path) -> None:
        """Copy a server's directory as it is at one moment, as a snapshot of a file system does."""
        shutil.rmtree(to, ignore_errors=True)
        self.send(server, signal.SIGSTOP)
        try:
            shutil.copytree(self.store(server), to)
        finally:
            self.send(server, signal.SIGCONT)

    def replace_store(self, server: str, by: Path | None) -> None:
        """Replace the data of a stopped server by a copy, or by nothing."""
        for each in self.store(server).iterdir():
            shutil.rmtree(each) if each.is_dir() else each.unlink()
        if by is not None:
            shutil.copytree(by, self.store(server), dirs_exist_ok=True)

    def _start(self, spec: ProcessSpec) -> None:
        process = ManagedProcess(
            spec, self.directory, notify=self._report, changed=lambda: None, fork_server=self._fork_server
        )
        self.processes[spec.name] = process
        process.start()

    def _service_specs(self) -> Sequence[ProcessSpec]:
        config = self.directory.config
        configurations = Configurations(
            schedulers={
                "default-scheduler": _written(config / "scheduler.yaml", [DEFAULT_SCHEDULER_CONFIGURATION]),
                manifests.OTHER_SCHEDULER: _written(config / "scheduler-mine.yaml", [manifests.other_scheduler()]),
            },
            controller_manager=None,
            gardenlets=[
                _written(config / f"gardenlet-{number}.yaml", manifests.gardenlets(number))
                for number in range(manifests.GARDENLET_PROCESSES)
            ],
            member_agents=[
                _written(config / f"memberagent-{number}.yaml", manifests.members(number))
                for number in range(manifests.MEMBER_PROCESSES)
            ],
        )
        nats_url = ",".join(self.nats_urls)
        addresses = Addresses(nats_url, self.redis_url, "garden", are_clustered=self.cluster is not None)
        specs = service_specs(
            self.directory, addresses=addresses, configurations=configurations, replicas=self._replicas
        )
        return [*specs, *self._kube_specs(addresses)]

    def _kube_specs(self, addresses: Addresses) -> Sequence[ProcessSpec]:
        """Replicas of the Kubernetes API, with the certificate of an authority of their own."""
        now = datetime.now(UTC)
        authority = new_authority("chaos", now)
        server = Authority(authority).server([LOOPBACK], now)
        self.kube_ca.parent.mkdir(exist_ok=True)
        self.kube_ca.write_bytes(authority.certificate)
        self.kube_ca.with_name("server.crt").write_bytes(server.certificate)
        self.kube_ca.with_name("server.key").write_bytes(server.key)
        specs: list[ProcessSpec] = []
        for number, port in enumerate(self.kube_ports, 1):
            spec = kubeapi_spec(self.directory, addresses=addresses, host=LOOPBACK, port=port)
            name = f"{spec.name}-{number}"
            health = {"GARDENBUS_HEALTH_FILE": str(self.directory.health / f"{name}.json")}
            specs.append(spec._replace(name=name, environ={**spec.environ, **health}))
        return specs

    async def _behind_lines(self, spec: ProcessSpec) -> ProcessSpec:
        """The process with its own lines to the servers, and a clock that can be shifted."""
        environ = {**spec.environ, **QUICK}
        lines: list[Line] = []
        for server, port in self.nats_ports.items():
            lines.append(Line(port))
            self.lines[f"{spec.name}/{server}"] = lines[-1]
            await lines[-1].start()
        environ["GARDENBUS_NATS_URL"] = ",".join(f"nats://{LOOPBACK}:{line.port}" for line in lines)
        if spec.role in WITHOUT_REDIS:
            environ.pop("GARDENBUS_REDIS_URL", None)
        elif self.cluster:
            environ = dict(self.cluster.users.admitted(spec._replace(environ=environ)).environ)
        else:
            redis = self.lines[f"{spec.name}/redis"] = Line(self.ports.redis)
            await redis.start()
            environ["GARDENBUS_REDIS_URL"] = f"redis://{LOOPBACK}:{redis.port}/0"
        clock = self.clocks[spec.name] = ClockShift(self.directory.path / "clocks" / spec.name)
        command = [sys.executable, "-m", "tests.chaos.shifted", str(clock.file), *spec.command[2:]]
        return spec._replace(command=command, environ=environ)


def _written(file: Path, documents: Sequence[manifests.Document]) -> Path:
    file.write_text(yaml.safe_dump_all([json.loads(json.dumps(each)) for each in documents]))
    return file
