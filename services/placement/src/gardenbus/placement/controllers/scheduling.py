"""Schedules placements: reads, decides, claims the policy snapshot, and writes bindings.

1. Placement, its policy snapshots and bindings are read from the store; clusters come from the cache.
2. `fleet.cycle` decides.
3. The result goes into the snapshot's status. A cycle that writes bindings increments the cycle counter of the snapshot
   with the same write, on the snapshot and the placement as they were read: of several concurrent cycles, one succeeds.
   Each further write holds only while the snapshot keeps that version; the next cycle increments it again, which ends
   all writes still in flight. Bindings that the previous cycle has created by then are looked up after the claim: if
   there is one that was not part of the decision, the cycle is decided again.
4. Bindings of clusters that have left are unscheduled at once. Then others are created, then changed, then
   unscheduled, so that a cluster is not left before there is another.

After a crash in between, the next cycle starts from the bindings that there are, and writes the rest.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import structlog

from gardenbus.common.api.document import StoredObject, section
from gardenbus.common.api.document_parts import with_finalizer, without_finalizer
from gardenbus.common.api.fleet.member_clusters import MemberCluster
from gardenbus.common.api.fleet.placement_parts import BINDING_CLEANUP, PolicySnapshot, ResourceBinding, of
from gardenbus.common.api.fleet.placements import SCHEDULER_CLEANUP, Placement
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.controller import Done, ReconcileRequest, ReconcileResult, Requeue, RequeueAfter
from gardenbus.common.controller.writes import (
    create_all,
    delete,
    record_warning,
    run_all,
    update,
    update_ignoring_status,
    version_precondition,
)
from gardenbus.common.errors import InvalidResource, Terminal
from gardenbus.common.ports.clock import Clock, timestamp
from gardenbus.common.ports.store import Store, WritePrecondition
from gardenbus.fleet.cycle import decide
from gardenbus.fleet.cycle_result import CycleResult, UnexpectedState
from gardenbus.placement import metrics
from gardenbus.placement.domain.bindings import given_up, new_binding, rebound, released
from gardenbus.placement.domain.policy_snapshots import CLOSED, CYCLE, active_one, annotated, incremented
from gardenbus.placement.domain.scheduling_status import with_failure, with_outcome
from gardenbus.placement.store.owned_objects import PlacementParts, owned_objects, placement_of
from gardenbus.placement.watch.placement_cache import PlacementCache

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

REPORTER = "placement-scheduler"

BEHIND_SECONDS = 0.1
"""Pause until the cache has caught up with the store."""


AssumeBinding = Callable[[StoredObject], None]
"""Callback for each created binding, before it is announced."""


class SchedulingReconciler:
    """Reconciles the scheduling of placements; safe to run concurrently, in any number of processes."""

    def __init__(self, store: Store, clock: Clock, cache: PlacementCache, assume: AssumeBinding) -> None:
        self._store = store
        self._clock = clock
        self._cache = cache
        self._assume = assume

    async def reconcile(self, request: ReconcileRequest) -> ReconcileResult:
        """Reconcile a placement. Raises Conflict, Unavailable, UnexpectedState."""
        stored = await self._store.get(placement_of(request))
        if stored is None:
            return Done("it is gone")
        if stored.is_deleting:
            return await self._reconcile_deletion(stored)
        owned = await owned_objects(self._store, stored, "policy_snapshot", "binding")
        snapshot = active_one(owned.policy_snapshots)
        if snapshot is None:
            return Done("it has no policy snapshot yet")
        if SCHEDULER_CLEANUP not in stored.parts.finalizers:
            stored = await update(self._store, stored, with_finalizer(stored.document(), SCHEDULER_CLEANUP))
        with metrics.CYCLE_SECONDS.time():
            return await self._schedule(stored, snapshot, owned)

    async def _schedule(self, stored: StoredObject, snapshot: StoredObject, owned: PlacementParts) -> ReconcileResult:
        try:
            placement = Placement.from_document(stored.encoded())
            cycle = self._decide(placement, snapshot, owned)
            is_behind = bool(cycle.dangling) and await self._is_behind(cycle, owned)
        except (UnexpectedState, Terminal) as error:
            metrics.CYCLES.labels("failed").inc()
            await self._record_failure(stored, snapshot, error.message)
            raise UnexpectedState(error.message) from error
        if is_behind:
            await self._clock.sleep(BEHIND_SECONDS)
            return Requeue("a cluster has not been announced here yet")
        if cycle.finalized:
            await self._finalize_bindings(cycle, owned)
        updated = with_outcome(snapshot.document(), cycle, timestamp(self._clock.now()))
        if cycle.creations or cycle.changes or cycle.given_up:
            snapshot = await update(
                self._store, snapshot, incremented(updated, CYCLE), preconditions=[version_precondition(stored)]
            )
            if cycle.creations and await self._has_others(stored, owned):
                return Requeue("others created bindings meanwhile")
            await self._execute(placement, snapshot, cycle, owned)
        else:
            await update(self._store, snapshot, updated)
        metrics.CYCLES.labels("fulfilled" if cycle.fulfilled else "unfulfilled").inc()
        log.info(
            "placement.scheduled",
            placement=str(stored.key),
            snapshot=snapshot.key.name,
            created=len(cycle.creations),
            changed=len(cycle.changes),
            given_up=len(cycle.given_up),
            fulfilled=cycle.fulfilled,
            batches=cycle.batches,
        )
        return Done(cycle.message) if cycle.recheck_after is None else RequeueAfter(cycle.recheck_after, cycle.message)

    def _decide(self, placement: Placement, snapshot: StoredObject, owned: PlacementParts) -> CycleResult:
        bindings = [ResourceBinding.from_document(each.encoded()) for each in owned.bindings]
        return decide(
            placement,
            PolicySnapshot.from_document(snapshot.encoded()),
            self._cache.fleet(),
            bindings,
            self._clock.now().timestamp(),
        )

    async def _is_behind(self, cycle: CycleResult, owned: PlacementParts) -> bool:
        """Report whether a dangling binding's cluster is in the store, and only missing in the cache.

        Raises UnexpectedState for one that the cache will never hold, as it cannot be parsed.
        """
        dangling, fleet = set(cycle.dangling), self._cache.fleet()
        targets = {_target(each) for each in owned.bindings if each.key.name in dangling}
        unknown = [ObjectKey("membercluster", "", target) for target in sorted(targets) if target not in fleet]
        found = [each for each in await self._store.get_many(unknown) if each is not None] if unknown else []
        for each in found:
            try:
                MemberCluster.from_document(each.encoded())
            except InvalidResource as error:
                raise UnexpectedState(f"the MemberCluster {each.key.name} cannot be read: {error.message}") from error
        return bool(found)

    async def _has_others(self, stored: StoredObject, owned: PlacementParts) -> bool:
        """Report whether there are bindings outside of the decision. After the claim no other cycle creates any."""
        decided = {each.key for each in owned.bindings}
        kind = of(stored.key.kind).binding.lower()
        return any(key.kind == kind and key not in decided for key in await self._store.dependents(stored.uid))

    async def _finalize_bindings(self, cycle: CycleResult, owned: PlacementParts) -> None:
        """Release deleting bindings; they do not affect the decision."""
        leaving = set(cycle.finalized)
        await run_all(
            update_ignoring_status(self._store, each, lambda binding: without_finalizer(binding, BINDING_CLEANUP))
            for each in owned.bindings
            if each.key.name in leaving
        )

    async def _execute(
        self, placement: Placement, snapshot: StoredObject, cycle: CycleResult, owned: PlacementParts
    ) -> None:
        preconditions = [version_precondition(snapshot)]
        by_name = {each.key.name: each for each in owned.bindings}
        on_cluster: dict[str, list[str]] = {}
        for each in owned.bindings:
            on_cluster.setdefault(_target(each), []).append(each.uid)
        documents = [
            new_binding(placement, snapshot.key.name, pick, on_cluster.get(pick.cluster, ()))
            for pick in cycle.creations
        ]
        await self._unschedule(cycle.dangling, by_name, preconditions)
        for each in await create_all(self._store, documents, preconditions):
            self._assume(each)
        await run_all(
            update_ignoring_status(
                self._store,
                by_name[change.binding],
                lambda binding, change=change: rebound(binding, change),
                preconditions,
            )
            for change in cycle.changes
        )
        await self._unschedule(cycle.unscheduled, by_name, preconditions)
        metrics.BINDINGS.labels("created").inc(len(cycle.creations))
        metrics.BINDINGS.labels("changed").inc(len(cycle.changes))
        metrics.BINDINGS.labels("given-up").inc(len(cycle.given_up))

    async def _unschedule(
        self, names: Iterable[str], by_name: Mapping[str, StoredObject], preconditions: Sequence[WritePrecondition]
    ) -> None:
        await run_all(update_ignoring_status(self._store, by_name[name], given_up, preconditions) for name in names)

    async def _record_failure(self, stored: StoredObject, snapshot: StoredObject, message: str) -> None:
        present = snapshot.document()
        updated = with_failure(present, message, timestamp(self._clock.now()))
        if updated is present:
            return
        await update(self._store, snapshot, updated)
        await record_warning(
            self._store, stored, reason="SchedulingFailed", message=message, reporter=REPORTER, action="Schedule"
        )

    async def _reconcile_deletion(self, stored: StoredObject) -> ReconcileResult:
        """Delete the bindings of a deleting placement, and release it once they are gone."""
        if SCHEDULER_CLEANUP not in stored.parts.finalizers:
            return Done("it is being deleted")
        owned = await owned_objects(self._store, stored, "policy_snapshot")
        for each in owned.policy_snapshots:
            snapshot = each.document()
            if CLOSED not in section(snapshot, "metadata", "annotations"):
                await update(self._store, each, annotated(snapshot, {CLOSED: "true"}))
        bindings = (await owned_objects(self._store, stored, "binding")).bindings
        if not bindings:
            await update(self._store, stored, without_finalizer(stored.document(), SCHEDULER_CLEANUP))
            return Done("its bindings are gone")
        strategy = Placement.from_document(stored.encoded()).spec.strategy.delete_strategy
        abandons = strategy.propagation_policy == "Abandon"
        await run_all(self._remove(each, abandons=abandons) for each in bindings)
        return Done("its bindings are leaving")

    async def _remove(self, binding: StoredObject, *, abandons: bool) -> None:
        """Delete a binding. One that is being deleted already has its Works removed, as its cluster was given up."""
        abandons = abandons and not binding.is_deleting
        await update_ignoring_status(self._store, binding, lambda each: released(each, abandons=abandons))
        fresh = await self._store.get(binding.key)
        if fresh is not None:
            await delete(self._store, fresh)


def _target(binding: StoredObject) -> str:
    return str(section(binding.document(), "spec").get("targetCluster") or "")
