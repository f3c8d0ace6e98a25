"""Servers and services for one measurement, in a directory of their own, and what they cost."""

import asyncio
import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from gardenbus.bench.comparison import MEASURER
from gardenbus.bench.harness.identities import RigIdentities
from gardenbus.bench.harness.process_costs import children, cpu_seconds
from gardenbus.bench.harness.retries import BenchFailed, Retries
from gardenbus.cli.client.store_address import CLUSTER_REPLICAS
from gardenbus.cli.local.directory import LandscapeDirectory, write_whole
from gardenbus.common.adapters.nats import jetstream
from gardenbus.common.adapters.nats.credentials import NO_CREDENTIALS, Credentials
from gardenbus.common.adapters.nats.jetstream import JetStreamBus
from gardenbus.common.adapters.nats.streams import StreamSettings
from gardenbus.common.adapters.redis.connection import RedisConnection
from gardenbus.common.adapters.redis.store import RedisStore
from gardenbus.common.api.keys import Subjects
from gardenbus.common.errors import Unavailable
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.embedded.clusters import NUMBERS, cluster_plan, cluster_servers
from gardenbus.embedded.durability import Durability
from gardenbus.embedded.ports import LOOPBACK, choose_port
from gardenbus.embedded.process_specs import Addresses, ProcessSpec
from gardenbus.embedded.processes import ManagedProcess
from gardenbus.embedded.redis_users import redis_users
from gardenbus.embedded.servers import NATS, REDIS, find_server, nats_configuration, redis_configuration
from gardenbus.relay.adapters.redis_outbox import RedisOutbox

READY_SECONDS = 60.0

NatsAccess = Literal["insecure", "permissions", "tls"]
"""Clients that NATS lets in: all; those that prove who they are, each for its row of the table; the same over TLS."""

NO_REWRITE = "auto-aof-rewrite-percentage 0\n"
"""Redis rewrites its log when it has doubled: that would fall into one measurement or another by chance."""

POLL_SECONDS = 0.01


class Cost(NamedTuple):
    """CPU time and memory that a process has used so far."""

    cpu_seconds: float
    rss_mb: float


class Rig:
    """Running servers, and services as they are wanted. `store`, `bus`, `redis` are the measurer's own connections."""

    def __init__(
        self, directory: LandscapeDirectory, addresses: Addresses, credentials: Credentials = NO_CREDENTIALS
    ) -> None:
        self.directory = directory
        self._credentials = credentials
        self.retries = Retries(directory.path)
        self.addresses = addresses
        self.subjects = Subjects(addresses.prefix)
        self.processes: dict[str, ManagedProcess] = {}
        replicas = CLUSTER_REPLICAS if addresses.are_clustered else 0
        self.redis = RedisConnection(addresses.redis_url, addresses.prefix, timeout_seconds=60.0, replicas=replicas)
        self.clock = SystemClock()
        self.store = RedisStore(self.redis, self.clock, reporter="bench")
        self.begin_window: Callable[[], Awaitable[None]] = _nothing
        """Called right before CPU seconds are counted."""
        self._bus: JetStreamBus | None = None
        self._stack = contextlib.AsyncExitStack()

    @property
    def bus(self) -> JetStreamBus:
        """The measurer's connection to NATS."""
        assert self._bus is not None, "the servers have been started"
        return self._bus

    def outbox(self) -> RedisOutbox:
        """The relay's side of the store, for loading in bulk."""
        return RedisOutbox(self.redis, self.clock, leader="bench")

    async def start_servers(self, specs: Sequence[ProcessSpec]) -> None:
        """Start NATS and Redis and connect."""
        await self._start(specs)
        await self.redis.ensure_ready()
        self._stack.push_async_callback(self.redis.close)
        self._bus = await self.connect("bench")

    async def start(
        self, role: str, *arguments: str, module: str = "", environ: Mapping[str, str] | None = None
    ) -> None:
        """Start a service (`python -m gardenbus.<role>`, or another module) and wait until it is ready."""
        command = [sys.executable, "-m", module or f"gardenbus.{role}", *arguments]
        environment = self.addresses.environ(role) | self._environ(role) | dict(environ or {})
        await self._start([ProcessSpec(name=role, role=role, command=command, environ=environment)])

    async def connect(self, name: str) -> JetStreamBus:
        """Another connection of the measurer's; closed in the end."""
        return await self._stack.enter_async_context(
            jetstream.connect(
                self.addresses.nats_url,
                name,
                self.addresses.prefix,
                syncs_always=self.addresses.nats_syncs_always,
                streams=StreamSettings(replicas=len(NUMBERS) if self.addresses.are_clustered else None),
                credentials=self._credentials,
            )
        )

    async def restart(self, name: str) -> None:
        """Stop a process and start it again; returns when it is ready."""
        spec = self.processes[name].spec
        await self.processes.pop(name).stop()
        await self._start([spec])

    async def stop(self, role: str) -> None:
        """Stop a service."""
        await self.processes.pop(role).stop()

    async def close(self) -> None:
        """Stop everything: services first."""
        servers = [name for name, process in self.processes.items() if process.spec.kind != "service"]
        services = [name for name in self.processes if name not in servers]
        await asyncio.gather(*(self.processes.pop(name).stop() for name in services))
        await self._stack.aclose()
        await asyncio.gather(*(self.processes.pop(name).stop() for name in servers))

    def costs(self) -> Mapping[str, Cost]:
        """Cost of every process so far, and the measurer's own: the others are its children, of other rigs as well."""
        pids = {name: process.pid for name, process in self.processes.items()}
        costs = {name: cost_of(pid) for name, pid in pids.items() if pid is not None}
        return costs | {MEASURER: cost_of(os.getpid(), without=children(os.getpid()))}

    def check_running(self) -> None:
        """Raise BenchFailed when a process has ended by itself: that invalidates a measurement."""
        for process in self.processes.values():
            if process.restarts:
                raise BenchFailed(f"{process.spec.name} {process.trouble} (log: {process.log_file})")

    def health_url(self, name: str) -> str:
        """URL of a service's health and metrics."""
        return str(self.processes[name].entry().health_url)

    async def _start(self, specs: Sequence[ProcessSpec]) -> None:
        started = [
            ManagedProcess(spec, self.directory, notify=lambda _text: None, changed=lambda: None) for spec in specs
        ]
        for process in started:
            self.processes[process.spec.name] = process
            process.start()
        deadline = asyncio.get_running_loop().time() + READY_SECONDS
        while unready := [process for process in started if process.state != "ready"]:
            if unready[0].restarts or asyncio.get_running_loop().time() > deadline:
                trouble = unready[0].trouble
                raise BenchFailed(f"{unready[0].spec.name} did not start: {trouble} (log: {unready[0].log_file})")
            await asyncio.sleep(POLL_SECONDS)

    def _environ(self, role: str) -> dict[str, str]:
        return {
            "GARDENBUS_HEALTH_FILE": str(self.directory.health / f"{role}.json"),
            "GARDENBUS_HEALTH_PORT": "0",
            "GARDENBUS_HEALTH_HOST": LOOPBACK,
            "GARDENBUS_LOG_FORMAT": "json",
        }


@contextlib.asynccontextmanager
async def a_rig(
    durability: Durability,
    *,
    access: NatsAccess = "insecure",
    is_cluster: bool = False,
) -> AsyncGenerator[Rig]:
    """Servers in a directory that is removed at the end: one of NATS and one Redis, or those of `up --cluster`.

    When a measurement fails the directory is kept, and the BenchFailed that is raised says where the logs are.
    """
    path = Path(tempfile.mkdtemp(prefix="gardenbus-bench-"))
    is_kept = False
    directory = LandscapeDirectory(path)
    directory.prepare()
    identities = None if access == "insecure" else RigIdentities(directory.identity, has_tls=access == "tls")
    addresses, specs = (_clustered_servers if is_cluster else _single_servers)(directory, durability, identities)
    rig = Rig(directory, addresses, identities.credentials if identities else NO_CREDENTIALS)
    try:
        await rig.start_servers(specs)
        yield rig
    except (BenchFailed, Unavailable) as error:
        is_kept = True
        kind = type(error) if isinstance(error, BenchFailed) else BenchFailed
        raise kind(f"{error} (logs: {directory.logs})") from error
    finally:
        await rig.close()
        if not is_kept:
            shutil.rmtree(path, ignore_errors=True)


def cost_of(pid: int, *, without: Collection[int] = ()) -> Cost:
    """CPU seconds (user and system, children included but those) and resident memory of a process; zero if gone."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return Cost(cpu_seconds(pid, without), pages * os.sysconf("SC_PAGE_SIZE") / 1e6)
    except (OSError, IndexError):
        return Cost(0.0, 0.0)


async def _nothing() -> None:
    pass


def _single_servers(
    directory: LandscapeDirectory, durability: Durability, identities: RigIdentities | None
) -> tuple[Addresses, Sequence[ProcessSpec]]:
    in_use: set[int] = set()
    nats, monitor, redis = (choose_port(None, None, in_use) for _ in range(3))
    nats_text = nats_configuration(port=nats, monitor_port=monitor, store=directory.nats, durability=durability)
    nats_text += identities.server_configuration() if identities else ""
    redis_text = redis_configuration(port=redis, store=directory.redis, durability=durability) + NO_REWRITE
    nats_file, redis_file = directory.config / "nats.conf", directory.config / "redis.conf"
    write_whole(nats_file, nats_text.encode())
    write_whole(redis_file, redis_text.encode())
    addresses = Addresses(
        f"nats://{LOOPBACK}:{nats}",
        f"redis://{LOOPBACK}:{redis}/0",
        "garden",
        durability is Durability.POWER,
        identities.environ if identities else None,
    )
    return addresses, [
        ProcessSpec("nats", "nats", [str(find_server(NATS)), "-c", str(nats_file)], {}, "nats", monitor),
        ProcessSpec("redis", "redis", [str(find_server(REDIS)), str(redis_file)], {}, "redis", redis),
    ]


def _clustered_servers(
    directory: LandscapeDirectory, durability: Durability, identities: RigIdentities | None
) -> tuple[Addresses, Sequence[ProcessSpec]]:
    users = redis_users(directory, "garden")
    users.acl_file.write_text(users.acl_file.read_text().replace("+config|get", "+config|get +config|set"))
    servers = cluster_servers(
        cluster_plan(directory, durability, {}, set()),
        nats=find_server(NATS),
        redis=find_server(REDIS),
        authorization=identities.server_configuration() if identities else "",
        users=users,
    )
    for number in NUMBERS:
        with (directory.config / f"redis-{number}.conf").open("a") as file:
            file.write(NO_REWRITE)
    addresses = Addresses(
        servers.nats_url,
        users.operators_url(servers.redis_url),
        "garden",
        durability is Durability.POWER,
        identities.environ if identities else None,
        are_clustered=True,
    )
    return addresses, servers.specs
