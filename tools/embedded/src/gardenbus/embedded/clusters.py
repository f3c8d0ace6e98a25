"""Servers of `up --cluster`: three of NATS, a Redis primary with two replicas, and three Sentinels, on the loopback.

Which Redis is the primary is Sentinel's to say. Its files name it, also after a failover; all files are written anew at
each start, for the primary of then. Routes of NATS, replicas and Sentinels have credentials of their own.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from gardenbus.cli.local.directory import LandscapeDirectory, write_whole, writing
from gardenbus.common.adapters.redis.users import replica_login, sentinel_login, sentinel_users
from gardenbus.credentials import secret_files
from gardenbus.credentials.routes import (
    AUTHORITY,
    CERTIFICATE,
    KEY,
    RouteAdmission,
    new_route_certificate,
    route_configuration,
)
from gardenbus.credentials.server_configuration import tls_configuration
from gardenbus.embedded.durability import Durability
from gardenbus.embedded.ports import LOOPBACK, choose_port
from gardenbus.embedded.process_specs import ProcessSpec
from gardenbus.embedded.redis_users import OPERATOR, RedisUsers
from gardenbus.embedded.servers import go_memory_limit, nats_configuration, new_monitor_path, redis_configuration

NUMBERS = (1, 2, 3)
MASTER = "garden"
QUORUM = 2
DOWN_AFTER_MILLISECONDS = 3000
"""Silence after which a Sentinel takes a Redis for down: a busy machine keeps one waiting for a second at times."""

_MONITORED = re.compile(rf"^sentinel monitor {MASTER} \S+ (\d+) ", re.MULTILINE)
_EPOCH = re.compile(rf"^sentinel config-epoch {MASTER} (\d+)", re.MULTILINE)


class ClusterServers(NamedTuple):
    """The processes, and the addresses by which services find them."""

    specs: Sequence[ProcessSpec]
    nats_url: str
    redis_url: str
    ports: Mapping[str, int]


class ClusterPlan(NamedTuple):
    """All that the servers' files are made of."""

    directory: LandscapeDirectory
    durability: Durability
    ports: Mapping[str, int]
    primary: int
    """Number of the Redis that starts as primary."""
    redis_numbers: Sequence[int]


def cluster_plan(
    directory: LandscapeDirectory,
    durability: Durability,
    previous: Mapping[str, int],
    in_use: set[int],
    *,
    redis_numbers: Sequence[int] = NUMBERS,
) -> ClusterPlan:
    """Choose ports, those of last time where they are free, and the primary of last time."""
    names = [f"{kind}-{number}" for number in NUMBERS for kind in ("nats", "sentinel")]
    names += [f"redis-{number}" for number in redis_numbers]
    names += [f"nats-{number}-{part}" for number in NUMBERS for part in ("monitor", "routes")]
    ports = {name: choose_port(None, previous.get(name), in_use) for name in names}
    return ClusterPlan(directory, durability, ports, last_primary(directory, previous), redis_numbers)


def cluster_servers(
    plan: ClusterPlan, *, nats: Path, redis: Path, authorization: str, users: RedisUsers
) -> ClusterServers:
    """Write all files. Without `authorization` NATS accepts anybody, and its routes use no TLS.

    Raises DirectoryUnwritable.
    """
    admission = RouteAdmission(
        "route", _route_password(plan.directory), route_tls(plan.directory.identity) if authorization else ""
    )
    specs = [
        *(_nats_spec(plan, number, nats, authorization, admission) for number in NUMBERS),
        *(_redis_spec(plan, number, redis, users) for number in plan.redis_numbers),
        *(_sentinel_spec(plan, number, redis, users) for number in NUMBERS),
    ]
    nats_urls = [f"nats://{LOOPBACK}:{plan.ports[f'nats-{number}']}" for number in NUMBERS]
    sentinels = [f"{LOOPBACK}:{plan.ports[f'sentinel-{number}']}" for number in NUMBERS]
    redis_url = f"redis+sentinel://{','.join(sentinels)}/{MASTER}?sentinel_login=same"
    return ClusterServers(specs, ",".join(nats_urls), redis_url, plan.ports)


def share_of_cores(cores: int) -> int:
    """Threads for each server of NATS: three that use all cores each wake more threads than there is work for."""
    return max(1, cores // len(NUMBERS))


def route_tls(directory: Path) -> str:
    """The block `tls` of routes: both ends show a certificate of an authority that nobody else has one of.

    It is made anew at each start of the cluster, and its key kept nowhere. Raises DirectoryUnwritable.
    """
    for name, content in new_route_certificate((LOOPBACK,), datetime.now(UTC)).items():
        write_whole(directory / name, content)
    return tls_configuration(directory / CERTIFICATE, directory / KEY, peers=directory / AUTHORITY)


def _nats_spec(
    plan: ClusterPlan, number: int, program: Path, authorization: str, admission: RouteAdmission
) -> ProcessSpec:
    name, ports = f"nats-{number}", plan.ports
    store = _store(plan.directory.nats, name)
    file = plan.directory.config / f"{name}.conf"
    routes = [f"{LOOPBACK}:{ports[f'nats-{each}-routes']}" for each in NUMBERS]
    path = new_monitor_path()
    text = nats_configuration(
        port=ports[name],
        monitor_port=ports[f"{name}-monitor"],
        monitor_path=path,
        store=store,
        durability=plan.durability,
    )
    own = routes[number - 1]
    text += route_configuration(name="gardenbus", listen=own, others=routes, admission=admission)
    write_whole(file, (text + authorization).encode())
    return ProcessSpec(
        name=name,
        role="nats",
        command=[str(program), "-c", str(file)],
        environ={
            "GOMAXPROCS": os.environ.get("GOMAXPROCS") or str(share_of_cores(os.cpu_count() or 1)),
            **go_memory_limit(len(NUMBERS)),
        },
        kind="nats",
        port=ports[f"{name}-monitor"],
        path=path,
        store=store,
    )


def _redis_spec(plan: ClusterPlan, number: int, program: Path, users: RedisUsers) -> ProcessSpec:
    name = f"redis-{number}"
    store = _store(plan.directory.redis, name)
    file = plan.directory.config / f"{name}.conf"
    text = (
        redis_configuration(store=store, durability=plan.durability, port=plan.ports[name], acl_file=users.acl_file)
        + ("min-replicas-to-write 1\nrepl-timeout 5\nrepl-ping-replica-period 1\nrepl-diskless-sync-delay 0\n")
        + replica_login(users.passwords)
    )
    if number != plan.primary:
        text += f"replicaof {LOOPBACK} {plan.ports[f'redis-{plan.primary}']}\n"
    write_whole(file, text.encode())
    return ProcessSpec(
        name=name,
        role="redis",
        command=[str(program), str(file)],
        environ={},
        kind="redis",
        port=plan.ports[name],
        user=OPERATOR,
        password=users.operator_password,
        store=store,
    )


def _sentinel_spec(plan: ClusterPlan, number: int, program: Path, users: RedisUsers) -> ProcessSpec:
    name = f"sentinel-{number}"
    file = _sentinel_file(plan.directory, number)
    store = _store(plan.directory.redis, name)
    primary = plan.ports[f"redis-{plan.primary}"]
    replicas = [plan.ports[f"redis-{each}"] for each in plan.redis_numbers if each != plan.primary]
    text = (
        f"bind {LOOPBACK}\nport {plan.ports[name]}\ndaemonize no\ndir {json.dumps(str(store))}\n"
        f"sentinel monitor {MASTER} {LOOPBACK} {primary} {QUORUM}\n"
        f"sentinel down-after-milliseconds {MASTER} {DOWN_AFTER_MILLISECONDS}\n"
        f"sentinel failover-timeout {MASTER} 10000\n"
        f"sentinel parallel-syncs {MASTER} 2\n"
    ) + "".join(f"sentinel known-replica {MASTER} {LOOPBACK} {port}\n" for port in replicas)
    text += sentinel_login(MASTER, users.passwords) + sentinel_users(users.passwords)
    write_whole(file, text.encode())
    return ProcessSpec(
        name=name,
        role="sentinel",
        command=[str(program), str(file), "--sentinel"],
        environ={},
        kind="redis",
        port=plan.ports[name],
        user=OPERATOR,
        password=users.operator_password,
    )


def last_primary(directory: LandscapeDirectory, previous: Mapping[str, int]) -> int:
    """Number of the primary that the Sentinel with the latest configuration knew when it ended; else the first."""
    latest, primary = -1, 1
    by_port = {previous[f"redis-{number}"]: number for number in NUMBERS if f"redis-{number}" in previous}
    for number in NUMBERS:
        try:
            text = _sentinel_file(directory, number).read_text(encoding="utf-8")
        except OSError:
            continue
        monitored, epoch = _MONITORED.search(text), _EPOCH.search(text)
        if monitored and int(monitored[1]) in by_port and (found := int(epoch[1]) if epoch else 0) > latest:
            latest, primary = found, by_port[int(monitored[1])]
    return primary


def _sentinel_file(directory: LandscapeDirectory, number: int) -> Path:
    return directory.config / f"sentinel-{number}.conf"


def _store(parent: Path, name: str) -> Path:
    store = parent / name
    with writing(store):
        store.mkdir(mode=0o700, exist_ok=True)
    return store


def _route_password(directory: LandscapeDirectory) -> str:
    """Password of the routes, made once. Raises DirectoryUnwritable."""
    file = directory.identity / "routes.password"
    with writing(file):
        return secret_files.kept_password(file)
