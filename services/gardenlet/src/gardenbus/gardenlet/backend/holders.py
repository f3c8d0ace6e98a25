"""The names under which the gardenlets of a process hold their Leases."""

import fcntl
import os
import socket
from pathlib import Path
from uuid import uuid4


class Identity:
    """Who holds a seed's Lease: a name in the state directory that is locked while the process lives.

    So a gardenlet that was killed takes its own Lease up again at once, in whichever process it comes back, and of two
    on one directory, of which one is a standby, each has a name of its own.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._descriptor = -1
        number = 0
        while self._descriptor < 0:
            self._descriptor = _locked(directory / f"holder-{number}")
            number += 1
        name = os.pread(self._descriptor, 256, 0).decode()
        if not name:
            name = f"{socket.gethostname()}_{uuid4()}"
            os.pwrite(self._descriptor, name.encode(), 0)
        self.name = name

    def release(self) -> None:
        """Let another process have the name."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1


def _locked(file: Path) -> int:
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return -1
    return descriptor
