"""The landscape under examination: its API, its bus, and its store where that can be reached."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from gardenbus.common.adapters.redis.addresses import ServerAddress
from gardenbus.diagnostics.bus_client import BusClient

if TYPE_CHECKING:  # slow to import, and nothing here calls it
    from gardenbus.diagnostics.admin import AdminClient


class DiagnosticsApi(BusClient, Protocol):
    """The API of a landscape, as far as checks need it. All methods raise Unavailable."""

    async def census(self, *, timeout_seconds: float = 10.0) -> dict[str, int]:
        """Counts of everything."""
        ...

    async def seed_names(self) -> Sequence[str]:
        """Names of all seeds."""
        ...


class RedisServer(Protocol):
    """A Redis server as it is examined. All methods raise Unavailable."""

    @property
    def library(self) -> str:
        """Name of the function library that this process would call."""
        ...

    def key(self, name: str) -> str:
        """Key of the landscape."""
        ...

    async def command(self, *arguments: str | bytes | float) -> Any:
        """Reply to one command."""
        ...

    async def pipeline(self, commands: Sequence[tuple[str | bytes | float, ...]]) -> list[Any]:
        """Replies to several commands."""
        ...

    async def libraries(self) -> Sequence[str]:
        """Names of the function libraries that are loaded."""
        ...

    @property
    def other_servers(self) -> Collection[ServerAddress]:
        """Servers beside the master, as Sentinels or the URL name them."""
        ...

    async def sentinels(self) -> Mapping[ServerAddress, bool]:
        """Each Sentinel, and whether it responds."""
        ...


class DiagnosticsTarget(NamedTuple):
    """The landscape under examination. `redis` is None without an address."""

    api: DiagnosticsApi
    admin: "AdminClient"
    redis: RedisServer | None
    directory_option: str = ""
    """Option by which commands are about this landscape: ` --dir D`, or nothing."""

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
