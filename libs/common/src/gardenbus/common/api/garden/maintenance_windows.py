"""Maintenance time windows of Shoots: when a cluster may be updated, once a day.

`spec.maintenance.timeWindow` has `begin` and `end` as `HHMMSS+ZZZZ`; a window may cross midnight. A shoot that states
none has one of an hour, which follows from its name. Work begins no later than a quarter of an hour before the end.
Source: Gardener's `pkg/utils/timewindow` and `EffectiveShootMaintenanceTimeWindow`.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, time, timedelta
from hashlib import sha256
from typing import Any, NamedTuple

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.short_cache import short_cache
from gardenbus.common.errors import FieldProblem

PATH = "spec.maintenance.timeWindow"
NEEDS_RETRY = "maintenance.shoot.gardener.cloud/needs-retry-operation"
"""Annotation of a failed shoot whose change waits for the window: it is tried again then."""
SHORTEST = timedelta(minutes=30)
LONGEST = timedelta(hours=6)
FINISHING = timedelta(minutes=15)
"""The end of a window, in which nothing is begun any more."""

_DAY = timedelta(days=1)
_DEFAULT_LENGTH = timedelta(hours=1)
_TIME = re.compile(r"(?P<hour>[01]\d|2[0-3])(?P<minute>[0-5]\d)(?P<second>[0-5]\d)(?P<zone>[+-](?:0\d|1[0-4])[0-5]\d)")


class MaintenanceWindow(NamedTuple):
    """A window: its begin, since midnight UTC, and its length."""

    begin: timedelta
    length: timedelta

    def opened_at(self, now: datetime) -> datetime | None:
        """Begin of the window that is open; None when none is."""
        begin = self.next_begin(now) - _DAY
        return begin if now < begin + self.length else None

    def next_begin(self, now: datetime) -> datetime:
        """Begin of the next window after now."""
        midnight = datetime.combine(now.astimezone(UTC).date(), time(), UTC)
        begin = midnight + self.begin
        return begin if begin > now else begin + _DAY


def effective_window(shoot_spec: Document, identity: str) -> MaintenanceWindow:
    """The window in which work on a shoot begins; `identity` chooses one where none is stated, or none can be read."""
    window = stated_window(shoot_spec) or default_window(identity)
    return window._replace(length=window.length - FINISHING) if window.length > FINISHING else window


def stated_window(shoot_spec: Mapping[str, Any]) -> MaintenanceWindow | None:
    """The window of a spec; None when there is none, or it cannot be read."""
    stated = section(shoot_spec, "maintenance", "timeWindow")
    begin, end = (_since_midnight(stated.get(field)) for field in ("begin", "end"))
    if begin is None or end is None:
        return None
    return MaintenanceWindow(begin, (end - begin) % _DAY or _DAY)


def default_window(identity: str) -> MaintenanceWindow:
    """An hour of the day for a shoot without a window: always the same one for the same shoot."""
    hour = int.from_bytes(sha256(identity.encode()).digest()[:4]) % 24
    return MaintenanceWindow(timedelta(hours=hour), _DEFAULT_LENGTH)


def window_problems(shoot_spec: Mapping[str, Any]) -> Iterator[FieldProblem]:
    """Problems of a stated window. Source: `ValidateMaintenance` in `pkg/api/core/validation/shoot.go`."""
    maintenance = section(shoot_spec, "maintenance")
    if maintenance.get("timeWindow") is None:
        return
    stated = section(maintenance, "timeWindow")
    unread = [field for field in ("begin", "end") if _since_midnight(stated.get(field)) is None]
    for field in unread:
        yield FieldProblem(f"{PATH}.{field}", "must be a time of the day with its zone, as 220000+0100")
    window = stated_window(shoot_spec)
    if window is not None and not SHORTEST <= window.length <= LONGEST:
        yield FieldProblem(PATH, f"must be open for 30 minutes to 6 hours, and is for {window.length}")


def _since_midnight(value: object) -> timedelta | None:
    """Time since midnight UTC; None for what is no time."""
    return _parse_time(value) if isinstance(value, str) else None


@short_cache(4096)
def _parse_time(text: str) -> timedelta | None:
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    local = timedelta(hours=int(found["hour"]), minutes=int(found["minute"]), seconds=int(found["second"]))
    zone = found["zone"]
    offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[3:]))
    return (local - offset if zone[0] == "+" else local + offset) % _DAY
