"""Complaints of a server: each is logged once a minute, however often it is said again."""

from time import monotonic

COMPLAINT_LOG_SECONDS = 60.0
"""Interval at which the same complaint is logged again."""

_MOST = 1000
"""Most complaints that are remembered; beyond they are forgotten together."""


class Complaints:
    """Remembers what was logged. A rejected subject is a complaint of its own: its text names it."""

    def __init__(self) -> None:
        self._logged: dict[str, float] = {}

    def is_due(self, text: str) -> bool:
        """True for a complaint that has not been logged for a minute; it counts as logged then."""
        now = monotonic()
        if now - self._logged.get(text, now - COMPLAINT_LOG_SECONDS) < COMPLAINT_LOG_SECONDS:
            return False
        if len(self._logged) >= _MOST:
            self._logged.clear()
        self._logged[text] = now
        return True
