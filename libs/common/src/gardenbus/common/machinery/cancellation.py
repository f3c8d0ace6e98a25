"""Ending loops that call client libraries.

A library that is cut off in the middle of a call may answer with an error of its own where a CancelledError was due; a
loop that goes on after errors would then never end. It asks here before each round.

Not for tasks that run a TaskGroup: Python 3.11's leaves its own request to end standing when a member fails.
"""

import asyncio


def is_cancelled() -> bool:
    """Whether somebody has asked the running task to end."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
