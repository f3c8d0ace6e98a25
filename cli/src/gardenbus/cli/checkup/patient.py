"""The landscape under examination: its bus, its store and its processes where they can be reached."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from gardenbus.cli.client import ApiClient
from gardenbus.cli.supervisor.directory import LandscapeFile
from gardenbus.common.adapters.jetstream_inquiry import Inquiry
from gardenbus.common.adapters.redis_connection import RedisConnection


class Patient(NamedTuple):
    """What can be asked. `redis` is None where nobody said where it is, `landscape` where it is not of this machine."""

    api: ApiClient
    inquiry: Inquiry
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
    """Somebody's clock, read between two looks at our own."""

    theirs: datetime
    before: datetime
    after: datetime

    @property
    def ahead_seconds(self) -> float:
        """How far it is ahead of ours; 0 when it is within the two looks."""
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
    """What Redis' INFO says, by name."""
    text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else str(reply)
    lines = (line.partition(":") for line in text.splitlines() if not line.startswith("#"))
    return {name: value.strip() for name, colon, value in lines if colon}
