"""Delaying work queue in memory, with the loop that runs a reconciler against it: client-go's DelayingInterface.

At most `limit` objects are reconciled at a time, and never one twice at the same time: an object that is added while it
waits is reconciled once, at the earliest of its times; added while it is being reconciled, once more afterwards.
"""

import asyncio
import heapq
import secrets
from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Generic, TypeVar

import structlog
from structlog.contextvars import bound_contextvars

from gardenbus.common.errors import GardenbusError
from gardenbus.common.ports.clock import Clock

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

RETRY_SECONDS = 5.0
"""Delay after a reconcile that failed."""

Key = TypeVar("Key", bound=Hashable)


class DelayingQueue(Generic[Key]):
    """See the module. `reconcile` returns the seconds until the next reconcile; None: not before it is added."""

    def __init__(  # noqa: PLR0913
        self,
        reconcile: Callable[[Key], Awaitable[float | None]],
        *,
        clock: Clock,
        limit: int = 1,
        controller: str,
        describe: Callable[[Key], str] = str,
        retry_seconds: float = RETRY_SECONDS,
        expected: tuple[type[Exception], ...] = (GardenbusError,),
    ) -> None:
        self._reconcile = reconcile
        self._clock = clock
        self._limit = limit
        self._controller = controller
        self._describe = describe
        self._retry_seconds = retry_seconds
        self._expected = expected
        self._due: dict[Key, float] = {}
        self._heap: list[tuple[float, int, Key]] = []
        self._added = 0
        self._running: dict[Key, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()

    @property
    def in_flight(self) -> int:
        """Objects that are being reconciled."""
        return len(self._running)

    def add(self, key: Key, after_seconds: float = 0.0) -> None:
        """Reconcile an object, at the latest after so many seconds."""
        due = self._clock.monotonic() + after_seconds
        if due < self._due.get(key, float("inf")):
            self._due[key] = due
            self._push(due, key)
            self._changed.set()

    async def run(self) -> None:
        """Reconcile what is due, until cancelled."""
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
        """Drop what is due, and cancel what is being reconciled."""
        self._due.clear()
        self._heap.clear()
        running = tuple(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _push(self, due: float, key: Key) -> None:
        self._added += 1
        heapq.heappush(self._heap, (due, self._added, key))

    def _start_due(self) -> None:
        now = self._clock.monotonic()
        blocked: list[tuple[float, Key]] = []
        while self._heap and self._heap[0][0] <= now and len(self._running) < self._limit:
            due, _, key = heapq.heappop(self._heap)
            if self._due.get(key) != due:
                continue
            if key in self._running:
                blocked.append((due, key))
                continue
            del self._due[key]
            self._running[key] = asyncio.create_task(
                self._run_one(key), name=f"{self._controller} {self._describe(key)}"
            )
        for due, key in blocked:
            self._push(due, key)

    def _seconds_to_next(self) -> float | None:
        """Seconds until the next one is due; None: nothing can be started before something changes."""
        if len(self._running) >= self._limit:
            return None
        times = [due for key, due in self._due.items() if key not in self._running]
        return max(0.0, min(times) - self._clock.monotonic()) if times else None

    async def _run_one(self, key: Key) -> None:
        requeue_after: float | None = self._retry_seconds
        with bound_contextvars(reconcile_id=secrets.token_hex(8)):
            try:
                requeue_after = await self._reconcile(key)
            except self._expected as error:
                reason = error.message if isinstance(error, GardenbusError) else str(error)
                _log.warning("reconcile.interrupted", **self._fields(key), reason=reason)
            except Exception:  # noqa: BLE001 - this is the loop that nothing may end
                _log.exception("reconcile.crashed", **self._fields(key))
            finally:
                self._running.pop(key, None)
                self._changed.set()
        if requeue_after is not None:
            self.add(key, requeue_after)

    def _fields(self, key: Key) -> Mapping[str, str]:
        return {"controller": self._controller, "object": self._describe(key)}
