"""Clock protocol, so that tests control time."""

from datetime import UTC, datetime
from typing import Protocol

EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)


class Clock(Protocol):
    """A wall clock, a monotonic clock, and waiting."""

    def now(self) -> datetime:
        """Wall-clock time, aware, UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


def timestamp(instant: datetime) -> str:
    """RFC 3339 in UTC with whole seconds, as Kubernetes writes times: `2026-01-02T03:04:05Z`."""
    return instant.astimezone(UTC).isoformat(timespec="seconds").removesuffix("+00:00") + "Z"


def parse_timestamp(text: object) -> datetime | None:
    """Parse an RFC 3339 time (UTC without a zone); None when it is none.

    What lies outside `EARLIEST` to `LATEST` is the nearer of them: periods can be added to each time.
    """
    try:
        instant = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    if instant is None:
        return None
    return min(max(instant if instant.tzinfo else instant.replace(tzinfo=UTC), EARLIEST), LATEST)
