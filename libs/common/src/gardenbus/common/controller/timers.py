"""Timers of the bus: work that comes back later holds no place in its queue and survives every process.

A timer is a scheduled message on `garden.later.<tail>`; when it is due, the server puts its copy on
`garden.queue.<tail>`. There is one per object, a new one replaces the old one. Enqueuing work at once removes the
timer in the same step, so that a stale one does not fire too.

Neither may carry `Nats-Msg-Id`: the server remembers ids per stream, not per subject, and would drop other work.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec

from gardenbus.common.api.keys import Header, Subjects
from gardenbus.common.ports.bus import Bus, Headers, Message

SCHEDULE = "Nats-Schedule"
"""Header by which a message is a timer: when it is due."""

LONGEST_SECONDS = 365 * 86_400.0
"""Later than this nothing is waited for: a reconciler that is called too early looks again."""

SOONEST_SECONDS = 1.0
"""A timer in the past fires at once and could run hot; the clock that was read may be behind the server's."""


class Timer(msgspec.Struct, frozen=True):
    """One piece of work that is to come back: its queue subject, in how many seconds, how often it has failed."""

    work_subject: str
    after_seconds: float
    attempt: int = 0
    headers: Headers = {}


class NextAttempt(NamedTuple):
    """Next attempt of queued work: when its timer is due (RFC 3339, None without one), or that it is queued already."""

    due_at: str | None
    is_queued: bool


def timer_message(subjects: Subjects, timer: Timer, now: datetime) -> Message:
    """The scheduled message; `now` is the server's time."""
    due_at = now.astimezone(UTC) + timedelta(seconds=min(LONGEST_SECONDS, max(SOONEST_SECONDS, timer.after_seconds)))
    return Message(
        subjects.later(timer.work_subject),
        headers={
            **timer.headers,
            SCHEDULE: f"@at {due_at.strftime('%Y-%m-%dT%H:%M:%S.%f')[:-3]}Z",
            "Nats-Schedule-Target": timer.work_subject,
            Header.ATTEMPT: str(timer.attempt),
        },
    )


class Timers:
    """Sets timers by the server's clock. Every call returns when the server has stored them."""

    def __init__(self, bus: Bus, subjects: Subjects) -> None:
        self._bus = bus
        self.subjects = subjects

    async def enqueue_after(
        self, work_subject: str, due_after_seconds: float, attempt: int = 0, headers: Headers = {}
    ) -> None:
        """Have work on a queue subject come back, at the earliest in a second. Unavailable: perhaps it does not."""
        await self.enqueue_many_after([Timer(work_subject, due_after_seconds, attempt, headers)])

    async def enqueue_many_after(self, timer: Sequence[Timer]) -> None:
        """The same for several, in one go."""
        if timer:
            now = await self._bus.server_now(self.subjects.stream("QUEUES"))
            await self._bus.publish_many([timer_message(self.subjects, each, now) for each in timer])

    def enqueue_message(self, work_subject: str, *, purge_timer: bool = True, headers: Headers = {}) -> Message:
        """Message that enqueues an object now and removes its timer."""
        purge = {"Nats-Scheduler": self.subjects.later(work_subject), "Nats-Schedule-Next": "purge"}
        return Message(work_subject, headers={**headers, **(purge if purge_timer else {})})

    async def due(self, work_subject: str) -> str | None:
        """Time at which the timer of a queue subject is due (RFC 3339), or None. Raises Unavailable."""
        timer = await self._bus.last(self.subjects.stream("QUEUES"), self.subjects.later(work_subject))
        at, _, due = (timer.headers.get(SCHEDULE, "") if timer else "").partition(" ")
        return due if at == "@at" else None

    async def next_attempt(self, work_subject: str) -> NextAttempt:
        """Next attempt of the work on a queue subject. Raises Unavailable."""
        due_at = await self.due(work_subject)
        stream = self.subjects.stream("QUEUES")
        return NextAttempt(due_at, due_at is None and await self._bus.last(stream, work_subject) is not None)
