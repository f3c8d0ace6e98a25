"""When a shoot is tried again: the library's timers, with waits that grow with the refusals."""

from collections.abc import Callable, Iterable

from gardenbus.common.machinery import timers
from gardenbus.common.ports.bus import Bus, Headers
from gardenbus.common.ports.tracing import TRACEPARENT
from gardenbus.common.resources.keys import Subjects

_NONE: Headers = {}

Waits = Callable[[int], float]
"""Seconds to wait after so many failures (1 the first time)."""


class Timers:
    """Sets timers by the server's clock."""

    def __init__(self, bus: Bus, subjects: Subjects, backoff: Waits) -> None:
        self._timers = timers.Timers(bus, subjects)
        self._backoff = backoff

    async def set_many(self, attempts: Iterable[tuple[str, int, str]]) -> None:
        """Have work on queue subjects come back: (subject, failures so far, traceparent or "").

        Returns when all timers are stored.
        """
        await self._timers.park_many(
            [
                timers.Parked(
                    subject, self._backoff(failures), failures, {TRACEPARENT: traceparent} if traceparent else _NONE
                )
                for subject, failures, traceparent in attempts
            ]
        )

    async def set_in(self, subject: str, seconds: float) -> None:
        """Have work on one queue subject come back after some seconds."""
        await self._timers.park(subject, seconds)
