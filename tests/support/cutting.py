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

    def cut(self) -> None:
        """Called where it is cut."""

    def __await__(self) -> Generator[Any, Any, None]:
        inner = self._awaited.__await__()
        sent: Any = None
        raised: BaseException | None = None
        waits = 0
        try:
            while True:
                waited_for = inner.send(sent) if raised is None else inner.throw(raised)
                sent, raised = None, None
                if waits == self._times:
                    self.was_cut = True
                    self.cut()
                    if asyncio.isfuture(waited_for):  # as a task does, or it could not be waited for a second time
                        waited_for._asyncio_future_blocking = False
                    waited_for = inner.throw(asyncio.CancelledError())
                waits += 1
                try:
                    sent = yield waited_for
                except BaseException as error:  # noqa: BLE001  whatever it is, it belongs to the inner one
                    raised = error
        except (StopIteration, asyncio.CancelledError):
            return
