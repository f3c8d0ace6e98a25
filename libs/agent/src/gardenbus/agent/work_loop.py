"""Loop that repeats one piece of work; no failure ends it."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable

import structlog

from gardenbus.common.controller.reconcile_ids import bound_reconcile_id
from gardenbus.common.controller.repeated_lines import RepeatedLines
from gardenbus.common.errors import GardenbusError

_log = structlog.stdlib.get_logger()


class WorkLoop:
    """Calls `work` once `delay` seconds are over (None: never), or at once when triggered.

    `starts_idle` waits before the first call. `fields` are added to the loop's log lines. A reason that interrupts one
    round after the other is logged at once, and then once a minute with the number of rounds.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[], Awaitable[object]],
        delay: Callable[[], float | None],
        *,
        starts_idle: bool = False,
        **fields: str,
    ) -> None:
        self.name = name
        self._work = work
        self._delay = delay
        self._starts_idle = starts_idle
        self._fields = fields
        self._triggered = asyncio.Event()
        self._interrupted = RepeatedLines("round.interrupted", time.monotonic)

    def trigger(self) -> None:
        """Call `work` now, or once more after the current call."""
        self._triggered.set()

    async def run(self) -> None:
        """Run until cancelled."""
        if self._starts_idle:
            await self._wait()
        while True:
            self._triggered.clear()
            with bound_reconcile_id():
                await self._round()
            await self._wait()

    async def _round(self) -> None:
        try:
            await self._work()
        except (GardenbusError, OSError) as error:
            self._interrupted.warn(self.name, str(error), loop=self.name, reason=str(error), **self._fields)
        except Exception:  # noqa: BLE001 - a loop that nothing may end
            _log.exception("round.crashed", loop=self.name, **self._fields)

    async def _wait(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._delay()):
                await self._triggered.wait()
