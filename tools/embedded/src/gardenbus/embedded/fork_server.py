"""Fork server: a process that has imported what all services import, and becomes each of them by forking.

`python -m gardenbus.embedded.fork_server SOCKET SUPERVISOR` reads `ForkRequest`s from an inherited socket, each in
one message with the log file and a pipe, and responds with a `ForkResponse`. It has neither threads nor an event loop.

A service is forked twice: the process in between ends at once, so that the supervisor (a subreaper) becomes the parent.
From then on it is as if the supervisor had started it: session, log, environment, command line, and SIGTERM when the
supervisor dies. It runs once the pipe says so: a supervisor that was stopped meanwhile knows nothing of it. Linux only.
"""

import ctypes
import gc
import importlib
import os
import runpy
import signal
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

PRELOADED = (
    "gardenbus.common.adapters.nats.jetstream",
    "gardenbus.common.adapters.redis.connection",
    "gardenbus.common.api.identity.nkeys",
    "gardenbus.common.api.garden.seeds",
    "gardenbus.common.runtime.service",
)
"""Modules that the services have in common. No metrics of some: a registry has what its own service counts."""

LARGEST_MESSAGE = 64 * 1024
ALLOWED = b"+"
"""Word on the pipe."""

ROOM_FOR_COMMANDS = "." * 2048
"""Last argument: the memory in which a forked service shows its own command line."""

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_LONGEST_NAME = 15
_REPARENTED_SECONDS = 0.001


class ForkRequest(msgspec.Struct, frozen=True):
    """A module to run as the main program. `argv` is the whole command line, for `ps`; `arguments` the module's own."""

    module: str
    arguments: Sequence[str]
    argv: Sequence[str]
    environ: dict[str, str]


class ForkResponse(msgspec.Struct, frozen=True):
    """The forked process."""

    pid: int


def main() -> None:
    """Serve until the supervisor closes its end; a forked service leaves by running its module."""
    descriptor, supervisor = int(sys.argv[1]), int(sys.argv[2])
    _die_with_parent(supervisor)
    for module in PRELOADED:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=descriptor) as supervising:
        request = _serve(supervising, supervisor)
    if request is not None:
        sys.argv = [request.module, *request.arguments]
        runpy.run_module(request.module, run_name="__main__", alter_sys=True)


def _serve(supervising: socket.socket, supervisor: int) -> ForkRequest | None:
    """Fork on each request; returns None at the end, and in the forked process what it is to run."""
    while True:
        body, descriptors, _, _ = socket.recv_fds(supervising, LARGEST_MESSAGE, 2)
        if not body:
            return None
        log, allowed = descriptors
        between = os.fork()
        if between:
            os.close(log)
            os.close(allowed)
            os.waitpid(between, 0)
            continue
        between = os.getpid()
        if os.fork():
            os._exit(0)
        while os.getppid() == between:
            time.sleep(_REPARENTED_SECONDS)
        _die_with_parent(supervisor)
        request = msgspec.json.decode(body, type=ForkRequest)
        _become(request, log)
        if not _is_allowed(supervising, allowed):
            os._exit(1)
        return request


def _is_allowed(supervising: socket.socket, allowed: int) -> bool:
    """Say who one is, and wait for the supervisor's word; none comes where it does not wait any more."""
    try:
        supervising.send(msgspec.json.encode(ForkResponse(os.getpid())))
    except OSError:
        return False
    word = os.read(allowed, 1)
    os.close(allowed)
    return word == ALLOWED


def _become(request: ForkRequest, log: int) -> None:
    os.setsid()
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    os.environ.clear()
    os.environ.update(request.environ)
    _show_command_line(request.argv)
    name = request.module.rpartition(".")[2][:_LONGEST_NAME]
    ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode())


def _die_with_parent(parent: int) -> None:
    """Request SIGTERM when the parent dies, and end if it has died already."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        os._exit(1)


def _show_command_line(argv: Sequence[str]) -> None:
    """Write over the command line that others see, within its room: its start and end are fields 48 and 49 of stat."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = int(fields[45]), int(fields[46])
    room = end - start
    line = b"".join(os.fsencode(argument) + b"\0" for argument in argv)[: room - 1]
    ctypes.memmove(start, line.ljust(room, b"\0"), room)


if __name__ == "__main__":
    main()
