"""A clock that stands until the test turns its hands, and whose sleepers wait for that."""

import asyncio
from datetime import UTC, datetime, timedelta


class ManualClock:
    """A `ports.clock.Clock`; `sleep` returns when `advance` has gone far enough."""

    def __init__(self, start: datetime = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)) -> None:
        self._start = start
        self._passed = 0.0
        self._sleepers: set[tuple[float, asyncio.Future[None]]] = set()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._passed)

    def monotonic(self) -> float:
        return self._passed

    async def sleep(self, seconds: float) -> None:
        sleeper = (self._passed + seconds, asyncio.get_running_loop().create_future())
        self._sleepers.add(sleeper)
        try:
            if seconds <= 0:
                await asyncio.sleep(0)
            else:
                await sleeper[1]
        finally:
            self._sleepers.discard(sleeper)

    def advance(self, seconds: float) -> None:
        """Turn the hands; who slept long enough wakes at the next turn of the loop."""
        self._passed += seconds
        for due_at, future in self._sleepers:
            if due_at <= self._passed and not future.done():
                future.set_result(None)
