"""The processes of an embedded landscape, known by the mark in their environment. Linux only."""

import contextlib
import os
from pathlib import Path

from gardenbus.embedded.processes import LANDSCAPE_VARIABLE


def processes_of(directory: Path) -> dict[int, str]:
    """Those that run, with their command lines, without this one; the supervisor has no mark."""
    mark = f"{LANDSCAPE_VARIABLE}={directory}".encode()
    found: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    found[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ").strip()
    return found


def zombies() -> set[int]:
    """Children of this process that have ended and that nobody has waited for."""
    found: set[int] = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
                if state == "Z" and int(parent) == os.getpid():
                    found.add(int(entry.name))
    return found
