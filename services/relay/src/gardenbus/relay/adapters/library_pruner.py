"""Removes versions of the function library that no process calls any more.

Each version counts its calls (functions/keys.lua). The processes of a landscape call theirs all the time, its relay at
least once a second, so a count that has stood for a day means that no process is left. Where that errs, the next call
loads the version again, and the others vouch for it: nothing is fenced, nothing is lost.
"""

from datetime import timedelta
from typing import NamedTuple

import structlog

from gardenbus.common.adapters.redis.connection import RedisConnection
from gardenbus.common.adapters.redis.function_library import function_of
from gardenbus.common.controller.wait import forever
from gardenbus.common.ports.clock import Clock

UNUSED_FOR = timedelta(hours=24)
"""Time without calls after which a version goes."""

PRUNE_INTERVAL = timedelta(hours=1)
"""Interval of pruning."""

_log = structlog.stdlib.get_logger()


class _CallCount(NamedTuple):
    """A count of calls, and since when it has stood (monotonic seconds)."""

    calls: int
    since: float


class LibraryPruner:
    """Prunes the versions on one server, whichever landscapes they serve."""

    def __init__(self, connection: RedisConnection, clock: Clock, *, unused_for: timedelta = UNUSED_FOR) -> None:
        self._connection = connection
        self._clock = clock
        self._unused_for = unused_for.total_seconds()
        self._seen: dict[str, _CallCount] = {}

    async def run(self) -> None:
        """Prune at intervals, until cancelled."""
        await forever(
            self.prune,
            period_seconds=PRUNE_INTERVAL.total_seconds(),
            sleep=self._clock.sleep,
            interrupted=lambda error: _log.info("functions.uncounted", reason=error.message),
        )

    async def prune(self) -> None:
        """Remove the versions whose count has not moved for long enough. Raises Unavailable."""
        now = self._clock.monotonic()
        names = [name for name in await self._connection.libraries() if name != self._connection.library]
        commands = [("FCALL_RO", function_of(name, "uses"), 0) for name in names]
        counts = dict(zip(names, await self._connection.pipeline(commands), strict=True))
        before, self._seen = self._seen, {}
        for name, calls in counts.items():
            seen = before.get(name)
            if seen is None or seen.calls != calls:
                self._seen[name] = _CallCount(calls, now)
            elif now - seen.since < self._unused_for:
                self._seen[name] = seen
            else:
                await self._connection.command("FUNCTION", "DELETE", name)
                _log.info("functions.removed", library=name)
