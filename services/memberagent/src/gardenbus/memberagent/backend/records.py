"""Records of one agent, the same for every backend: who is active for the cluster, and its registration.

<directory>/lock               held by the process that is active for the cluster
<directory>/registered.json    its last registration in the fleet: it does not register a second time
"""

import os
from pathlib import Path
from typing import NamedTuple

import msgspec

from gardenbus.agent.files import make_directory, replace_file, try_lock
from gardenbus.common.api.decoding import decode_json

REGISTERED = "registered.json"


class Registration(NamedTuple):
    """Registration of a cluster in a fleet."""

    landscape: str
    """Landscape of the fleet; void in another one."""

    origin: str
    """uid of the Seed that it is; "" for a configured cluster."""

    uid: str
    """uid of the MemberCluster."""


class ClusterRecords:
    """See the module."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = -1
        self._registered: Registration | None = None

    def acquire(self) -> bool:
        """Become active for the cluster; False while another process is. Raises OSError."""
        if self._lock >= 0:
            return True
        make_directory(self._directory)
        descriptor = try_lock(self._directory / "lock")
        if descriptor is None:
            return False
        try:
            self._registered = self._read()
        except OSError:
            os.close(descriptor)
            raise
        self._lock = descriptor
        return True

    def release(self) -> None:
        """Let another process become active."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def registered(self) -> Registration | None:
        """Last registration in a fleet; None without one."""
        return self._registered

    def register(self, registration: Registration) -> None:
        """Save the registration if it changed."""
        if registration != self._registered:
            replace_file(self._directory / REGISTERED, msgspec.json.encode(registration._asdict()))
            self._registered = registration

    def _read(self) -> Registration | None:
        try:
            text = decode_json((self._directory / REGISTERED).read_bytes(), dict[str, str])
            return Registration(**text)
        except (FileNotFoundError, msgspec.MsgspecError, TypeError):
            return None
