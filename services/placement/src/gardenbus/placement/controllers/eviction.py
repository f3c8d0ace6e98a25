"""Executes evictions: each is assessed once, and deletes at most one binding.

1. The step counter of the newest resource snapshot is incremented, as for a rollout step, and then the bindings are
   read: evictions and rollouts so see each other's deletions.
2. The eviction records the uid of the binding, then the binding is deleted, then the result is recorded.

After a crash in between, the next reconcile finds the recorded uid with its binding deleted, and only records that.
"""

import structlog

from gardenbus.common.api.document import StoredObject, section
from gardenbus.common.api.fleet.placement_parts import DisruptionBudget, Eviction, ResourceBinding
from gardenbus.common.api.fleet.placements import CLUSTER_KIND, Placement
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.controller import Done, ReconcileRequest, ReconcileResult
from gardenbus.common.controller.writes import update, version_precondition
from gardenbus.common.errors import Terminal
from gardenbus.common.ports.clock import Clock, timestamp
from gardenbus.common.ports.store import Store, WritePrecondition
from gardenbus.placement import metrics
from gardenbus.placement.domain.eviction import EvictionResult, assess_eviction, is_terminal
from gardenbus.placement.domain.policy_snapshots import annotated, incremented
from gardenbus.placement.domain.rollout_documents import EVICTS, STEP, with_eviction_result
from gardenbus.placement.store.binding_deletion import delete_binding
from gardenbus.placement.store.resource_snapshots import rollout_objects

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

KIND = "clusterresourceplacementeviction"
BUDGET_KIND = "clusterresourceplacementdisruptionbudget"


class EvictionReconciler:
    """Reconciles evictions; safe to run concurrently, in any number of processes."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def reconcile(self, request: ReconcileRequest) -> ReconcileResult:
        """Reconcile an eviction. Raises Conflict, Unavailable, UnexpectedState."""
        stored = await self._store.get(ObjectKey(KIND, "", request.name))
        if stored is None or stored.is_deleting:
            return Done("it is gone")
        eviction = Eviction.from_document(stored.encoded())
        if is_terminal(eviction):
            return Done("it has its final result")
        key = ObjectKey(CLUSTER_KIND, "", eviction.spec.placement_name)
        placement = await self._store.get(key) if key.name else None
        if placement is None:
            return await self._record_result(stored, assess_eviction(eviction, None, (), None))
        try:
            return await self._evict(stored, eviction, placement)
        except Terminal as error:  # an invalid budget or placement stops this eviction only
            return await self._record_result(stored, EvictionResult(is_valid=False, message=error.message))

    async def _evict(self, stored: StoredObject, eviction: Eviction, placement: StoredObject) -> ReconcileResult:
        preconditions: list[WritePrecondition] = []
        master, _ = await rollout_objects(self._store, placement)
        if master is not None:
            preconditions.append(
                version_precondition(await update(self._store, master, incremented(master.document(), STEP)))
            )
        _, bindings = await rollout_objects(self._store, placement)
        recorded_uid = str(section(stored.document(), "metadata", "annotations").get(EVICTS) or "")
        if recorded_uid and all(each.is_deleting for each in bindings if each.uid == recorded_uid):
            message = "the placement was taken off the cluster"
            return await self._record_result(stored, EvictionResult(is_valid=True, is_executed=True, message=message))
        budget_key = ObjectKey(BUDGET_KIND, "", placement.key.name)
        budget = await self._store.get(budget_key)
        result = assess_eviction(
            eviction,
            Placement.from_document(placement.encoded()),
            [ResourceBinding.from_document(each.encoded()) for each in bindings],
            DisruptionBudget.from_document(budget.encoded()) if budget else None,
        )
        if result.binding:
            binding = next(each for each in bindings if each.key.name == result.binding)
            stored = await update(self._store, stored, annotated(stored.document(), {EVICTS: binding.uid}))
            version = budget.version if budget else 0
            changed = WritePrecondition("version", budget_key.stored, f"{budget_key} changed meanwhile", version)
            preconditions += [changed, version_precondition(stored)]
            now = timestamp(self._clock.now())
            await delete_binding(self._store, binding, preconditions, by="eviction", now=now)
        return await self._record_result(stored, result)

    async def _record_result(self, stored: StoredObject, result: EvictionResult) -> ReconcileResult:
        updated = with_eviction_result(stored.document(), result, timestamp(self._clock.now()))
        await update(self._store, stored, updated)
        outcome = "executed" if result.is_executed else "not-executed" if result.is_valid else "invalid"
        metrics.EVICTIONS.labels(outcome).inc()
        log.info("eviction.assessed", eviction=str(stored.key), outcome=outcome, reason=result.message)
        return Done(result.message)
