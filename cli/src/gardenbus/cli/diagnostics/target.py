"""The landscape under examination: its bus, its store and its processes where they can be reached."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from gardenbus.cli.client.api import ApiClient
from gardenbus.cli.local.directory import LandscapeFile
from gardenbus.common.adapters.nats.admin import AdminClient
from gardenbus.common.adapters.redis.connection import RedisConnection


class DiagnosticsTarget(NamedTuple):
    """The landscape under examination. `redis` is None without an address, `landscape` unless it is of this machine."""

    api: ApiClient
    admin: AdminClient
    redis: RedisConnection | None
    landscape: LandscapeFile | None
    directory: Path | None = None
    """Where a local landscape keeps its state."""
    directory_option: str = ""
    """What commands need so that they are about this landscape: ` --dir D`, or nothing."""

    def command(self, text: str) -> str:
        """A command about this landscape."""
        return f"gardenbus {text}{self.directory_option}"


class ClockReading(NamedTuple):
    """A server's clock, read between two readings of our own."""

    theirs: datetime
    before: datetime
    after: datetime

    @property
    def ahead_seconds(self) -> float:
        """Seconds that the clock is ahead of ours; 0 when it is between the two readings."""
        if self.theirs > self.after:
            return (self.theirs - self.after).total_seconds()
        return min(0.0, (self.theirs - self.before).total_seconds())


def version_of(text: str) -> tuple[int, ...]:
    """`2.15.1-beta` as (2, 15, 1)."""
    numbers: list[int] = []
    for part in text.split("-", maxsplit=1)[0].split("."):
        if not part.isdecimal():
            break
        numbers.append(int(part))
    return tuple(numbers)


def info_of(reply: Any) -> Mapping[str, str]:
    """Values of Redis' INFO by name."""
    text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else str(reply)
    lines = (line.partition(":") for line in text.splitlines() if not line.startswith("#"))
    return {name: value.strip() for name, colon, value in lines if colon}
