"""Cancellation check for loops that call client libraries.

A library that is cancelled in the middle of a call may raise an error of its own where a CancelledError was due; a loop
that goes on after errors would then never end. It checks here before each round.

Not for tasks that run a TaskGroup: Python 3.11's leaves its own request to cancel standing when a member fails.
"""

import asyncio


def is_cancelled() -> bool:
    """True once the running task has been cancelled."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
