"""Closes connections beyond their users' budgets: reads the servers' lists of connections again and again."""

import asyncio

import structlog

from gardenbus.common.controller.repeated_lines import RepeatedLines
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.clock import Clock
from gardenbus.identity import metrics
from gardenbus.identity.domain.connection_loads import ConnectionLoads, Excess
from gardenbus.identity.ports.system_account import ServedConnections

INTERVAL_SECONDS = 0.25
MOST_SECONDS = 1.0
"""A list that takes long is read the less often, but never less than about once a second."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class ConnectionLimitsController:
    """`run` observes the connections until it is cancelled."""

    def __init__(self, system: ServedConnections, loads: ConnectionLoads, clock: Clock) -> None:
        self._system = system
        self._loads = loads
        self._clock = clock
        self._lines = RepeatedLines("connection.over_budget", clock.monotonic)

    async def run(self) -> None:
        """Observe, close, and wait."""
        while True:
            began = self._clock.monotonic()
            try:
                await self.reconcile()
            except Unavailable as error:
                log.warning("connections.unobserved", reason=error.message)
            taken = self._clock.monotonic() - began
            await self._clock.sleep(min(max(INTERVAL_SECONDS, taken), MOST_SECONDS))

    async def reconcile(self) -> None:
        """Observe once, and close what is beyond the budgets. Raises Unavailable."""
        lists = await self._system.connection_lists()
        excesses = self._loads.observe(lists.open, lists.ended, self._clock.monotonic())
        await asyncio.gather(*map(self._close, excesses))

    async def _close(self, excess: Excess) -> None:
        user, reason = excess.connection.user, excess.reason
        try:
            await self._system.kick(excess.connection)
        except Unavailable as error:
            log.warning("connection.kept", user=user, reason=error.message)
            return
        metrics.OVER_BUDGET.inc()
        self._lines.warn(user, reason, user=user, reason=reason, connection=excess.connection.number)
