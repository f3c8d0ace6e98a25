"""Side thread: work on a large document, beside the event loop.

Python code of a thread gives the interpreter back every five milliseconds, so the loop lets others in meanwhile,
whatever the document is. One thread for all: the loop competes with no more. Only functions that compute go there.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from threading import get_ident
from typing import TypeVar

Result = TypeVar("Result")

LARGE_BYTES = 16 * 1024
"""Size of a document from which work on it may hold the loop for long: no shape of a smaller one takes 50 ms."""

_clock_of = getattr(time, "pthread_getcpuclockid", None)
"""Finds the processor clock of a thread; macOS has none, so the watchdog does not count the thread there."""

_thread = ThreadPoolExecutor(1, thread_name_prefix="large documents")
_running: list[tuple[int, float]] = []
"""Processor clock of the thread, and what it showed when the present work began."""


async def beside_loop(size: int, work: Callable[[], Result]) -> Result:
    """The result of work on a document of so many bytes: done at once, or in the thread where it is large."""
    if size < LARGE_BYTES:
        return work()
    context = copy_context()
    return await asyncio.get_running_loop().run_in_executor(_thread, lambda: context.run(_counted, work))


def computing_seconds() -> float:
    """Processor time that the present work of the thread has used; 0 where there is none."""
    for clock, began in tuple(_running):
        return time.clock_gettime(clock) - began
    return 0.0


def _counted(work: Callable[[], Result]) -> Result:
    if _clock_of is None:
        return work()
    clock = _clock_of(get_ident())
    _running.append((clock, time.clock_gettime(clock)))
    try:
        return work()
    finally:
        _running.clear()
