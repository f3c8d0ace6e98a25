"""Coroutines that are cut at one of their awaits, as by the end of their task."""

import asyncio
from collections.abc import Awaitable, Generator
from typing import Any


class CutAfter:
    """Awaits until something has been waited for `times` times, then is cancelled there; `was_cut` if that happened."""

    def __init__(self, awaited: Awaitable[Any], times: int) -> None:
        self._awaited = awaited
        self._times = times
        self.was_cut = False

    def __await__(self) -> Generator[Any, Any, None]:
        inner = self._awaited.__await__()
        sent: Any = None
        left = self._times
        try:
            while True:
                waited_for = inner.send(sent)
                if left == 0:
                    self.was_cut = True
                    inner.throw(asyncio.CancelledError())
                left -= 1
                sent = yield waited_for
        except (StopIteration, asyncio.CancelledError):
            return
