"""Rolls placements out, step by step.

1. Placement, newest resources and bindings are read from the store; `fleet.rollout` decides.
2. A step that uses a budget increments the step counter of the newest resource snapshot, reads and decides again, and
   writes only while that snapshot keeps its version (see `domain.rollout_documents`): budgets hold under concurrency.
3. Conditions of waiting and started bindings are written first; then bindings are bound, updated, and deleted.

Each write alone keeps the budgets, so a crash in between leaves a state like any other.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import structlog

from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.fleet.overrides import AppliedOverrides, OverrideSnapshot
from gardenbus.common.api.fleet.placement_parts import UNSCHEDULED, ResourceBinding
from gardenbus.common.api.fleet.placements import Placement
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.controller import Done, ReconcileRequest, ReconcileResult, Requeue, RequeueAfter
from gardenbus.common.controller.writes import record_warning, run_all, update, version_precondition
from gardenbus.common.errors import Terminal
from gardenbus.common.ports.clock import Clock, timestamp
from gardenbus.common.ports.store import Store, WritePrecondition
from gardenbus.fleet.binding_states import check
from gardenbus.fleet.cycle_result import UnexpectedState
from gardenbus.fleet.rollout import RolloutStep, lacks_clusters, plan
from gardenbus.placement import metrics
from gardenbus.placement.domain.overrides import OverrideFailed, applicable, is_for, relevant, target_of
from gardenbus.placement.domain.policy_snapshots import incremented, is_active
from gardenbus.placement.domain.rollout_documents import STEP, rolled_out, with_rollout, with_strategy
from gardenbus.placement.store.binding_deletion import delete_binding
from gardenbus.placement.store.owned_objects import placement_of
from gardenbus.placement.store.resource_groups import ResourceGroups
from gardenbus.placement.store.resource_snapshots import read_all, rollout_objects
from gardenbus.placement.watch.placement_cache import PlacementCache

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

REPORTER = "placement-rollout"


class _RolloutState(NamedTuple):
    placement: Placement
    master: StoredObject | None
    bindings: Sequence[StoredObject]
    overrides: Mapping[str, AppliedOverrides]
    """Of each binding, by its name, as they are now."""
    rollout: RolloutStep


class RolloutReconciler:
    """Reconciles the rollout of placements; safe to run concurrently, in any number of processes."""

    def __init__(self, store: Store, clock: Clock, cache: PlacementCache) -> None:
        self._store = store
        self._clock = clock
        self._cache = cache
        self._groups = ResourceGroups(store)

    async def reconcile(self, request: ReconcileRequest) -> ReconcileResult:
        """Reconcile a placement. Raises Conflict, Unavailable, UnexpectedState."""
        stored = await self._store.get(placement_of(request))
        if stored is None:
            return Done("it is gone")
        if stored.is_deleting:
            return Done("it is being deleted")
        try:
            return await self._roll(stored)
        except OverrideFailed as error:
            await self._record_failure(stored, f"{error}")
            raise UnexpectedState(f"{error}") from error
        except (UnexpectedState, Terminal) as error:
            await self._record_failure(stored, error.message)
            raise UnexpectedState(error.message) from error

    async def _roll(self, stored: StoredObject) -> ReconcileResult:
        state = await self._read_state(stored)
        preconditions: list[WritePrecondition] = []
        if state.rollout.spends and state.master is not None:
            claim = await update(self._store, state.master, incremented(state.master.document(), STEP))
            fresh = await self._store.get(stored.key)
            if fresh is None or fresh.is_deleting or fresh.uid != stored.uid:
                return Requeue("it is being deleted")
            state = await self._read_state(fresh)
            if state.master is not None and state.master.key != claim.key:
                return Requeue("there are newer resources")
            preconditions = [version_precondition(claim)]
        if state.rollout.strategies:
            await self._update_strategies(state)
            return Requeue("the apply strategy was updated")
        await self._report_started(state)
        await self._execute(state, preconditions)
        self._log(stored, state.rollout)
        if state.rollout.recheck_after is not None:
            return RequeueAfter(state.rollout.recheck_after, state.rollout.reason)
        return Done(state.rollout.reason)

    async def _read_state(self, stored: StoredObject) -> _RolloutState:
        placement = Placement.from_document(stored.encoded())
        master, bindings = await rollout_objects(self._store, stored)
        if master is not None and not is_active(master):
            master = None  # its successor is in the making
        views = [ResourceBinding.from_document(each.encoded()) for each in bindings]
        overrides = await self._overrides(stored, master, views)
        rollout = plan(
            placement,
            master.key.name if master else "",
            views,
            self._clock.now().timestamp(),
            gone=await self._gone(views),
            stale=[each.name for each in views if each.spec.overrides != overrides[each.name]],
            lacks_clusters=lacks_clusters(stored.document()),
        )
        return _RolloutState(placement, master, bindings, overrides, rollout)

    async def _overrides(
        self, stored: StoredObject, master: StoredObject | None, bindings: Sequence[ResourceBinding]
    ) -> Mapping[str, AppliedOverrides]:
        """Return the override snapshots that each binding should name, by its name.

        They are those of the cache: a change that it has not seen yet enqueues the placement once more. A cluster that
        is not there keeps what its binding names.
        """
        snapshots = [each for each in self._cache.override_snapshots() if is_for(each, stored.key)]
        matching: Sequence[OverrideSnapshot] = ()
        if snapshots:
            group = await self._groups.get(stored.uid, master.key) if master is not None else None
            if group is None:
                return {each.name: each.spec.overrides for each in bindings}
            matching = relevant(snapshots, stored.key, group.ids)
        clusters = self._cache.clusters()
        return {
            each.name: applicable(matching, target_of(cluster))
            if (cluster := clusters.get(each.spec.target_cluster)) is not None
            else each.spec.overrides
            for each in bindings
        }

    async def _gone(self, bindings: Sequence[ResourceBinding]) -> frozenset[str]:
        """Return the clusters of Unscheduled bindings that are neither in the cache nor in the store."""
        targets = {each.spec.target_cluster for each in bindings if each.spec.state == UNSCHEDULED}
        unknown = sorted(targets - self._cache.clusters().keys())
        found = await read_all(self._store, [ObjectKey("membercluster", "", name) for name in unknown])
        return frozenset(name for name, cluster in zip(unknown, found, strict=True) if cluster is None)

    async def _update_strategies(self, state: _RolloutState) -> None:
        strategy = state.placement.spec.strategy.apply_strategy
        names = set(state.rollout.strategies)
        await run_all(
            self._write(each, with_strategy(each.document(), strategy), ())
            for each in state.bindings
            if each.key.name in names
        )

    async def _report_started(self, state: _RolloutState) -> None:
        """Set the condition RolloutStarted of waiting and of started bindings."""
        now, rollout = timestamp(self._clock.now()), state.rollout
        started = dict.fromkeys(rollout.waiting, False) | dict.fromkeys(rollout.started, True)
        updated = [
            (each, with_rollout(each.document(), now, started=started[each.key.name]))
            for each in state.bindings
            if each.key.name in started
        ]
        await run_all(self._write(each, document, ()) for each, document in updated if document != each.document())

    async def _execute(self, state: _RolloutState, preconditions: Sequence[WritePrecondition]) -> None:
        if state.master is None or not preconditions:
            return
        now, latest = timestamp(self._clock.now()), state.master.key.name
        by_name = {each.key.name: each for each in state.bindings}
        rollout = state.rollout
        bindings = [by_name[name] for name in (*rollout.update, *rollout.bind)]
        await run_all(
            self._write(each, rolled_out(each.document(), latest, state.overrides[each.key.name], now), preconditions)
            for each in bindings
        )
        metrics.ROLLED.labels("updated").inc(len(rollout.update))
        metrics.ROLLED.labels("bound").inc(len(rollout.bind))
        await run_all(
            delete_binding(self._store, by_name[name], preconditions, by="rollout", now=now) for name in rollout.delete
        )
        metrics.ROLLED.labels("deleted").inc(len(rollout.delete))

    async def _write(self, base: StoredObject, document: Document, preconditions: Sequence[WritePrecondition]) -> None:
        old, new = ResourceBinding.from_document(base.encoded()), ResourceBinding.from_document(document)
        check(old, new, "rollout")
        await update(self._store, base, document, preconditions)

    def _log(self, stored: StoredObject, rollout: RolloutStep) -> None:
        if rollout.spends:
            log.info(
                "placement.rolled",
                placement=str(stored.key),
                bound=len(rollout.bind),
                updated=len(rollout.update),
                deleted=len(rollout.delete),
                waiting=len(rollout.waiting),
            )

    async def _record_failure(self, stored: StoredObject, message: str) -> None:
        await record_warning(
            self._store, stored, reason="RolloutFailed", message=message, reporter=REPORTER, action="Rollout"
        )
