"""Three or more nats-servers in a cluster, as real processes on the loopback."""

import json
import time
import urllib.request
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.eventually import HANG_SECONDS
from tests.support.servers import Server, free_port, start_nats

NAMES = ("REQUESTS", "OBJECTS", "QUEUES", "BINDINGS", "LEASES", "REPORTS", "EVENTS", "REJECTED", "HISTORY")

_PLACED_SECONDS = HANG_SECONDS


@dataclass
class NatsCluster:
    """The servers, in the order of their names."""

    servers: Sequence[Server]
    monitors: Sequence[int]

    @property
    def url(self) -> str:
        """All of them."""
        return ",".join(server.url for server in self.servers)

    def streams(self) -> dict[str, dict[str, Any]]:
        """State of each stream in the cluster, by its name, as its leader has it."""
        found: dict[str, dict[str, Any]] = {}
        for server, monitor in zip(self.servers, self.monitors, strict=True):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{monitor}/jsz?streams=1", timeout=1) as response:
                    state: dict[str, Any] = json.load(response)
            except OSError:
                continue
            accounts: list[dict[str, Any]] = state.get("account_details") or []
            for account in accounts:
                streams: list[dict[str, Any]] = account.get("stream_detail") or []
                found |= {stream["name"]: stream["cluster"] for stream in streams if _leads(server, stream)}
        return found

    def leader_of(self, stream: str) -> Server:
        """The server that leads a stream."""
        deadline = time.monotonic() + _PLACED_SECONDS
        while time.monotonic() < deadline:
            name = self.streams().get(stream, {}).get("leader", "")
            for server in self.servers:
                if name == f"test-{server.port}" and server.process is not None:
                    return server
            time.sleep(0.2)
        raise AssertionError(f"{stream} has no leader")

    def are_current(self) -> bool:
        """Whether each stream has a copy at each server, none of them behind."""
        found = self.streams()
        return len(found) >= len(NAMES) and all(_is_current(each, len(self.servers)) for each in found.values())


def _leads(server: Server, stream: Mapping[str, Any]) -> bool:
    return stream.get("cluster", {}).get("leader") == f"test-{server.port}"


def _is_current(state: Mapping[str, Any], copies: int) -> bool:
    followers: list[dict[str, Any]] = state.get("replicas") or []
    return len(followers) == copies - 1 and all(each["current"] for each in followers)


def start_nats_cluster(
    stack: ExitStack, directory: Path, *, size: int = 3, extra: str = "", login: str = ""
) -> NatsCluster:
    """Start them at the same time, as none answers before most of them have met; the stack ends them."""
    ports, routes, monitors = ([free_port() for _ in range(size)] for _ in range(3))
    urls = ", ".join(f'"nats://127.0.0.1:{port}"' for port in routes)

    def start(number: int) -> Server:
        cluster = (
            f'http: "127.0.0.1:{monitors[number]}"\n'
            f'cluster {{ name: test, listen: "127.0.0.1:{routes[number]}", routes: [{urls}], no_advertise: true }}\n'
        )
        server = start_nats(directory / f"nats-{number}", ports[number], extra=cluster + extra, login=login)
        stack.callback(server.kill)
        return server

    with ThreadPoolExecutor(size) as pool:
        return NatsCluster(list(pool.map(start, range(size))), monitors)
