"""Cancellation of what waits: by an event, and a check for loops that call client libraries.

A library that is cancelled in the middle of a call may raise an error of its own where a CancelledError was due; a loop
that goes on after errors would then never end. It checks here before each round.

Not for tasks that run a TaskGroup: Python 3.11's leaves its own request to cancel standing when a member fails.
"""

import asyncio
from collections.abc import Awaitable, Iterable
from typing import Any, TypeVar

Awaited = TypeVar("Awaited")


def is_cancelled() -> bool:
    """True once the running task has been cancelled."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def unless_set(event: asyncio.Event, awaited: Awaitable[Awaited]) -> Awaited | None:
    """Wait for something, but not longer than until `event` is set: then cancel it, and return None."""
    task = asyncio.ensure_future(awaited)
    ended = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait((task, ended), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            task.cancel()
            await asyncio.wait((task,))  # unlike `await task` it says who was cancelled: this task, or that one
    finally:
        ended.cancel()
        task.cancel()
    return None if task.cancelled() else task.result()  # what came in the last moment counts


async def cancelled(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks, and wait until they have ended; what they raise is of no interest any more."""
    ending = list(tasks)
    for task in ending:
        task.cancel()
    await asyncio.gather(*ending, return_exceptions=True)
