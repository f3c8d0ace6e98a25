"""Delaying work queue in memory, with the loop that runs a reconciler against it: client-go's DelayingInterface.

At most `limit` objects are reconciled at a time, and never one twice at the same time: an object that is added while it
waits is reconciled once, at the earliest of its times; added while it is being reconciled, once more afterwards. What
is due is reconciled in the order of its times, or of its keys where the queue `is_sorted`.
"""

import asyncio
import heapq
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Generic, TypeVar

import structlog

from gardenbus.common.controller.reconcile_ids import bound_reconcile_id
from gardenbus.common.errors import GardenbusError
from gardenbus.common.ports.clock import Clock

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

RETRY_SECONDS = 5.0
"""Delay after a reconcile that failed."""

Key = TypeVar("Key", bound=Hashable)


@dataclass(eq=False)
class DelayingQueue(Generic[Key]):
    """See the module. `reconcile` returns the seconds until the next reconcile; None: not before it is added."""

    reconcile: Callable[[Key], Awaitable[float | None]]
    _: KW_ONLY
    clock: Clock
    limit: int = 1
    controller: str
    describe: Callable[[Key], str] = str
    retry_seconds: float = RETRY_SECONDS
    expected: tuple[type[Exception], ...] = (GardenbusError,)
    is_sorted: bool = False
    _due: dict[Key, float] = field(default_factory=dict[Key, float], init=False)
    _heap: list[tuple[float, int, Key]] = field(default_factory=list[tuple[float, int, Key]], init=False)
    """By their times, with entries that `_due` has overtaken."""
    _ready: list[tuple[Any, int, Key]] = field(default_factory=list[tuple[Any, int, Key]], init=False)
    """Those whose time has come, in the order of their reconciles."""
    _added: int = field(default=0, init=False)
    _running: dict[Key, asyncio.Task[None]] = field(default_factory=dict[Key, asyncio.Task[None]], init=False)
    _changed: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    @property
    def in_flight(self) -> int:
        """Objects that are being reconciled."""
        return len(self._running)

    def add(self, key: Key, after_seconds: float = 0.0) -> None:
        """Reconcile an object, at the latest after so many seconds."""
        due = self.clock.monotonic() + after_seconds
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

    async def reconcile_due(self) -> bool:
        """Reconcile what is due by now, each once; returns True when nothing of it is to be retried soon.

        For those who reconcile step by step instead of `run`: client-go's processNextWorkItem.
        """
        self._collect_ready()
        ready, self._ready = self._ready, []
        for _, _, key in sorted(ready):
            if self._take(key):
                await self._run_one(key)
        soon = self.clock.monotonic() + self.retry_seconds
        return all(due > soon for due in self._due.values())

    async def clear(self) -> None:
        """Drop what is due, and cancel what is being reconciled."""
        self._due.clear()
        self._heap.clear()
        self._ready.clear()
        running = tuple(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _push(self, due: float, key: Key) -> None:
        self._added += 1
        heapq.heappush(self._heap, (due, self._added, key))

    def _collect_ready(self) -> None:
        now = self.clock.monotonic()
        while self._heap and self._heap[0][0] <= now:
            due, added, key = heapq.heappop(self._heap)
            if self._due.get(key) == due:
                heapq.heappush(self._ready, (key if self.is_sorted else due, added, key))

    def _take(self, key: Key) -> bool:
        """Take a key that is due; False when it has been reconciled since it became ready."""
        if self._due.get(key, float("inf")) > self.clock.monotonic():
            return False
        del self._due[key]
        return True

    def _start_due(self) -> None:
        self._collect_ready()
        blocked: list[tuple[Any, int, Key]] = []
        while self._ready and len(self._running) < self.limit:
            entry = heapq.heappop(self._ready)
            key = entry[-1]
            if key in self._running:
                blocked.append(entry)
            elif self._take(key):
                self._running[key] = asyncio.create_task(
                    self._run_one(key), name=f"{self.controller} {self.describe(key)}"
                )
        for entry in blocked:
            heapq.heappush(self._ready, entry)

    def _seconds_to_next(self) -> float | None:
        """Seconds until the next one is due; None: nothing can be started before something changes."""
        if len(self._running) >= self.limit:
            return None
        times = [due for key, due in self._due.items() if key not in self._running]
        return max(0.0, min(times) - self.clock.monotonic()) if times else None

    async def _run_one(self, key: Key) -> None:
        requeue_after: float | None = self.retry_seconds
        with bound_reconcile_id():
            try:
                requeue_after = await self.reconcile(key)
            except self.expected as error:
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
        return {"controller": self.controller, "object": self.describe(key)}
