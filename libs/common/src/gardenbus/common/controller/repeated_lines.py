"""Lines of a log that somebody outside can cause as often as they like: one at once, then one a minute with a count.

A line is known by who caused it and what it says. Whoever causes ever other ones has a few of their own a minute; the
others are counted as one. `times` of all lines together is how often it happened.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import structlog

QUIET_SECONDS = 60.0
"""Time without a further line that says the same."""

MOST_OF_ONE = 20
"""Different lines of one sender within that time; all further ones are counted as one."""

MOST = 2_000
"""Lines that are remembered; senders beyond are counted as one."""

_WindowKey = tuple[str, tuple[str, ...]]

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class _Window:
    """A minute of one line: when it ends, and what was left out of it."""

    __slots__ = ("ends_at", "fields", "left_out")

    def __init__(self, ends_at: float) -> None:
        self.ends_at = ends_at
        self.fields: dict[str, Any] = {}
        self.left_out = 0


class RepeatedLines:
    """Writes warnings of one event, each with `times`: 1 for the first, later those since the line before."""

    def __init__(self, event: str, monotonic: Callable[[], float]) -> None:
        self._event = event
        self._monotonic = monotonic
        self._windows: dict[_WindowKey, _Window] = {}  # the one that ends first comes first
        self._lines_of: Counter[str] = Counter()
        self._timer: asyncio.TimerHandle | None = None

    def warn(self, sender: str, *what: str, **fields: Any) -> None:
        """Log that `sender` caused this, or count it. `what` distinguishes lines, `fields` are logged."""
        self.close_windows()
        key = self._key(sender, what)
        window = self._windows.get(key)
        if window is not None:
            window.left_out += 1
            window.fields = fields
            return
        self._open(key)
        _log.warning(self._event, **fields, times=1)

    def close_windows(self, *, all_of_them: bool = False) -> None:
        """Write the counts of the minutes that are over; of all of them when nothing comes any more."""
        now = self._monotonic()
        while self._windows:
            key, window = next(iter(self._windows.items()))
            if window.ends_at > now and not all_of_them:
                break
            del self._windows[key]
            self._lines_of[key[0]] -= 1
            if not self._lines_of[key[0]]:
                del self._lines_of[key[0]]
            if window.left_out:
                _log.warning(self._event, **window.fields, times=window.left_out)
                if not all_of_them:
                    self._open(key)

    def _key(self, sender: str, what: tuple[str, ...]) -> _WindowKey:
        if (sender, what) in self._windows:
            return sender, what
        if len(self._windows) >= MOST:
            return "", ()
        return sender, what if self._lines_of[sender] < MOST_OF_ONE else ()

    def _open(self, key: _WindowKey) -> None:
        self._windows[key] = _Window(self._monotonic() + QUIET_SECONDS)
        self._lines_of[key[0]] += 1
        if self._timer is None:
            with contextlib.suppress(RuntimeError):  # without a loop counts come with the next line
                self._timer = asyncio.get_running_loop().call_later(QUIET_SECONDS, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self.close_windows()
        if self._windows and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(QUIET_SECONDS / 4, self._on_timer)
