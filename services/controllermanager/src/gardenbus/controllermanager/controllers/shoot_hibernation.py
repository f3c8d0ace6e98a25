"""Puts shoots to sleep and wakes them up by their hibernation schedules.

The spec is switched first, through admission, and the status records it: a process that ends in between has the switch
made again, which changes nothing.
"""

from operator import attrgetter
from typing import assert_never

import structlog

from gardenbus.common.api.document import Document, StoredObject, section
from gardenbus.common.api.garden.hibernation import is_hibernation_enabled
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.controller import Done, ReconcileResult, Requeue, RequeueAfter
from gardenbus.common.controller.event_recorder import EventRecorder
from gardenbus.common.errors import Terminal
from gardenbus.controllermanager import metrics
from gardenbus.controllermanager.domain.shoot_hibernation import (
    AWAKE,
    HIBERNATED,
    AwaitEdge,
    NoSchedule,
    SwitchHibernation,
    decide_hibernation,
    with_trigger_time,
)
from gardenbus.controllermanager.domain.shoot_parts import is_status_alone
from gardenbus.controllermanager.shoot_requests import ShootRequests, until
from gardenbus.controllermanager.watch.loop import REPORTER, BuiltLoop, Loop, LoopContext, existing

NAME, KIND = "shoothibernation", "shoot"
REJECTED_SECONDS = 300.0
"""After which a switch is tried again that admission has rejected."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class ShootHibernationReconciler:
    """Reconciles one shoot at a time; any number of replicas may run concurrently."""

    def __init__(self, context: LoopContext) -> None:
        self._store = context.store
        self._clock = context.clock
        self._requests = ShootRequests(context.store, context.api)
        self._events = EventRecorder(context.store, REPORTER)
        self._deadline = context.configuration.shoot_hibernation.trigger_deadline

    async def reconcile(self, stored: StoredObject) -> ReconcileResult:
        """Reconcile a shoot. Raises Conflict, Unavailable."""
        now = self._clock.now()
        decision = decide_hibernation(stored.document(), now, self._deadline)
        match decision:
            case NoSchedule(reason=reason):
                return Done(reason)
            case AwaitEdge(next_at=next_at):
                return until(next_at, now, "until the next start or end")
            case SwitchHibernation():
                return await self._switch(stored, decision)
            case _:
                assert_never(decision)

    async def _switch(self, stored: StoredObject, decision: SwitchHibernation) -> ReconcileResult:
        hibernates = decision.hibernates
        if is_hibernation_enabled(section(stored.document(), "spec")) != hibernates:
            try:
                await self._requests.patch(stored, {"spec": {"hibernation": {"enabled": hibernates}}})
            except Terminal as error:
                reason = "HibernationFailed" if hibernates else "WakeUpFailed"
                await self._events.record(stored.key, stored.uid, reason=reason, message=error.message)
                return RequeueAfter(REJECTED_SECONDS, error.message)
            metrics.HIBERNATION_SWITCHES.labels("sleep" if hibernates else "wake").inc()
        at = self._clock.now()
        await self._requests.update_status(stored.key, lambda shoot: with_trigger_time(shoot, at))
        reason, message = HIBERNATED if hibernates else AWAKE
        await self._events.record(stored.key, stored.uid, reason=reason, message=message, type="Normal")
        log.info("hibernation.switched", shoot=str(stored.key), hibernates=hibernates, edge_at=str(decision.edge_at))
        return Requeue("switched: what comes next is calculated anew")


def _build(context: LoopContext) -> BuiltLoop:
    def changed(key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        """Enqueue shoots with schedules when these change."""
        if new is None or is_status_alone(old, new):
            return
        if _relevant(new) and (old is None or _relevant(old) != _relevant(new)):
            context.enqueue(key)

    return BuiltLoop(existing(context, KIND, ShootHibernationReconciler(context).reconcile), changed)


def _relevant(stored: StoredObject) -> object:
    """The schedules; empty without any."""
    if b'"schedules"' not in stored.parts.spec:
        return ()
    document: Document = stored.document()
    return section(document, "spec", "hibernation").get("schedules") or ()


LOOP = Loop(NAME, (KIND,), _build, attrgetter("shoot_hibernation.concurrent_syncs"))
