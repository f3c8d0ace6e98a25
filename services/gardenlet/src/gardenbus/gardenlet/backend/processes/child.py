"""Processes that outlive the gardenlet: started in a session of their own, and found again by their arguments.

A process is identified by its number and the time of its start, so that another one that was given the same number is
left alone. Linux only: the table of processes is read from `/proc`.
"""

import contextlib
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")
_STATE_FIELD, _START_TIME_FIELD = 0, 19
"""Fields of `/proc/<pid>/stat` after the name in parentheses, from 0."""


class ComponentProcess(NamedTuple):
    """A process. `started_at` is in ticks since the machine's start."""

    pid: int
    started_at: int

    @property
    def is_alive(self) -> bool:
        """True while it runs; one that ended and is this process's own is reaped."""
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG)
        return _start_time(self.pid) == self.started_at

    @property
    def leads_session(self) -> bool:
        """True for what was started by `spawn`, not for what that started."""
        with contextlib.suppress(OSError):
            return os.getsid(self.pid) == self.pid
        return False

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to it and all of its session, unless it has ended."""
        if self.is_alive:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)


def spawn(program: Path, arguments: Sequence[str], *, environment: Mapping[str, str], log: Path) -> ComponentProcess:
    """Start a program in its own session, with the output appended to a file. Raises OSError."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        pid = os.posix_spawn(
            program,
            [str(program), *arguments],
            dict(environment),
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, descriptor, 1),
                (os.POSIX_SPAWN_DUP2, descriptor, 2),
            ],
            setsid=True,
            setsigmask=[],
            setsigdef=[signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP],
        )
    finally:
        os.close(descriptor)
    return ComponentProcess(pid, _start_time(pid) or 0)


class Running(NamedTuple):
    """A process with its arguments, the program first."""

    child: ComponentProcess
    arguments: tuple[str, ...]


def running_below(directory: Path) -> Iterator[Running]:
    """Processes of this machine that have a file below a directory among their arguments."""
    prefix = f"{directory}/".encode()
    for entry in _PROC.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            line = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if prefix not in line:
            continue
        arguments = tuple(each.decode(errors="replace") for each in line.rstrip(b"\0").split(b"\0"))
        if not any(each.startswith("--") and each.partition("=")[2].startswith(f"{directory}/") for each in arguments):
            continue
        started_at = _start_time(int(entry.name))
        if started_at is not None:
            yield Running(ComponentProcess(int(entry.name), started_at), arguments)


def _start_time(pid: int) -> int | None:
    """Start of a process that runs; None for one that ended, also when nobody has reaped it yet."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[_STATE_FIELD] in "ZX" else int(fields[_START_TIME_FIELD])
