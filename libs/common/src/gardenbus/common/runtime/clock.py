"""The real clock."""

import asyncio
import time
from datetime import UTC, datetime


class SystemClock:
    """The machine's clock, as a `ports.clock.Clock`."""

    def now(self) -> datetime:
        """Wall-clock time, aware, UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)
