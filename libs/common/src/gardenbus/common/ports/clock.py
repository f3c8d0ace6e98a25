"""Time as a port, so that tests turn the hands."""

from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What time it is, and waiting."""

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
