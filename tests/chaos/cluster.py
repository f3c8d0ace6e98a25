"""Cluster of servers under faults: three of NATS, three of Redis, three Sentinels, as `up --cluster` starts them.

Each route between two servers of NATS is a line of its own, which a partition cuts. Services have a line to each of
them. Each server of Redis announces the port of a line, by which its replicas, Sentinels and services find it; servers
and Sentinels connect from addresses of their own, by which a line tells them apart.
"""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import nats
import nats.errors
import redis.asyncio
import redis.exceptions

from gardenbus.cli.local.directory import LandscapeDirectory
from gardenbus.embedded.clusters import NUMBERS, cluster_plan, cluster_servers, last_primary
from gardenbus.embedded.durability import Durability
from gardenbus.embedded.ports import LOOPBACK
from gardenbus.embedded.process_specs import ProcessSpec
from gardenbus.embedded.redis_users import OPERATOR, redis_users
from gardenbus.embedded.servers import NATS, REDIS, find_server
from tests.chaos.proxy import Line

NODES = tuple(f"{kind}-{number}" for kind in ("nats", "redis") for number in NUMBERS)
SENTINELS = tuple(f"sentinel-{number}" for number in NUMBERS)
REPLICAS = 2
PROBE_TIMEOUT_SECONDS = 2.0
SOURCES = {name: f"127.0.0.{number}" for number, name in enumerate((*NODES, *SENTINELS), 11)}
"""Addresses that servers of Redis and Sentinels connect from; everybody else does from LOOPBACK."""
NOWHERE = f"{LOOPBACK}:1"


class NoLeader(Exception):
    """A stream has no leader now, or nobody says who it is."""


class ChaosCluster:
    """See the module. `start` comes first."""

    def __init__(self, directory: LandscapeDirectory, in_use: set[int]) -> None:
        self._directory = directory
        self._plan = cluster_plan(directory, Durability.PROCESS, {}, in_use)
        self.users = redis_users(directory, "garden")
        self._servers = cluster_servers(
            self._plan, nats=find_server(NATS), redis=find_server(REDIS), authorization="", users=self.users
        )
        self._routes: dict[tuple[str, str], Line] = {}
        self._redis_lines: dict[str, Line] = {}

    @property
    def specs(self) -> Sequence[ProcessSpec]:
        """The processes of all servers."""
        return self._servers.specs

    @property
    def nats_ports(self) -> Mapping[str, int]:
        """Port of each server of NATS."""
        return {name: self._plan.ports[name] for name in NODES if name.startswith("nats")}

    @property
    def redis_url(self) -> str:
        """Where Sentinel is asked."""
        return self._servers.redis_url

    @property
    def has_redis_lines(self) -> bool:
        """Whether a server of Redis can be cut off."""
        return bool(self._redis_lines)

    async def start(self) -> None:
        """Put a line into each route, and before each server of Redis."""
        for name in self.nats_ports:
            await self._start_routes(name)
        if sys.platform == "linux":
            await self._start_redis_lines()

    async def _start_routes(self, name: str) -> None:
        """Servers that learn of others by gossip get an address where nobody is."""
        file = self._directory.config / f"{name}.conf"
        text = file.read_text()
        for other in self.nats_ports:
            if other == name:
                continue
            port = self._plan.ports[f"{other}-routes"]
            line = self._routes[name, other] = Line(port)
            await line.start()
            text = re.sub(rf"@{re.escape(LOOPBACK)}:{port}\b", f"@{LOOPBACK}:{line.port}", text)
        file.write_text(text.replace("cluster {", f'cluster {{\n  advertise: "{NOWHERE}"\n  no_advertise: true', 1))

    async def _start_redis_lines(self) -> None:
        names = [name for name in NODES if name.startswith("redis")]
        for name in names:
            line = self._redis_lines[name] = Line(self._plan.ports[name])
            await line.start()
        for name in (*names, *SENTINELS):
            file = self._directory.config / f"{name}.conf"
            text = file.read_text()
            for other in names:
                port = self._plan.ports[other]
                text = re.sub(rf"{re.escape(LOOPBACK)} {port}\b", f"{LOOPBACK} {self._redis_lines[other].port}", text)
            text += f"bind-source-addr {SOURCES[name]}\n"
            if name in SENTINELS:
                text += f"sentinel announce-ip {LOOPBACK}\n"
            else:
                text += f"replica-announce-ip {LOOPBACK}\nreplica-announce-port {self._redis_lines[name].port}\n"
            file.write_text(text)

    async def close(self) -> None:
        """End all lines."""
        for line in (*self._routes.values(), *self._redis_lines.values()):
            await line.close()

    def isolate(self, name: str, *, is_alone: bool) -> None:
        """Cut a server of NATS off from the others, or from one of them alone. Who is connected to it stays so."""
        other = next(each for each in self.nats_ports if each != name)
        for pair, line in self._routes.items():
            if name in pair and (is_alone or other in pair):
                line.half_open()

    def heal(self, name: str) -> None:
        """Let it see the others again."""
        for pair, line in self._routes.items():
            if name in pair:
                line.heal()

    def cut_off(self, name: str, whom: str) -> None:
        """Cut a server of Redis off from `everybody`, from other `servers` and Sentinels, or from `clients`."""
        own = SOURCES[name]
        self._redis_lines[name].half_open(
            lambda source: whom == "everybody" or (whom == "clients") == (source == LOOPBACK)
        )
        if whom != "clients":
            for other, line in self._redis_lines.items():
                if other != name:
                    line.half_open(lambda source: source == own)

    def rejoin(self) -> None:
        """Let all servers of Redis be reached again."""
        for line in self._redis_lines.values():
            line.heal()

    def store(self, name: str) -> Path:
        """Directory of a server's data."""
        return (self._directory.nats if name.startswith("nats") else self._directory.redis) / name

    def primary(self) -> str:
        """Name of the Redis that Sentinels call the master."""
        announced = {name: line.port for name, line in self._redis_lines.items()}
        return f"redis-{last_primary(self._directory, {**self._plan.ports, **announced})}"

    async def leader(self, stream: str) -> str:
        """Name of the server of NATS that leads a stream. Raises NoLeader."""
        servers = [f"nats://{LOOPBACK}:{port}" for port in self.nats_ports.values()]
        try:
            client = await nats.connect(servers, connect_timeout=1, allow_reconnect=False)  # pyright: ignore[reportUnknownMemberType]
            try:
                response = await client.request(f"$JS.API.STREAM.INFO.{stream}", b"", timeout=PROBE_TIMEOUT_SECONDS)
            finally:
                await client.close()
            leader = json.loads(response.data)["cluster"]["leader"]
            return next(name for name, port in self.nats_ports.items() if leader == f"gardenbus-{port}")
        except (nats.errors.Error, OSError, TimeoutError, KeyError, StopIteration) as error:
            raise NoLeader(f"{stream}: {type(error).__name__} {error}") from error

    async def unready(self) -> Mapping[str, str]:
        """What Redis' replication lacks: the next fault may hit the only one that has a write."""
        client = redis.asyncio.Redis(
            host=LOOPBACK,
            port=self._plan.ports[self.primary()],
            username=OPERATOR,
            password=self.users.operator_password,
            socket_timeout=PROBE_TIMEOUT_SECONDS,
            socket_connect_timeout=PROBE_TIMEOUT_SECONDS,
        )
        try:
            found: dict[str, Any] = await client.info("replication")  # pyright: ignore[reportUnknownMemberType]
        except (redis.exceptions.RedisError, OSError, TimeoutError) as error:
            return {self.primary(): f"{type(error).__name__}: {error}"}
        finally:
            await client.aclose()
        replicas = [value for key, value in found.items() if re.fullmatch(r"slave\d+", key)]
        online = [each for each in replicas if each["state"] == "online"]
        if found["role"] != "master" or len(online) < REPLICAS:
            return {self.primary(): f"{found['role']} with {len(online)} of {REPLICAS} replicas"}
        return {}
