"""Schedule of full backups: once a day, at a minute of the maintenance window that is drawn for that day. Pure."""

import hashlib
from datetime import UTC, date, datetime, time, timedelta

from gardenbus.common.api.garden.maintenance_windows import MaintenanceWindow, stated_window


def parse_window(text: str) -> MaintenanceWindow:
    """Read `220000+0100/230000+0100`, two times as Shoots write theirs. Raises ValueError."""
    begin, _, end = text.partition("/")
    window = stated_window({"maintenance": {"timeWindow": {"begin": begin, "end": end}}})
    if window is None:
        raise ValueError(
            f"{text!r} is no window: write two times of the day with their zones, as 220000+0100/230000+0100"
        )
    return window


def planned_at(window: MaintenanceWindow, day: date, landscape: str) -> datetime:
    """The minute of a day's window (that begins on this day) at which a landscape is backed up."""
    minutes = max(1, int(window.length / timedelta(minutes=1)))
    drawn = int.from_bytes(hashlib.sha256(f"{landscape} {day}".encode()).digest()[:8], "big") % minutes
    return datetime.combine(day, time(), UTC) + window.begin + timedelta(minutes=drawn)


def is_full_due(latest: datetime | None, now: datetime, window: MaintenanceWindow, landscape: str) -> bool:
    """True if a planned minute has come since the latest full backup; one that was missed is made up for."""
    today = now.astimezone(UTC).date()
    planned = (planned_at(window, today - timedelta(days=ago), landscape) for ago in range(3))
    return latest is None or latest < max(each for each in planned if each <= now)
