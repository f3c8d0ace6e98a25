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
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.controller import Done, ReconcileResult, Requeue, RequeueAfter
from gardenbus.common.controller.event_recorder import EventRecorder
from gardenbus.common.errors import Terminal
from gardenbus.common.ports.clock import timestamp
from gardenbus.controllermanager import metrics
from gardenbus.controllermanager.domain.shoot_expiry import AnnotateExpiration, DeleteExpired, KeepShoot, decide_expiry
from gardenbus.controllermanager.handlers.loop import REPORTER, BuiltLoop, Loop, LoopContext, existing
from gardenbus.controllermanager.handlers.shoot_parts import bindings_part, is_status_alone
from gardenbus.controllermanager.registry.shoot_requests import LATE_SECONDS, ShootRequests

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


class QuotaEnqueuer:
    """Enqueues shoots that Quotas may limit."""

    def __init__(self, context: LoopContext) -> None:
        self._objects = context.objects
        self._enqueue = context.enqueue

    def changed(self, key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        """Enqueue a shoot once, when its bindings or its annotation change, and when the Quotas of a binding do."""
        if key.kind == KIND:
            if new is not None and not is_status_alone(old, new):
                self._shoot_changed(old, new)
        elif old is not None and new is not None and quota_keys(old.document()) != quota_keys(new.document()):
            for shoot in self._objects.objects(KIND).values():
                if key in bindings_of(bindings_part(shoot)):
                    self._enqueue(shoot.key)

    def _shoot_changed(self, old: StoredObject | None, new: StoredObject) -> None:
        is_same = old is not None and _relevant(old) == _relevant(new)
        if not new.is_deleting and not is_same and self._may_be_limited(new):
            self._enqueue(new.key)

    def _may_be_limited(self, shoot: StoredObject) -> bool:
        """False when no binding of a shoot names a Quota; one that is not cached yet may."""
        bindings = bindings_of(bindings_part(shoot))
        cached = [self._objects.objects(key.kind).get(key) for key in bindings]
        return EXPIRATION_ANNOTATION in shoot.annotations or any(
            binding is None or quota_keys(binding.document()) for binding in cached
        )


def _build(context: LoopContext) -> BuiltLoop:
    return BuiltLoop(existing(context, KIND, ShootQuotaReconciler(context).reconcile), QuotaEnqueuer(context).changed)


def _relevant(stored: StoredObject) -> object:
    return bindings_of(bindings_part(stored)), stored.annotations.get(EXPIRATION_ANNOTATION)


LOOP = Loop(NAME, KIND, FOLLOWS, _build, attrgetter("shoot_quota.concurrent_syncs"))
