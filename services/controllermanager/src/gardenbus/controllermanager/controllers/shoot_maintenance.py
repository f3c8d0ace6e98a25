"""Maintains shoots in their time windows: versions of Kubernetes and of machine images, and a reconciliation a day.

Admission decides about the changes as about anybody's. A rejection is recorded in `status.lastMaintenance`, and all
is tried again in the next window.
"""

from datetime import datetime
from operator import attrgetter
from typing import assert_never

import structlog

from gardenbus.common.api.document import Document, StoredObject, section
from gardenbus.common.api.garden.profile_parts import profile_key, profile_spec_of
from gardenbus.common.controller.controller import Done, ReconcileResult
from gardenbus.common.controller.event_recorder import EventRecorder
from gardenbus.common.errors import Terminal
from gardenbus.controllermanager import metrics
from gardenbus.controllermanager.domain.shoot_maintenance import (
    AwaitWindow,
    MaintainNow,
    MaintenancePlan,
    NotMaintained,
    begun,
    decide_maintenance,
    ended,
    event_of,
    plan_maintenance,
    rejected,
    without_request_patch,
)
from gardenbus.controllermanager.shoot_requests import ShootRequests
from gardenbus.controllermanager.watch.loop import REPORTER, BuiltLoop, Loop, LoopContext, existing
from gardenbus.controllermanager.watch.maintenance_clock import MaintenanceClock

NAME, KIND = "shootmaintenance", "shoot"

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class ShootMaintenanceReconciler:
    """Reconciles one shoot at a time; any number of replicas may run concurrently."""

    def __init__(self, context: LoopContext) -> None:
        self._store = context.store
        self._clock = context.clock
        self._requests = ShootRequests(context.store, context.api)
        self._events = EventRecorder(context.store, REPORTER)

    async def reconcile(self, stored: StoredObject) -> ReconcileResult:
        """Reconcile a shoot. Raises Conflict, Unavailable."""
        now = self._clock.now()
        decision = decide_maintenance(stored.document(), now)
        match decision:
            case NotMaintained():
                return Done("it is being deleted")
            case AwaitWindow(at=at):
                return Done(f"its moment is {at:%F %T}")
            case MaintainNow(next_at=next_at):
                await self._maintain(stored, now)
                return Done(f"maintained; its next moment is {next_at:%F %T}")
            case _:
                assert_never(decision)

    async def _maintain(self, stored: StoredObject, now: datetime) -> None:
        shoot = stored.document()
        plan = plan_maintenance(shoot, await self._offered(stored), now)
        at_first = await self._requests.write_status(stored, begun(shoot, plan, now))
        if plan.patch:
            try:
                await self._requests.patch(at_first, plan.patch)
            except Terminal as error:
                await self._reject(at_first, error.message, now)
                return
        await self._requests.update_status(stored.key, ended)
        await self._record(stored, plan)
        log.info("shoot.maintained", shoot=str(stored.key), description=plan.description)

    async def _offered(self, stored: StoredObject) -> Document:
        """Offer of the shoot's profile; {} where there is none."""
        key = profile_key(section(stored.document(), "spec"), stored.key.namespace)
        profile = await self._store.get(key) if key is not None else None
        return (profile_spec_of(profile.document()) if profile is not None else None) or {}

    async def _reject(self, stored: StoredObject, problem: str, now: datetime) -> None:
        """Record a rejection; an annotation that asked for the maintenance goes, so that it can be set again."""
        metrics.MAINTENANCE_UPDATES.labels("all", "rejected").inc()
        await self._events.record(stored.key, stored.uid, reason="MaintenanceFailed", message=problem)

        def without_request(shoot: Document) -> Document:
            failed, patch = rejected(shoot, problem, now), without_request_patch(shoot)
            if patch is None:
                return failed
            metadata = section(failed, "metadata")
            annotations = {**section(metadata, "annotations"), **patch["metadata"]["annotations"]}
            kept = {name: value for name, value in annotations.items() if value is not None}
            return {**failed, "metadata": {**metadata, "annotations": kept}}

        await self._requests.update_status(stored.key, without_request)
        log.warning("maintenance.rejected", shoot=str(stored.key), reason=problem)

    async def _record(self, stored: StoredObject, plan: MaintenancePlan) -> None:
        for update in plan.updates:
            reason, message = event_of(update)
            kind = "Normal" if update.is_successful else "Warning"
            await self._events.record(stored.key, stored.uid, reason=reason, message=message, type=kind)
            metrics.MAINTENANCE_UPDATES.labels(
                update.component.lower().replace(" ", "-"), "updated" if update.is_successful else "failed"
            ).inc()


def _build(context: LoopContext) -> BuiltLoop:
    clock = MaintenanceClock(context)
    return BuiltLoop(existing(context, KIND, ShootMaintenanceReconciler(context).reconcile), clock.changed, clock.run)


LOOP = Loop(NAME, (KIND,), _build, attrgetter("shoot_maintenance.concurrent_syncs"))
