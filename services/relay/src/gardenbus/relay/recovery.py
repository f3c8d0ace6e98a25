"""Watches over the recovery of a store that was restored or rebuilt (`ports.recovery`), for as long as it lasts.

The lease period is measured by this process, from when it first saw the recovery: no wall clock can shorten it. Seeds
that are silent are announced again and again with the recovery's id, by which their gardenlets send inventories.
"""

from datetime import timedelta

import structlog

from gardenbus.common.ports.clock import Clock
from gardenbus.relay import metrics
from gardenbus.relay.ports.outbox import Outbox

_log = structlog.stdlib.get_logger()

STEP_SECONDS = 1.0
REMINDER_SECONDS = 15.0
"""Interval at which silent Seeds are announced again, and named in the log."""


class RecoveryWatch:
    """See the module. `step` is for who leads."""

    def __init__(self, outbox: Outbox, clock: Clock, lease_period: timedelta) -> None:
        self._outbox = outbox
        self._clock = clock
        self._lease_seconds = lease_period.total_seconds()
        self._seen: tuple[str, float] = ("", 0.0)
        self._step_at = self._remind_at = 0.0

    def require(self) -> None:
        """Look at the next step: the store was opened."""
        self._step_at = self._remind_at = 0.0

    async def step(self) -> bool:
        """Advance it when due; whether one has ended, so that whoever waited is to be queued again. Raises Conflict."""
        now = self._clock.monotonic()
        if now < self._step_at:
            return False
        self._step_at = now + STEP_SECONDS
        recovery_id, since = self._seen
        waited = recovery_id if recovery_id and now - since >= self._lease_seconds else ""
        reminds = now >= self._remind_at
        progress = await self._outbox.advance_recovery(waited, announces=reminds and bool(recovery_id))
        recovery = progress.recovery
        metrics.RECOVERING_SEEDS.set(len(recovery.silent) if recovery else 0)
        metrics.RECOVERING.set(recovery is not None and not progress.has_ended)
        if recovery is None:
            self._seen = ("", 0.0)
            return False
        if progress.has_ended:
            self._seen = ("", 0.0)
            _log.warning("recovery.finished", cause=recovery.cause, responses=dict(recovery.responses))
            return True
        if self._seen[0] != recovery.recovery_id:
            self._seen = (recovery.recovery_id, now)
        if reminds:
            self._remind_at = now + REMINDER_SECONDS
            _log.warning(
                "recovery.waiting", cause=recovery.cause, silent=list(recovery.silent), reason=recovery.awaited
            )
        return False
