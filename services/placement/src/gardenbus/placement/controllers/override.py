"""Keeps the snapshots of overrides. They go with their override, by its owner reference; rollouts follow them."""

import structlog

from gardenbus.common.api.fleet.overrides import SNAPSHOT_KINDS, override_kind
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.controller import Done, ReconcileRequest, ReconcileResult
from gardenbus.common.controller.writes import create_all, delete, update, version_precondition
from gardenbus.common.ports.store import Store
from gardenbus.placement import metrics
from gardenbus.placement.domain.override_snapshots import labelled_latest, plan_override
from gardenbus.placement.domain.policy_snapshots import retired
from gardenbus.placement.store.resource_snapshots import read_all

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class OverrideReconciler:
    """Reconciles the snapshots of overrides; safe to run concurrently, in any number of processes."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def reconcile(self, request: ReconcileRequest) -> ReconcileResult:
        """Reconcile an override. Raises Conflict, Unavailable."""
        stored = await self._store.get(ObjectKey(override_kind(request.namespace), request.namespace, request.name))
        if stored is None or stored.is_deleting:
            return Done("it is gone")
        keys = [key for key in await self._store.dependents(stored.uid) if key.kind in SNAPSHOT_KINDS]
        found = [each for each in await read_all(self._store, keys) if each is not None]
        plan = plan_override(stored, found)
        preconditions = [version_precondition(stored)]
        if plan.created is not None:
            await create_all(self._store, [plan.created], preconditions, strict=True)
            metrics.SNAPSHOTS.labels("override").inc()
            log.info("override_snapshot.created", override=str(stored.key), snapshot=plan.created["metadata"]["name"])
        if plan.relabelled is not None:
            await update(self._store, plan.relabelled, labelled_latest(plan.relabelled.document()), preconditions)
        for each in plan.retired:
            await update(self._store, each, retired(each.document()), preconditions)
        for each in plan.deleted:
            await delete(self._store, each)
        return Done()
