"""A pause that can be cut short."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from gardenbus.common.ports.clock import Clock


class Alarm:
    """Waits by a clock, or until it is rung. A ring while nobody waits ends the next pause at once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """End the pause, or the next one."""
        self._rung.set()

    async def pause(self, seconds: float) -> None:
        """Wait until it is rung or the time is over."""
        sleep: Coroutine[Any, Any, Any] = self._clock.sleep(seconds)
        waits = {asyncio.create_task(self._rung.wait()), asyncio.create_task(sleep)}
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        self._rung.clear()
