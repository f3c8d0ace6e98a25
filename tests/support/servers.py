"""Real nats-server and redis-server processes for tests: free ports, own directories, killed and restarted at will.

A server keeps its port and its directory over `kill()` and `restart()`, so that clients find it again with what it had
stored. Calls block (tens of milliseconds); use `asyncio.to_thread` where a test's event loop must go on meanwhile.
"""

import itertools
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.eventually import HANG_SECONDS

_START_DEADLINE_SECONDS = HANG_SECONDS


_PORTS = range(10_000, 20_000)


def _own_ports() -> Iterator[int]:
    """The ports of this worker of pytest in an order of its own, over and over: none is handed out twice in a row."""
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    ports = list(_PORTS[number :: int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))])
    secrets.SystemRandom().shuffle(ports)
    return itertools.cycle(ports)


_own = _own_ports()


def free_port() -> int:
    """A TCP port on the loopback that nobody listens on now, and that no outgoing connection gets meanwhile."""
    for port in _own:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise AssertionError("a cycle does not end")


@dataclass
class Server:
    """One server process. `url` and `port` stay the same over restarts."""

    url: str
    port: int
    directory: Path
    command: Sequence[str]
    is_ready: Callable[[int], bool]
    process: "subprocess.Popen[bytes] | None" = field(default=None, init=False)

    def start(self) -> None:
        """Start the process and wait until it answers."""
        with (self.directory / "server.log").open("ab") as log:
            self.process = subprocess.Popen(self.command, cwd=self.directory, stdout=log, stderr=log)
        deadline = time.monotonic() + _START_DEADLINE_SECONDS
        while not self.is_ready(self.port):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"{self.command[0]} did not start: {(self.directory / 'server.log').read_text()}")
            time.sleep(0.02)

    def kill(self) -> None:
        """End it as a crash would (SIGKILL)."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it in an orderly way (SIGTERM), and by force after 10 s."""
        self._end(signal.SIGTERM)

    def pause(self) -> None:
        """Stop its hands (SIGSTOP): connections stay open, nothing is answered once this returns."""
        if self.process is not None:
            self.process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        """Let a paused one go on."""
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)

    def restart(self) -> None:
        """Start again on the same port and directory; stops it first when it runs."""
        self.stop()
        self.start()

    def _end(self, number: signal.Signals) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.send_signal(number)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def start_nats(
    directory: Path,
    port: int | None = None,
    *,
    sync_interval: str = "always",
    max_payload: str = "8MB",
    extra: str = "",
    login: str = "",
    program: str = "",
    max_file_store: str = "100TB",
) -> Server:
    """A nats-server with JetStream below `directory`; `extra` is appended to its configuration.

    Limits of the streams of many tests are set aside on one server, so it has more room than any disk.
    `login` (`user:password`) is how one comes in that looks whether it is ready; `program` another version's.
    """
    port = port or free_port()
    directory.mkdir(parents=True, exist_ok=True)
    configuration = directory / "nats.conf"
    configuration.write_text(
        f'listen: "127.0.0.1:{port}"\n'
        f'server_name: "test-{port}"\n'
        f"max_payload: {max_payload}\n"
        "max_pending: 128MB\n"
        f'jetstream {{ store_dir: "{directory / "jetstream"}", sync_interval: {sync_interval}, '
        f"max_file_store: {max_file_store} }}\n"
        f"{extra}\n"
    )
    server = Server(
        url=f"nats://127.0.0.1:{port}",
        port=port,
        directory=directory,
        command=(program or executable("nats-server"), "-c", str(configuration)),
        is_ready=lambda port: _nats_is_ready(port, login),
    )
    server.start()
    return server


def start_redis(
    directory: Path,
    port: int | None = None,
    *,
    appendfsync: str = "always",
    acl_file: Path | None = None,
    more: Mapping[str, str] | None = None,
) -> Server:
    """A redis-server with an append-only file below `directory`; with users where there is a file of them.

    `more` has further settings by their names.
    """
    port = port or free_port()
    directory.mkdir(parents=True, exist_ok=True)
    settings = {
        "port": str(port),
        "bind": "127.0.0.1",
        "dir": str(directory),
        "appendonly": "yes",
        "appendfsync": appendfsync,
        "save": "",
        "maxmemory-policy": "noeviction",
        "set-proc-title": "no",  # writes over the environment, by which those whose tests are gone are found
    }
    if acl_file is not None:
        settings["aclfile"] = str(acl_file)
    settings |= more or {}
    arguments = [word for name, value in settings.items() for word in (f"--{name}", *value.split())]
    server = Server(
        url=f"redis://127.0.0.1:{port}",
        port=port,
        directory=directory,
        command=(executable("redis-server"), *arguments),
        is_ready=_redis_is_ready,
    )
    server.start()
    return server


def start_sentinel(
    directory: Path, master: str, primary_port: int, *, port: int | None = None, extra: str = ""
) -> Server:
    """A Redis Sentinel that watches a primary on the loopback; two of them agree on a failover, after a second.

    `extra` is appended to its configuration.
    """
    port = port or free_port()
    directory.mkdir(parents=True, exist_ok=True)
    configuration = directory / "sentinel.conf"
    configuration.write_text(
        f"port {port}\nbind 127.0.0.1\ndir {directory}\nset-proc-title no\n"
        f"sentinel monitor {master} 127.0.0.1 {primary_port} 2\n"
        f"sentinel down-after-milliseconds {master} 1000\n"
        f"sentinel failover-timeout {master} 5000\n"
        f"sentinel parallel-syncs {master} 2\n{extra}"
    )
    server = Server(
        url=f"redis://127.0.0.1:{port}",
        port=port,
        directory=directory,
        command=(executable("redis-server"), str(configuration), "--sentinel"),
        is_ready=_redis_is_ready,
    )
    server.start()
    return server


def nats_servers() -> Mapping[str, str]:
    """The nats-server that is installed, and those of other versions that `.ci/nats-servers` has brought."""
    others = sorted((Path(__file__).parents[2] / ".tools" / "nats-servers").glob("*/nats-server"))
    return {"installed": executable("nats-server"), **{each.parent.name: str(each) for each in others}}


def executable(name: str) -> str:
    """The server beside this Python, in a wheel that brings it, or on PATH."""
    beside = Path(sys.executable).with_name(name)
    wheel = next((Path(sys.prefix) / "lib").glob(f"python3*/site-packages/*/bin/{name}"), None)
    found = beside if beside.exists() else wheel or shutil.which(name)
    if found is None:
        raise RuntimeError(f"{name} is not installed; `make setup` brings it")
    return str(found)


def _nats_is_ready(port: int, login: str = "") -> bool:
    """Whether JetStream answers, not only the listener."""
    user, _, password = login.partition(":")
    options = {"verbose": False, "headers": True, "no_responders": True, "user": user, "pass": password}
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(
                b"CONNECT %b\r\nSUB _INBOX.ready 1\r\nPUB $JS.API.INFO _INBOX.ready 0\r\n\r\nPING\r\n"
                % json.dumps(options).encode()
            )
            received = b""
            while b'"streams"' not in received:
                chunk = connection.recv(65536)
                if not chunk or b" 503" in chunk:
                    return False
                received += chunk
            return True
    except OSError:
        return False


def _redis_is_ready(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith((b"+PONG", b"-NOAUTH"))
    except OSError:
        return False
