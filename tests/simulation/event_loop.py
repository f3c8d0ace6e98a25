"""Event loop in virtual time, without a selector: callbacks run in the order they were scheduled, time stands still.

It does only what tasks and futures need. Whoever drives it decides what happens next: `run_ready` runs what can run now
(within `current`), `advance` moves the clock. Nothing else ever happens: a program on it is a function of what its
driver does.
"""

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from contextvars import Context, copy_context
from typing import Any

MAX_CALLBACKS = 200_000
"""Callbacks between two decisions of the driver: more of them are a task that never waits."""


class Livelock(Exception):
    """A task goes on for ever without waiting for anything."""


class Callback:
    """A callback that is to run; `when` is 0 for one that is ready: `asyncio.Handle` at a third of its cost."""

    __slots__ = ("_when", "args", "callback", "context", "is_cancelled")

    def __init__(self, when: float, callback: Callable[..., object], args: Any, context: Context | None) -> None:
        self._when, self.callback, self.args = when, callback, args
        self.context = copy_context() if context is None else context
        self.is_cancelled = False

    def cancel(self) -> None:
        """Run it never."""
        self.is_cancelled = True

    def cancelled(self) -> bool:
        """True if it was cancelled."""
        return self.is_cancelled

    def when(self) -> float:
        """The time at which it is due."""
        return self._when


class NumberedTask(asyncio.Task[Any]):
    """Task whose hash is its number, so that sets of tasks have the same order in every process."""

    def __init__(self, number: int, coro: Coroutine[Any, Any, Any], **named: Any) -> None:
        self._number = number
        super().__init__(coro, **named)

    def __hash__(self) -> int:
        return self._number


class SimulationLoop(asyncio.AbstractEventLoop):
    """See the module. `on_task` is called with every task and its context."""

    def __init__(self) -> None:
        self.now = 0.0
        self.on_task: Callable[[asyncio.Task[Any], Context | None], None] = lambda _task, _context: None
        self.problems: list[dict[str, Any]] = []
        self._ready: deque[Callback] = deque()
        self._timers: list[tuple[float, int, Callback]] = []
        self._timer_number = 0
        self._task_number = 0

    # ------------------------------------------------------------------------------------------ driving

    @contextmanager
    def current(self) -> Generator[None]:
        """Be the loop that tasks find."""
        asyncio._set_running_loop(self)
        try:
            yield
        finally:
            asyncio._set_running_loop(None)

    def run_ready(self) -> None:
        """Run callbacks until all tasks wait."""
        ready = self._ready
        for _ in range(MAX_CALLBACKS):
            if not ready:
                return
            callback = ready.popleft()
            if not callback.is_cancelled:
                try:
                    callback.context.run(callback.callback, *callback.args)
                except Exception as error:  # noqa: BLE001 - asyncio tells it and goes on
                    self.call_exception_handler({"exception": error})
        raise Livelock(f"{MAX_CALLBACKS} callbacks, and still there are more")

    def next_timer_at(self) -> float | None:
        """When the next timer is due."""
        while self._timers and self._timers[0][2].is_cancelled:
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def advance(self, now: float) -> None:
        """Move the clock; what is due by then becomes ready."""
        self.now = max(self.now, now)
        while self._timers and self._timers[0][0] <= self.now:
            self._ready.append(heapq.heappop(self._timers)[2])

    # ------------------------------------------------------------------------------------------ what asyncio calls

    def time(self) -> float:
        return self.now

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Callback:
        handle = Callback(0.0, callback, args, context)
        self._ready.append(handle)
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Callback:
        return self.call_at(self.now + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Callback:
        handle = Callback(when, callback, args, context)
        self._timer_number += 1
        heapq.heappush(self._timers, (when, self._timer_number, handle))
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, Any], *, name: object = None, context: Context | None = None
    ) -> asyncio.Task[Any]:
        self._task_number += 1
        task = NumberedTask(self._task_number, coro, loop=self, name=name or "task", context=context)
        self.on_task(task, context)
        return task

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.problems.append(context)

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False
