"""Turns of the event loop: a request that takes long lets others in between its steps.

What a document costs is bounded by its size, not its shape: a mebibyte of labels or worker pools is admitted in some
hundred milliseconds, in which no other request would be heard.
"""

import asyncio
import time
from collections.abc import Callable

HELD_SECONDS = 0.01
"""Processor time after which a request lets others in."""


class LoopTurn:
    """Processor time for which a request has had the event loop; a machine that was stopped does not count."""

    def __init__(self, now: Callable[[], float] = time.thread_time) -> None:
        self._now = now
        self._began = now()

    async def let_others_in(self) -> None:
        """Give the event loop back if it has been held for long."""
        if self._now() - self._began >= HELD_SECONDS:
            await asyncio.sleep(0)
            self._began = self._now()
