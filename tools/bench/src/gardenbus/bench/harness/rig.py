"""Servers and services for one measurement, in a directory of their own, and what they cost."""

import asyncio
import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from gardenbus.bench.comparison import MEASURER
from gardenbus.bench.harness.identities import RigIdentities
from gardenbus.bench.harness.process_costs import cpu_seconds
from gardenbus.bench.harness.retries import BenchFailed, Retries
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
from gardenbus.embedded.durability import Durability
from gardenbus.embedded.ports import LOOPBACK, choose_port
from gardenbus.embedded.process_specs import Addresses, ProcessSpec
from gardenbus.embedded.processes import ManagedProcess
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
        self.redis = RedisConnection(addresses.redis_url, addresses.prefix, timeout_seconds=60.0)
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
                streams=StreamSettings(),
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
        """Cost of every process so far, the measurer included."""
        pids = {name: process.pid for name, process in self.processes.items()} | {MEASURER: os.getpid()}
        return {name: cost_of(pid) for name, pid in pids.items() if pid is not None}

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
) -> AsyncGenerator[Rig]:
    """Servers in a directory that is removed at the end.

    When a measurement fails the directory is kept, and the BenchFailed that is raised says where the logs are.
    """
    path = Path(tempfile.mkdtemp(prefix="gardenbus-bench-"))
    is_kept = False
    directory = LandscapeDirectory(path)
    directory.prepare()
    credentials = NO_CREDENTIALS
    if access == "insecure":
        addresses, specs = _single_servers(directory, durability)
    else:
        identities = RigIdentities(directory.identity, has_tls=access == "tls")
        addresses, specs = _single_servers(directory, durability, identities)
        credentials = identities.credentials
    rig = Rig(directory, addresses, credentials)
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


def cost_of(pid: int) -> Cost:
    """CPU seconds (user and system, children included) and resident memory of a process; zero where it is gone."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return Cost(cpu_seconds(pid), pages * os.sysconf("SC_PAGE_SIZE") / 1e6)
    except (OSError, IndexError):
        return Cost(0.0, 0.0)


async def _nothing() -> None:
    pass


def _single_servers(
    directory: LandscapeDirectory, durability: Durability, identities: RigIdentities | None = None
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
