"""Looks at placements as their owner wrote them: keeps the snapshots of their policies and of what they select.

Each write holds only while the placement has the version that was read, so that of several looks at different versions
the newest one stands. A placement that leaves is let go by this look last, when its bindings are gone.
"""

from collections.abc import Sequence
from datetime import timedelta

import structlog

from gardenbus.common.errors import Terminal, Unavailable
from gardenbus.common.machinery.controller import After, Done, Outcome, WorkRequest
from gardenbus.common.ports.clock import Clock, timestamp
from gardenbus.common.ports.store import EventRecord, Guard, Store
from gardenbus.common.resources.document import Document, StoredObject, section
from gardenbus.common.resources.placements import PLACEMENT_CLEANUP, SCHEDULER_CLEANUP, Placement
from gardenbus.fleet.refusal import Refusal, refusal_of, told_refusal, with_refusal
from gardenbus.placement.decide.bindings import with_finalizer, without_finalizer
from gardenbus.placement.decide.policies import active_one, plan_policy, retired
from gardenbus.placement.decide.resources import EXTERNAL, ResourcePlan, plan_resources, selected
from gardenbus.placement.decide.statuses import status_of
from gardenbus.placement.reconcilers import counters
from gardenbus.placement.reconcilers.family import family_of, placement_of
from gardenbus.placement.reconcilers.known import Known
from gardenbus.placement.reconcilers.selecting import select
from gardenbus.placement.reconcilers.writing import created_all, deleted, unchanged, written

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

REPORTER = "placement"


class SnapshotReconciler:
    """Looks at one placement at a time; any number of them, in any number of processes, may look at once."""

    def __init__(self, store: Store, clock: Clock, known: Known, *, collection: timedelta, interval: timedelta) -> None:
        self._store = store
        self._clock = clock
        self._known = known
        self._collection = collection
        self._interval = interval

    async def reconcile(self, request: WorkRequest) -> Outcome:
        """Look at a placement. Raises Conflict, Unavailable."""
        stored = await self._store.get(placement_of(request))
        if stored is None:
            return Done("it is gone")
        if stored.is_deleting:
            return await self._leave(stored)
        try:
            return await self._look(stored)
        except Terminal as error:
            await self._refuse(stored, refusal_of(error))
            raise Unavailable(error.message) from error  # what refuses may change, and nobody would tell

    async def _look(self, stored: StoredObject) -> Outcome:
        placement = Placement.from_document(stored.encoded())
        document = stored.document()
        held = with_finalizer(with_finalizer(document, PLACEMENT_CLEANUP), SCHEDULER_CLEANUP)
        if not {PLACEMENT_CLEANUP, SCHEDULER_CLEANUP} <= set(stored.parts.finalizers):
            stored = await written(self._store, stored, held)
            document = stored.document()
        family = await family_of(self._store, stored, "policy_snapshot", "resource_snapshot")
        await self._keep_policy(placement, stored, family.policy_snapshots)
        plan = await self._keep_resources(placement, stored, family.resource_snapshots)
        told = _with_resources(document, plan)
        if told_refusal(document) is not None:
            told = await self._accepted(placement, stored, told)
        if told != document:
            await written(self._store, stored, told)
        if plan.wait_seconds is not None:
            return After(plan.wait_seconds, "changes are being collected")
        return Done()

    async def _keep_policy(self, placement: Placement, stored: StoredObject, snapshots: Sequence[StoredObject]) -> None:
        guards = [unchanged(stored)]
        plan = plan_policy(placement, stored.document(), snapshots)
        for each in plan.retired:
            await written(self._store, each, retired(each.document()), guards)
        for each in plan.deleted:
            await deleted(self._store, each)
        if plan.created is not None:
            await self._create([plan.created], guards)
            counters.SNAPSHOTS.labels("policy").inc()
            log.info("policy.taken", placement=str(stored.key), snapshot=plan.created["metadata"]["name"])
        if plan.patched is not None:
            await written(self._store, *plan.patched, guards)

    async def _keep_resources(
        self, placement: Placement, stored: StoredObject, snapshots: Sequence[StoredObject]
    ) -> ResourcePlan:
        guards = [unchanged(stored)]
        resources = [] if placement.spec.strategy.type == EXTERNAL else await select(self._store, placement)
        bindings = self._known.bindings_of(stored.key)
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
            await written(self._store, each, retired(each.document()), guards)
        for each in plan.deleted:
            await deleted(self._store, each)
        if plan.created:
            await self._create(plan.created, guards)
            counters.SNAPSHOTS.labels("resources").inc()
            log.info("resources.taken", placement=str(stored.key), index=plan.index, parts=len(plan.created))
        if plan.patched is not None:
            await written(self._store, *plan.patched, guards)
        return plan

    async def _create(self, documents: Sequence[Document], guards: Sequence[Guard]) -> None:
        await created_all(self._store, documents, guards, strict=True)

    async def _leave(self, stored: StoredObject) -> Outcome:
        """Take the snapshots away once there are no bindings, and let the placement go."""
        if SCHEDULER_CLEANUP in stored.parts.finalizers:
            return Done("its bindings are leaving")
        if PLACEMENT_CLEANUP not in stored.parts.finalizers:
            return Done("it is leaving")
        family = await family_of(self._store, stored, "policy_snapshot", "resource_snapshot")
        for each in (*family.policy_snapshots, *family.resource_snapshots):
            await deleted(self._store, each)
        await written(self._store, stored, without_finalizer(stored.document(), PLACEMENT_CLEANUP))
        log.info("placement.released", placement=str(stored.key))
        return Done("all that belonged to it is gone")

    async def _accepted(self, placement: Placement, stored: StoredObject, told: Document) -> Document:
        """A placement that was refused, and is no more: nothing else would renew what it tells."""
        family = await family_of(self._store, stored, "policy_snapshot", "binding")
        snapshot = active_one(family.policy_snapshots)
        bindings, now = [each.document() for each in family.bindings], timestamp(self._clock.now())
        return {**told, "status": status_of(placement, told, snapshot.document() if snapshot else None, bindings, now)}

    async def _refuse(self, stored: StoredObject, refusal: Refusal) -> None:
        """Say in its status, once, why nothing can be made of it."""
        document = stored.document()
        told = with_refusal(document, refusal, timestamp(self._clock.now()))
        if told is document:
            return
        await written(self._store, stored, told)
        log.warning("placement.refused", placement=str(stored.key), reason=refusal.message)
        await self._store.record_event(
            EventRecord(
                about=stored.key,
                uid=stored.uid,
                type="Warning",
                reason=refusal.reason,
                message=refusal.message,
                reporter=REPORTER,
                action="Snapshot",
            )
        )


def _with_resources(document: Document, plan: ResourcePlan) -> Document:
    status = section(document, "status")
    told = dict(status)
    if plan.index is not None:
        told["observedResourceIndex"] = str(plan.index)
    if plan.resources is not None:
        told["selectedResources"] = [selected(each) for each in plan.resources]
    return document if told == status else {**document, "status": told}
