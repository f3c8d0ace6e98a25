"""Ends what a process of the tests has started, once that process is gone, however it went.

A watcher in a session of its own holds one end of a pipe, and sees the other end close. What was started is known by a
variable in its environment: servers, landscapes, also detached ones, and whatever these have started. Linux only.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

SESSION_VARIABLE = "GARDENBUS_TEST_SESSIONS"
"""The sessions that a process belongs to: that of the test process, and above it that of the one that runs workers."""

ORDERLY_SECONDS = 10.0
"""Time between SIGTERM and SIGKILL."""

_EVERY_SECONDS = 0.05


def end_children_with_this_process() -> None:
    """Have a watcher end, after this process, all that it has started since. Does nothing where there is no /proc."""
    if not Path("/proc/self/environ").exists():
        return
    session = f"{os.getpid()}-{time.time_ns()}"
    above = os.environ.get(SESSION_VARIABLE, "")
    unmarked = {name: value for name, value in os.environ.items() if name != SESSION_VARIABLE}
    readable, _writable = os.pipe()  # the other end is closed by the end of this process, by nothing else
    command = [sys.executable, "-S", str(Path(__file__)), str(readable), session]
    watcher = subprocess.Popen(
        command,
        env=unmarked,
        pass_fds=[readable],
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    watcher.returncode = 0  # it outlives this process, which shall not warn that nobody has waited for it
    os.close(readable)
    os.environ[SESSION_VARIABLE] = f"{above},{session}".strip(",")


def end_all_of(session: str) -> None:
    """End the processes of a session: SIGTERM, also to those that are stopped, and SIGKILL to what stays."""
    deadline = time.monotonic() + ORDERLY_SECONDS
    announced: set[int] = set()
    while found := _processes_of(session):
        is_late = time.monotonic() > deadline
        for process, descriptor in found:
            with contextlib.suppress(ProcessLookupError):
                if is_late:
                    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                elif process not in announced:
                    signal.pidfd_send_signal(descriptor, signal.SIGTERM)
                    signal.pidfd_send_signal(descriptor, signal.SIGCONT)
                    announced.add(process)
            os.close(descriptor)
        time.sleep(_EVERY_SECONDS)


def _processes_of(session: str) -> Sequence[tuple[int, int]]:
    """Numbers and descriptors (to be closed) of the processes that are marked with a session."""
    found: list[tuple[int, int]] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        with contextlib.suppress(OSError):
            descriptor = os.pidfd_open(int(entry.name))
            if _is_marked(entry, session):
                found.append((int(entry.name), descriptor))
            else:
                os.close(descriptor)
    return found


def _is_marked(entry: Path, session: str) -> bool:
    """True for a process of a session. One that has ended and was not waited for has no environment any more."""
    try:
        variables = (entry / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
    name = f"{SESSION_VARIABLE}=".encode()
    return any(
        session.encode() in variable.removeprefix(name).split(b",")
        for variable in variables
        if variable.startswith(name)
    )


def _watch(readable: int, session: str) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while os.read(readable, 1):
        pass
    end_all_of(session)


if __name__ == "__main__":
    _watch(int(sys.argv[1]), sys.argv[2])
