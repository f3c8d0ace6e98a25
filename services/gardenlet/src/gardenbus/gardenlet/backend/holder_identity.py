"""Names under which the gardenlets of a process hold their Leases."""

import os
import socket
from itertools import count
from pathlib import Path
from uuid import uuid4

from gardenbus.agent.files import make_directory, try_lock


class HolderIdentity:
    """Holder of a seed's Lease: a name in the state directory, locked while the process lives.

    A gardenlet that was killed renews its own Lease at once after a restart, and two replicas on one directory have
    different names.
    """

    def __init__(self, directory: Path) -> None:
        make_directory(directory)
        locks = (try_lock(directory / f"holder-{number}") for number in count())
        self._descriptor = next(descriptor for descriptor in locks if descriptor is not None)
        name = os.pread(self._descriptor, 256, 0).decode()
        if not name:
            name = f"{socket.gethostname()}_{uuid4()}"
            os.pwrite(self._descriptor, name.encode(), 0)
        self.name = name

    def release(self) -> None:
        """Release the name for another process."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1
