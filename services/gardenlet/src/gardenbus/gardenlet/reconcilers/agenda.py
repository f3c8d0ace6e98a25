"""When to look at which shoot: at most `limit` at a time, and never at one twice at the same time.

The in-memory counterpart of a work queue: asked for while it waits, a shoot is looked at once; asked for while it is in
work, once more afterwards.
"""

import asyncio
import heapq
from collections.abc import Awaitable, Callable

import structlog

from gardenbus.common.errors import GardenbusError
from gardenbus.common.ports.clock import Clock
from gardenbus.gardenlet.backend.port import ShootName

_log = structlog.stdlib.get_logger()

_AFTER_ERROR_SECONDS = 5.0


class Agenda:
    """See the module. `look` answers the seconds after which to look again, None for not before asked."""

    def __init__(
        self, look: Callable[[ShootName], Awaitable[float | None]], *, clock: Clock, limit: int, kind: str = "shoot"
    ) -> None:
        self._look = look
        self._clock = clock
        self._limit = limit
        self._kind = kind
        self._due: dict[ShootName, float] = {}
        self._heap: list[tuple[float, ShootName]] = []
        self._running: dict[ShootName, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()

    @property
    def in_work(self) -> int:
        """How many are looked at now."""
        return len(self._running)

    def add(self, shoot: ShootName, after_seconds: float = 0.0) -> None:
        """Look at a shoot, at the latest after so many seconds."""
        due = self._clock.monotonic() + after_seconds
        if due < self._due.get(shoot, float("inf")):
            self._due[shoot] = due
            heapq.heappush(self._heap, (due, shoot))
            self._changed.set()

    async def run(self) -> None:
        """Look at what is due, for ever."""
        try:
            while True:
                self._changed.clear()
                self._start_due()
                try:
                    async with asyncio.timeout(self._seconds_to_next()):
                        await self._changed.wait()
                except TimeoutError:
                    continue
        finally:
            await self.clear()

    async def clear(self) -> None:
        """Forget what is due, and cut what is in work."""
        self._due.clear()
        self._heap.clear()
        running = tuple(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _start_due(self) -> None:
        now = self._clock.monotonic()
        blocked: list[tuple[float, ShootName]] = []
        while self._heap and self._heap[0][0] <= now and len(self._running) < self._limit:
            due, shoot = heapq.heappop(self._heap)
            if self._due.get(shoot) != due:
                continue
            if shoot in self._running:
                blocked.append((due, shoot))
                continue
            del self._due[shoot]
            self._running[shoot] = asyncio.create_task(self._work(shoot), name=f"{self._kind} {shoot[0]}/{shoot[1]}")
        for entry in blocked:
            heapq.heappush(self._heap, entry)

    def _seconds_to_next(self) -> float | None:
        """None: nothing can be started before something changes."""
        if len(self._running) >= self._limit:
            return None
        times = [due for shoot, due in self._due.items() if shoot not in self._running]
        return max(0.0, min(times) - self._clock.monotonic()) if times else None

    async def _work(self, shoot: ShootName) -> None:
        again: float | None = None
        try:
            again = await self._look(shoot)
        except GardenbusError as error:
            _log.warning("reconcile.interrupted", controller=self._kind, object="/".join(shoot), reason=error.message)
            again = _AFTER_ERROR_SECONDS
        except Exception:  # noqa: BLE001 - this is the loop that nothing may end
            _log.exception("reconcile.crashed", controller=self._kind, object="/".join(shoot))
            again = _AFTER_ERROR_SECONDS
        finally:
            self._running.pop(shoot, None)
            self._changed.set()
        if again is not None:
            self.add(shoot, again)
