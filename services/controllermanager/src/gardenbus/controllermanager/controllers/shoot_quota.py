"""Deletes shoots whose Quotas limit the lifetime of clusters, when they have lived so long."""

from datetime import timedelta
from operator import attrgetter
from typing import assert_never

import structlog

from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.garden.quotas import (
    EXPIRATION_ANNOTATION,
    bindings_of,
    limits_of,
    quota_keys,
    shortest_lifetime,
)
from gardenbus.common.controller.controller import Done, ReconcileResult, Requeue, RequeueAfter
from gardenbus.common.controller.event_recorder import EventRecorder
from gardenbus.common.errors import Terminal
from gardenbus.common.ports.clock import timestamp
from gardenbus.controllermanager import metrics
from gardenbus.controllermanager.domain.shoot_expiry import AnnotateExpiration, DeleteExpired, KeepShoot, decide_expiry
from gardenbus.controllermanager.shoot_requests import LATE_SECONDS, ShootRequests
from gardenbus.controllermanager.watch.loop import REPORTER, BuiltLoop, Loop, LoopContext, existing, while_whole
from gardenbus.controllermanager.watch.quota_enqueuer import QuotaEnqueuer

NAME, KIND = "shootquota", "shoot"
FOLLOWS = (KIND, "credentialsbinding", "secretbinding")

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class ShootQuotaReconciler:
    """Reconciles one shoot at a time; any number of replicas may run concurrently."""

    def __init__(self, context: LoopContext) -> None:
        self._store = context.store
        self._clock = context.clock
        self._requests = ShootRequests(context.store, context.api)
        self._events = EventRecorder(context.store, REPORTER)
        self._period_seconds = context.configuration.shoot_quota.sync_period.total_seconds()

    async def reconcile(self, stored: StoredObject) -> ReconcileResult:
        """Reconcile a shoot. Raises Conflict, Unavailable."""
        if stored.is_deleting:
            return Done("it is being deleted")
        if not bindings_of(stored.document()) and EXPIRATION_ANNOTATION not in stored.annotations:
            return Done("it has no credentials, and so no Quotas")
        found = await self._lifetime(stored)
        if isinstance(found, Done | RequeueAfter):
            return found
        now = self._clock.now()
        decision = decide_expiry(stored.document(), found, now)
        try:
            match decision:
                case KeepShoot(expires_at=expires_at):
                    left = (expires_at - now).total_seconds() + LATE_SECONDS if expires_at else self._period_seconds
                    return RequeueAfter(min(left, self._period_seconds), "until it is checked again")
                case AnnotateExpiration():
                    await self._requests.patch(stored, decision.patch)
                    return Requeue("its expiration was written")
                case DeleteExpired(expired_at=expired_at):
                    await self._requests.delete_confirmed(stored)
                    await self._record(stored, f"The cluster lifetime ended at {timestamp(expired_at)}")
                    return Done("it has expired")
                case _:
                    assert_never(decision)
        except Terminal as error:
            log.warning("expiry.rejected", shoot=str(stored.key), reason=error.message)
            return RequeueAfter(self._period_seconds, error.message)

    async def _lifetime(self, stored: StoredObject) -> timedelta | Done | RequeueAfter | None:
        """The least lifetime of the shoot's Quotas; waits where one of them, or a binding, is missing."""
        bindings = await self._store.get_many(bindings_of(stored.document()))
        keys = [key for binding in bindings if binding is not None for key in quota_keys(binding.document())]
        quotas = await self._store.get_many(keys)
        if None in bindings or None in quotas:
            return RequeueAfter(self._period_seconds, "a binding or a Quota of it is missing")
        if not quotas and EXPIRATION_ANNOTATION not in stored.annotations:
            return Done("it has no Quotas")
        return shortest_lifetime(limits_of(quota.document()) for quota in quotas if quota is not None)

    async def _record(self, stored: StoredObject, message: str) -> None:
        metrics.EXPIRED_SHOOTS.inc()
        log.info("shoot.expired", shoot=str(stored.key), reason=message)
        await self._events.record(stored.key, stored.uid, reason="ClusterLifetimeExpired", message=message)


def _build(context: LoopContext) -> BuiltLoop:
    return BuiltLoop(
        existing(context, KIND, while_whole(context, ShootQuotaReconciler(context).reconcile)),
        QuotaEnqueuer(context).changed,
    )


LOOP = Loop(NAME, FOLLOWS, _build, attrgetter("shoot_quota.concurrent_syncs"))
