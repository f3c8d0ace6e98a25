"""Carries evictions out: each is judged once, and deletes at most one binding.

1. The newest resource snapshot is counted up, as for a step of a rollout, and then the bindings are read: what an
   eviction takes is seen by rollouts and by other evictions, and the other way round.
2. The eviction notes the uid of the binding, then the binding is deleted, then the verdict is told.

Whoever dies in between leaves that note: the next look finds the binding gone or going, and only tells it.
"""

import structlog

from gardenbus.common.errors import Terminal
from gardenbus.common.machinery.controller import Done, Outcome, WorkRequest
from gardenbus.common.ports.clock import Clock, timestamp
from gardenbus.common.ports.store import Guard, Store
from gardenbus.common.resources.document import StoredObject, section
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.common.resources.placement_parts import DisruptionBudget, Eviction, ResourceBinding
from gardenbus.common.resources.placements import CLUSTER_KIND, Placement
from gardenbus.fleet.binding_states import check
from gardenbus.fleet.eviction import Verdict, is_settled, judge
from gardenbus.placement.decide.policies import annotated
from gardenbus.placement.decide.rolled import EVICTS, stepped, with_verdict
from gardenbus.placement.reconcilers import rolling_counters as counters
from gardenbus.placement.reconcilers.known import Known
from gardenbus.placement.reconcilers.resource_groups import rolled_of
from gardenbus.placement.reconcilers.writing import deleted, unchanged, written

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

KIND = "clusterresourceplacementeviction"
BUDGET_KIND = "clusterresourceplacementdisruptionbudget"


class EvictionReconciler:
    """Looks at one eviction at a time; any number of them, in any number of processes, may look at once."""

    def __init__(self, store: Store, clock: Clock, known: Known) -> None:
        self._store = store
        self._clock = clock
        self._known = known

    async def reconcile(self, request: WorkRequest) -> Outcome:
        """Look at an eviction. Raises Conflict, Unavailable, UnexpectedState."""
        stored = await self._store.get(ObjectKey(KIND, "", request.name))
        if stored is None or stored.is_deleting:
            return Done("it is gone")
        eviction = Eviction.from_document(stored.encoded())
        if is_settled(eviction):
            return Done("it was judged before")
        key = ObjectKey(CLUSTER_KIND, "", eviction.spec.placement_name)
        placement = await self._store.get(key) if key.name else None
        if placement is None:
            return await self._settle(stored, judge(eviction, None, (), None))
        try:
            return await self._evict(stored, eviction, placement)
        except Terminal as error:  # a budget or a placement that cannot be read stops this eviction only
            return await self._settle(stored, Verdict(is_valid=False, message=error.message))

    async def _evict(self, stored: StoredObject, eviction: Eviction, placement: StoredObject) -> Outcome:
        guards: list[Guard] = []
        master, _ = await rolled_of(self._store, placement)
        if master is not None:
            guards.append(unchanged(await written(self._store, master, stepped(master.document()))))
        _, bindings = await rolled_of(self._store, placement)
        noted = str(section(stored.document(), "metadata", "annotations").get(EVICTS) or "")
        if noted and all(each.is_deleting for each in bindings if each.uid == noted):
            message = "the placement was taken off the cluster"
            return await self._settle(stored, Verdict(is_valid=True, is_executed=True, message=message))
        budget_key = ObjectKey(BUDGET_KIND, "", placement.key.name)
        budget = await self._store.get(budget_key)
        verdict = judge(
            eviction,
            Placement.from_document(placement.encoded()),
            [ResourceBinding.from_document(each.encoded()) for each in bindings],
            DisruptionBudget.from_document(budget.encoded()) if budget else None,
        )
        if verdict.binding:
            binding = next(each for each in bindings if each.key.name == verdict.binding)
            stored = await written(self._store, stored, annotated(stored.document(), {EVICTS: binding.uid}))
            version = budget.version if budget else 0
            changed = Guard("version", budget_key.stored, f"{budget_key} changed meanwhile", version)
            await self._delete(binding, [*guards, changed, unchanged(stored)])
        return await self._settle(stored, verdict)

    async def _delete(self, base: StoredObject, guards: list[Guard]) -> None:
        document = base.document()
        document["metadata"]["deletionTimestamp"] = timestamp(self._clock.now())
        check(ResourceBinding.from_document(base.encoded()), ResourceBinding.from_document(document), "eviction")
        await deleted(self._store, base, guards)

    async def _settle(self, stored: StoredObject, verdict: Verdict) -> Outcome:
        told = with_verdict(stored.document(), verdict, timestamp(self._clock.now()))
        await written(self._store, stored, told)
        outcome = "executed" if verdict.is_executed else "not-executed" if verdict.is_valid else "invalid"
        counters.EVICTIONS.labels(outcome).inc()
        log.info("eviction.judged", eviction=str(stored.key), outcome=outcome, reason=verdict.message)
        return Done(verdict.message)
