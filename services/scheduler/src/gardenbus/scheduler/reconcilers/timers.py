"""Timers: work that comes back later, without holding a place in the queue meanwhile."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

from gardenbus.common.ports.bus import Bus, Message
from gardenbus.common.resources.keys import Header, Subjects

SOONEST_SECONDS = 1.0
"""A timer that is due at once could run hot; the server's clock counts, and it may be ahead of what was read."""

Backoff = Callable[[int], float]
"""Seconds to wait after so many failures (1 the first time)."""


class Timers:
    """Sets timers by the server's clock."""

    def __init__(self, bus: Bus, subjects: Subjects, backoff: Backoff) -> None:
        self._bus = bus
        self._subjects = subjects
        self._backoff = backoff

    async def set_many(self, attempts: Iterable[tuple[str, int]]) -> None:
        """Have work on queue subjects come back: (subject, failures so far). Returns when all timers are stored."""
        due = [(subject, failures, self._backoff(failures)) for subject, failures in attempts]
        if due:
            now = await self._bus.server_now(self._subjects.stream("QUEUES"))
            await self._bus.publish_many([self._timer(subject, failures, now, wait) for subject, failures, wait in due])

    async def set_in(self, subject: str, seconds: float) -> None:
        """Have work on one queue subject come back after some seconds."""
        now = await self._bus.server_now(self._subjects.stream("QUEUES"))
        await self._bus.publish_many([self._timer(subject, 0, now, seconds)])

    def _timer(self, subject: str, failures: int, now: datetime, seconds: float) -> Message:
        due_at = now.astimezone(UTC) + timedelta(seconds=max(seconds, SOONEST_SECONDS))
        return Message(
            self._subjects.later(subject),
            headers={
                "Nats-Schedule": f"@at {due_at.strftime('%Y-%m-%dT%H:%M:%S.%f')[:-3]}Z",
                "Nats-Schedule-Target": subject,
                Header.ATTEMPT: str(failures),
            },
        )
