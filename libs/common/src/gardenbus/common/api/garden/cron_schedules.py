"""Cron schedules of five fields in a time zone: reading, checking, and the instants that they name.

    minute hour day-of-month month day-of-week      names as MON and JAN, lists, ranges, steps, `?` for `*`
    @hourly @daily @midnight @weekly @monthly @yearly @annually

Calculated by cronsim. Where Gardener's robfig/cron differs: a fixed hour that a change to summer time leaves out takes
place right after the gap (there: not at all), one that comes twice in autumn takes place at its first (there: both),
and `*/n` in one field of days leaves it to the other field too (there: either may match).
"""

from collections import deque
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

_SHORTHANDS: Mapping[str, str] = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_FIELDS = 5
_LONGEST = 200
_STRANGE = frozenset("L#W")
"""Letters of cronsim's own syntax that five fields of cron do not have, but in the names of months and days."""

_ZONE_CHANGE = timedelta(hours=3)
"""More than any zone has ever set its clocks back by at once."""

_SOME_INSTANT = datetime(2024, 1, 1, tzinfo=UTC)


class CronSchedule(NamedTuple):
    """A schedule that `parse_cron` and `location_of` have accepted."""

    expression: str
    location: ZoneInfo

    def next_after(self, instant: datetime) -> datetime | None:
        """The first instant (UTC) of the schedule after another; None if there is none in fifty years."""
        return next(self._instants_after(instant), None)

    def last_between(self, since: datetime, until: datetime) -> datetime | None:
        """The last instant (UTC) of the schedule after `since` and not after `until`; None if there is none.

        Counts through all of them: the two should not be more than days apart.
        """
        passed = deque(takewhile(lambda at: at <= until, self._instants_after(since)), maxlen=1)
        return passed[0] if passed else None

    def _instants_after(self, instant: datetime) -> Iterator[datetime]:
        for at in CronSim(self.expression, (instant - _ZONE_CHANGE).astimezone(self.location)):
            if (utc := at.astimezone(UTC)) > instant:
                yield utc


@lru_cache(maxsize=4096)
def parse_cron(text: str) -> str:
    """The schedule as five fields. Raises ValueError saying what is wrong with it."""
    expression = _SHORTHANDS.get(text.strip().lower(), text.strip()).upper().replace("?", "*")
    fields = expression.split()
    if len(text) > _LONGEST or len(fields) != _FIELDS:
        raise ValueError("must have five fields: minute, hour, day of the month, month, day of the week")
    days = (fields[2], _without_names(fields[4]))
    if any(_STRANGE.intersection(field) for field in days):
        raise ValueError("must be days and ranges of days: L, W and # are not cron's")
    try:
        CronSim(expression, _SOME_INSTANT)
    except CronSimError as error:
        raise ValueError(f"is no cron schedule: {error}".replace("Bad", "wrong")) from error
    return " ".join(fields)


def _without_names(field: str) -> str:
    return field.replace("WED", "")


@lru_cache(maxsize=1024)
def location_of(name: str) -> ZoneInfo:
    """The time zone of a name as `Europe/Berlin`; UTC for "". Raises ValueError when there is none of that name."""
    try:
        return ZoneInfo(name or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"is no time zone: {name[:80]!r}; write one as Europe/Berlin or UTC") from error
