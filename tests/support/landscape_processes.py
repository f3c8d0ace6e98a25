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
