"""Sleep that can be interrupted."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from gardenbus.common.ports.clock import Clock


class InterruptibleSleep:
    """Sleeps by a clock until interrupted. An interrupt while nobody sleeps ends the next sleep at once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._interrupted = asyncio.Event()

    def interrupt(self) -> None:
        """End the current sleep, or the next one."""
        self._interrupted.set()

    async def pause(self, seconds: float) -> None:
        """Sleep until interrupted or the time is over."""
        sleep: Coroutine[Any, Any, Any] = self._clock.sleep(seconds)
        waits = {asyncio.create_task(self._interrupted.wait()), asyncio.create_task(sleep)}
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        self._interrupted.clear()
