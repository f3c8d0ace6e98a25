"""Tries operations of shoots again that failed because the infrastructure limits the rate of requests."""

from datetime import timedelta
from operator import attrgetter
from typing import assert_never

import structlog

from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.controller import Done, ReconcileResult, RequeueAfter
from gardenbus.common.errors import Terminal
from gardenbus.controllermanager import metrics
from gardenbus.controllermanager.domain.shoot_retry import (
    RATE_LIMITED,
    RETRY_PATCH,
    NoRetry,
    RetryAt,
    RetryNow,
    RetryPeriod,
    decide_retry,
    is_rate_limited,
)
from gardenbus.controllermanager.shoot_requests import ShootRequests, until
from gardenbus.controllermanager.watch.loop import BuiltLoop, Loop, LoopContext, existing

NAME, KIND = "shootretry", "shoot"
REJECTED = timedelta(minutes=10)
"""After which a retry is requested again that admission has rejected."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class ShootRetryReconciler:
    """Reconciles one shoot at a time; any number of replicas may run concurrently."""

    def __init__(self, context: LoopContext) -> None:
        self._store = context.store
        self._clock = context.clock
        self._requests = ShootRequests(context.store, context.api)
        configuration = context.configuration.shoot_retry
        self._period = RetryPeriod(configuration.retry_period, configuration.retry_jitter_period)

    async def reconcile(self, stored: StoredObject) -> ReconcileResult:
        """Reconcile a shoot. Raises Conflict, Unavailable."""
        now = self._clock.now()
        decision = decide_retry(stored.document(), now, self._period)
        match decision:
            case NoRetry():
                return Done("it has not failed for rate limits")
            case RetryAt(at=at):
                return until(at, now, "until it is tried again")
            case RetryNow():
                return await self._retry(stored)
            case _:
                assert_never(decision)

    async def _retry(self, stored: StoredObject) -> ReconcileResult:
        try:
            await self._requests.patch(stored, RETRY_PATCH)
        except Terminal as error:
            return RequeueAfter(REJECTED.total_seconds(), error.message)
        metrics.RETRIED_SHOOTS.inc()
        log.info("shoot.retried", shoot=str(stored.key), code=RATE_LIMITED)
        return Done("it is tried again")


def _build(context: LoopContext) -> BuiltLoop:
    def changed(key: ObjectKey, _old: StoredObject | None, new: StoredObject | None) -> None:
        """Enqueue shoots that fail in this way."""
        if new is not None and RATE_LIMITED.encode() in new.parts.status and is_rate_limited(new.document()):
            context.enqueue(key)

    return BuiltLoop(existing(context, KIND, ShootRetryReconciler(context).reconcile), changed)


LOOP = Loop(NAME, (KIND,), _build, attrgetter("shoot_retry.concurrent_syncs"))
