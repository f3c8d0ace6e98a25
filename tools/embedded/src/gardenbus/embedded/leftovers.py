"""Processes of an earlier `up` that was killed: found by landscape.json, recognised by their environment, ended.

Without this a second nats-server would find its store locked. Where the system has no /proc nothing is recognised,
and nothing is ended.
"""

import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

from gardenbus.cli.local.directory import LandscapeDirectory
from gardenbus.embedded.processes import LANDSCAPE_VARIABLE, STOP_SECONDS


def end_leftovers(directory: LandscapeDirectory) -> list[int]:
    """End what still runs of this landscape without a supervisor; returns the process ids. Blocks."""
    landscape = directory.read()
    if landscape is None:
        return []
    pids = [entry.pid for entry in landscape.services if entry.pid and _belongs(entry.pid, directory.path)]
    for number, timeout_seconds in ((signal.SIGTERM, STOP_SECONDS), (signal.SIGKILL, STOP_SECONDS)):
        remaining = [pid for pid in pids if _belongs(pid, directory.path)]
        for pid in remaining:
            _send(pid, number)
        if _all_gone(remaining, directory.path, timeout_seconds):
            break
    return pids


def _all_gone(pids: Iterable[int], path: Path, timeout_seconds: float) -> bool:
    deadline = time.monotonic() + timeout_seconds
    while any(_belongs(pid, path) for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _belongs(pid: int, path: Path) -> bool:
    try:
        environ = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return f"{LANDSCAPE_VARIABLE}={path}".encode() in environ.split(b"\0")


def _send(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
