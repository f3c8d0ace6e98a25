"""A clock whose hands the test turns."""

import asyncio
from datetime import UTC, datetime, timedelta


class FakeClock:
    """A `ports.clock.Clock` that stands still: `sleep` and `advance` move it, and nobody waits."""

    def __init__(self, start: datetime = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)) -> None:
        self._start = start
        self._passed = 0.0

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._passed)

    def monotonic(self) -> float:
        return self._passed

    async def sleep(self, seconds: float) -> None:
        self.advance(seconds)
        await asyncio.sleep(0)

    def advance(self, seconds: float) -> None:
        self._passed += seconds
