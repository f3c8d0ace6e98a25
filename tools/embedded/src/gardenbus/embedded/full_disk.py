"""Full disks below the servers: when nats-server has to be started anew to write again.

nats-server keeps the error of a write until it ends, however much room there is later: `/healthz` names it, and no
publish to that stream is acknowledged. One that was started while its disk was full has a limit of storage from then,
and one of a cluster that could not write what the cluster agreed on has ended its JetStream. Redis goes on by itself.
While there is no room, a restart would help nobody.

| cannot write | room | then                                                      |
|--------------|------|-----------------------------------------------------------|
| no           |      | fine; after a while the restarts are forgotten            |
| yes          | no   | full: said once, waited for                               |
| yes          | yes  | restart, once that has lasted; the next one later and later |
| not known    | any  | as before: it does not respond, or has another trouble    |
"""

import os
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

WriteState = Literal["fine", "full", "recovering", "restart"]

ROOM_BYTES = 64 * 1024 * 1024
ROOM_SHARE = 0.1
"""Room that a restart needs: so many bytes, or this share of a smaller file system."""

STEADY_SECONDS = 2.0
"""Time for which there has to be room again before a restart."""

RESTART_BASE_SECONDS = 10.0
RESTART_CAP_SECONDS = 300.0
FORGET_SECONDS = 600.0

_STORAGE_SHARE = 0.75
"""Share of the disk that nats-server takes for its limit where its configuration states none."""

_WRITE_ERRORS = ("write error", "no space left", "disk quota exceeded", "file too large", "jetstream not enabled")


class DiskRoom(NamedTuple):
    """Room on a file system."""

    free_bytes: int
    total_bytes: int

    @property
    def is_enough(self) -> bool:
        """True if a server that is started now can write for a while."""
        return self.free_bytes >= min(ROOM_BYTES, self.total_bytes * ROOM_SHARE)


def room_of(directory: Path) -> DiskRoom | None:
    """The free space of a directory's disk; None when it is not known."""
    try:
        found = os.statvfs(directory)
    except OSError:
        return None
    return DiskRoom(found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize)


def is_write_error(trouble: str) -> bool:
    """True if a server's own words about its health are about a write that failed."""
    return any(words in trouble.lower() for words in _WRITE_ERRORS)


def storage_trouble(report: bytes, room: DiskRoom | None) -> str:
    """Trouble with a limit (in NATS' `/jsz`) that stems from a fuller disk than there is now; "" without one."""
    try:
        decoded: dict[str, Any] = msgspec.json.decode(report, type=dict[str, Any])
        used, limit = int(decoded["storage"]), int(decoded["config"]["max_storage"])
    except (msgspec.MsgspecError, KeyError, TypeError, ValueError):
        return ""
    if used < limit or (room is not None and _STORAGE_SHARE * (room.free_bytes + used) <= used):
        return ""
    return f"write error: its streams have reached the limit that the disk allowed when it started ({limit} bytes)"


class WriteWatch:
    """Follows one server over all its lives."""

    def __init__(self) -> None:
        self._room_since: float | None = None
        self._fine_since: float | None = None
        self._restarts = 0
        self._next_restart_at = 0.0

    def interrupt(self) -> None:
        """Note that the server does not say whether it can write: what has to last begins anew."""
        self._room_since = self._fine_since = None

    def observe(self, *, cannot_write: bool, room: DiskRoom | None, now: float) -> WriteState:
        """State by what is seen now (in seconds of a monotonic clock); `restart` only when one is due."""
        if not cannot_write:
            self._room_since = None
            self._fine_since = now if self._fine_since is None else self._fine_since
            if now - self._fine_since >= FORGET_SECONDS:
                self._restarts = 0
            return "fine"
        self._fine_since = None
        if room is None or not room.is_enough:
            self._room_since = None
            return "full"
        self._room_since = now if self._room_since is None else self._room_since
        if now - self._room_since < STEADY_SECONDS or now < self._next_restart_at:
            return "recovering"
        self._room_since = None
        self._next_restart_at = now + min(RESTART_CAP_SECONDS, RESTART_BASE_SECONDS * 2.0**self._restarts)
        self._restarts += 1
        return "restart"
