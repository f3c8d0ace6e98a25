"""Activity of an agent of which several processes may run: one is active, the others stand by."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Activity:
    """Begins and ends any number of times; `run_while` runs work only in between."""

    def __init__(self) -> None:
        self._began = asyncio.Event()
        self._ended = asyncio.Event()

    @property
    def is_on(self) -> bool:
        """True between `begin` and `end`."""
        return self._began.is_set()

    def begin(self) -> None:
        """Become active."""
        self._ended.clear()
        self._began.set()

    def end(self) -> None:
        """Stand by."""
        self._began.clear()
        self._ended.set()

    async def run_while(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run `work` whenever active, until cancelled; it is cancelled at the end of each activity.

        Raises what the work raises; work that returns runs again at the next activity.
        """
        while True:
            await self._began.wait()
            ended = asyncio.create_task(self._ended.wait())
            running = asyncio.create_task(work())
            try:
                await asyncio.wait({running, ended}, return_when=asyncio.FIRST_COMPLETED)
                if running.done():
                    running.result()
                    await ended
            finally:
                for task in (running, ended):
                    task.cancel()
                await asyncio.gather(running, ended, return_exceptions=True)
