"""Keeps the snapshots of placements' policies and of their selected resources.

Each write holds only while the placement has the version that was read, so that the newest version prevails. A deleting
placement is released here last, when its bindings are gone.
"""

from collections.abc import Sequence
from datetime import timedelta

import structlog

from gardenbus.common.api.document import Document, StoredObject, section
from gardenbus.common.api.document_parts import with_finalizer, without_finalizer
from gardenbus.common.api.fleet.placements import PLACEMENT_CLEANUP, SCHEDULER_CLEANUP, Placement
from gardenbus.common.controller.controller import Done, ReconcileRequest, ReconcileResult, RequeueAfter
from gardenbus.common.controller.writes import create_all, delete, record_warning, update, version_precondition
from gardenbus.common.errors import Terminal, Unavailable
from gardenbus.common.ports.clock import Clock, timestamp
from gardenbus.common.ports.store import Store
from gardenbus.fleet.rejection import PlacementRejection, recorded_rejection, rejection_of, with_rejection
from gardenbus.placement import metrics
from gardenbus.placement.domain.placement_status import status_of
from gardenbus.placement.domain.policy_snapshots import active_one, plan_policy, retired
from gardenbus.placement.domain.resource_snapshots import EXTERNAL, ResourcePlan, plan_resources, selected
from gardenbus.placement.domain.unmatched_selectors import (
    NOT_FOUND,
    not_found_message,
    recorded_message,
    with_not_found,
)
from gardenbus.placement.store.owned_objects import owned_objects, placement_of
from gardenbus.placement.store.selected_resources import select
from gardenbus.placement.watch.placement_cache import PlacementCache

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

REPORTER = "placement"


class SnapshotReconciler:
    """Reconciles the snapshots of placements; safe to run concurrently, in any number of processes."""

    def __init__(
        self, store: Store, clock: Clock, cache: PlacementCache, *, collection: timedelta, interval: timedelta
    ) -> None:
        self._store = store
        self._clock = clock
        self._cache = cache
        self._collection = collection
        self._interval = interval

    async def reconcile(self, request: ReconcileRequest) -> ReconcileResult:
        """Reconcile a placement. Raises Conflict, Unavailable."""
        stored = await self._store.get(placement_of(request))
        if stored is None:
            return Done("it is gone")
        if stored.is_deleting:
            return await self._reconcile_deletion(stored)
        try:
            return await self._reconcile_snapshots(stored)
        except Terminal as error:
            await self._reject(stored, rejection_of(error))
            raise Unavailable(error.message) from error  # the cause may change, and no event would report it

    async def _reconcile_snapshots(self, stored: StoredObject) -> ReconcileResult:
        placement = Placement.from_document(stored.encoded())
        document = stored.document()
        held = with_finalizer(with_finalizer(document, PLACEMENT_CLEANUP), SCHEDULER_CLEANUP)
        if not {PLACEMENT_CLEANUP, SCHEDULER_CLEANUP} <= set(stored.parts.finalizers):
            stored = await update(self._store, stored, held)
            document = stored.document()
        owned = await owned_objects(self._store, stored, "policy_snapshot", "resource_snapshot")
        await self._sync_policy_snapshot(placement, stored, owned.policy_snapshots)
        is_external = placement.spec.strategy.type == EXTERNAL
        resources = [] if is_external else await select(self._store, placement)
        plan = await self._sync_resource_snapshots(placement, stored, owned.resource_snapshots, resources)
        not_found = "" if is_external else not_found_message(placement, resources)
        updated = _with_resources(document, plan)
        if recorded_rejection(document) is not None:
            updated = await self._with_renewed_status(placement, stored, updated)
        updated = with_not_found(updated, placement, not_found, timestamp(self._clock.now()))
        if updated != document:
            await update(self._store, stored, updated)
        if not_found and not_found != recorded_message(document, placement):
            await self._warn(stored, NOT_FOUND, not_found)
        if plan.wait_seconds is not None:
            return RequeueAfter(plan.wait_seconds, "changes are being collected")
        return Done()

    async def _sync_policy_snapshot(
        self, placement: Placement, stored: StoredObject, snapshots: Sequence[StoredObject]
    ) -> None:
        preconditions = [version_precondition(stored)]
        plan = plan_policy(placement, stored.document(), snapshots)
        for each in plan.retired:
            await update(self._store, each, retired(each.document()), preconditions)
        for each in plan.deleted:
            await delete(self._store, each)
        if plan.created is not None:
            await create_all(self._store, [plan.created], preconditions, strict=True)
            metrics.SNAPSHOTS.labels("policy").inc()
            log.info("policy_snapshot.created", placement=str(stored.key), snapshot=plan.created["metadata"]["name"])
        if plan.patched is not None:
            await update(self._store, *plan.patched, preconditions)

    async def _sync_resource_snapshots(
        self,
        placement: Placement,
        stored: StoredObject,
        snapshots: Sequence[StoredObject],
        resources: Sequence[Document],
    ) -> ResourcePlan:
        preconditions = [version_precondition(stored)]
        bindings = self._cache.bindings_of(stored.key)
        plan = plan_resources(
            placement,
            resources,
            snapshots,
            now=self._clock.now(),
            collection=self._collection,
            interval=self._interval,
            used={str(section(each.document(), "spec").get("resourceSnapshotName")) for each in bindings},
        )
        for each in plan.retired:
            await update(self._store, each, retired(each.document()), preconditions)
        for each in plan.deleted:
            await delete(self._store, each)
        if plan.created:
            await create_all(self._store, plan.created, preconditions, strict=True)
            metrics.SNAPSHOTS.labels("resources").inc()
            log.info("resource_snapshot.created", placement=str(stored.key), index=plan.index, parts=len(plan.created))
        if plan.patched is not None:
            await update(self._store, *plan.patched, preconditions)
        return plan

    async def _reconcile_deletion(self, stored: StoredObject) -> ReconcileResult:
        """Delete the snapshots once there are no bindings, and release the placement."""
        if SCHEDULER_CLEANUP in stored.parts.finalizers:
            return Done("its bindings are leaving")
        if PLACEMENT_CLEANUP not in stored.parts.finalizers:
            return Done("it is being deleted")
        owned = await owned_objects(self._store, stored, "policy_snapshot", "resource_snapshot")
        for each in (*owned.policy_snapshots, *owned.resource_snapshots):
            await delete(self._store, each)
        await update(self._store, stored, without_finalizer(stored.document(), PLACEMENT_CLEANUP))
        log.info("placement.released", placement=str(stored.key))
        return Done("all that belonged to it is gone")

    async def _with_renewed_status(self, placement: Placement, stored: StoredObject, updated: Document) -> Document:
        """Return a formerly rejected placement with a new status: no other change would renew it."""
        owned = await owned_objects(self._store, stored, "policy_snapshot", "binding")
        snapshot = active_one(owned.policy_snapshots)
        bindings, now = [each.document() for each in owned.bindings], timestamp(self._clock.now())
        return {
            **updated,
            "status": status_of(placement, updated, snapshot.document() if snapshot else None, bindings, now),
        }

    async def _reject(self, stored: StoredObject, rejection: PlacementRejection) -> None:
        """Record in the status, once, why the placement is rejected."""
        document = stored.document()
        updated = with_rejection(document, rejection, timestamp(self._clock.now()))
        if updated is document:
            return
        await update(self._store, stored, updated)
        log.warning("placement.rejected", placement=str(stored.key), reason=rejection.message)
        await self._warn(stored, rejection.reason, rejection.message)

    async def _warn(self, stored: StoredObject, reason: str, message: str) -> None:
        await record_warning(self._store, stored, reason=reason, message=message, reporter=REPORTER, action="Snapshot")


def _with_resources(document: Document, plan: ResourcePlan) -> Document:
    status = section(document, "status")
    updated = dict(status)
    if plan.index is not None:
        updated["observedResourceIndex"] = str(plan.index)
    if plan.resources is not None:
        updated["selectedResources"] = [selected(each) for each in plan.resources]
    return document if updated == status else {**document, "status": updated}
