"""Schedules placements: reads, has a cycle decided, claims the policy snapshot, and writes.

1. Placement, its policy snapshots and bindings are read from the store; clusters are what was announced.
2. `fleet.cycle` decides.
3. The outcome goes into the snapshot's status. A cycle that writes bindings counts up a number in the snapshot with the
   same write, on the snapshot and the placement as they were read: of all who decided on the same, one gets through.
   Each further write holds only while the snapshot has the version of that one; whoever comes next counts it up again,
   and ends what is still under way. What the one before has created by then is looked for after the claim: where there
   is a binding that was not decided upon, the cycle is decided again.
4. Bindings of clusters that have left are given up at once. Then others are created, then changed, then given up, so
   that a cluster's place is not left before there is another.

Whoever dies in between leaves bindings that the next cycle takes as they are, to write what is left.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import structlog

from gardenbus.common.errors import InvalidResource, Terminal
from gardenbus.common.machinery.controller import After, Again, Done, Outcome, WorkRequest
from gardenbus.common.ports.clock import Clock, timestamp
from gardenbus.common.ports.store import EventRecord, Guard, Store
from gardenbus.common.resources.document import StoredObject, section
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.common.resources.member_clusters import MemberCluster
from gardenbus.common.resources.placement_parts import BINDING_CLEANUP, PolicySnapshot, ResourceBinding, of
from gardenbus.common.resources.placements import SCHEDULER_CLEANUP, Placement
from gardenbus.fleet.cycle import decide
from gardenbus.fleet.outcome import Cycle, UnexpectedState
from gardenbus.placement.decide.bindings import given_up, new_binding, rebound, with_finalizer, without_finalizer
from gardenbus.placement.decide.policies import CLOSED, active_one, annotated, claimed
from gardenbus.placement.decide.scheduled import with_failure, with_outcome
from gardenbus.placement.reconcilers import counters
from gardenbus.placement.reconcilers.family import Family, family_of, placement_of
from gardenbus.placement.reconcilers.known import Known
from gardenbus.placement.reconcilers.writing import all_of, created_all, deleted, rewritten, unchanged, written

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

REPORTER = "placement-scheduler"

BEHIND_SECONDS = 0.1
"""Pause until what the store has was announced here too."""


Foresee = Callable[[StoredObject], None]
"""Told of each binding that was created, before it is announced."""


def _nobody(_stored: StoredObject) -> None:
    pass


class SchedulingReconciler:
    """Looks at one placement at a time; any number of them, in any number of processes, may look at once."""

    def __init__(self, store: Store, clock: Clock, known: Known, foresee: Foresee = _nobody) -> None:
        self._store = store
        self._clock = clock
        self._known = known
        self._foresee = foresee

    async def reconcile(self, request: WorkRequest) -> Outcome:
        """Look at a placement. Raises Conflict, Unavailable, UnexpectedState."""
        stored = await self._store.get(placement_of(request))
        if stored is None:
            return Done("it is gone")
        if stored.is_deleting:
            return await self._leave(stored)
        family = await family_of(self._store, stored, "policy_snapshot", "binding")
        snapshot = active_one(family.policy_snapshots)
        if snapshot is None:
            return Done("it has no policy snapshot yet")
        if SCHEDULER_CLEANUP not in stored.parts.finalizers:
            stored = await written(self._store, stored, with_finalizer(stored.document(), SCHEDULER_CLEANUP))
        with counters.CYCLE_SECONDS.time():
            return await self._schedule(stored, snapshot, family)

    async def _schedule(self, stored: StoredObject, snapshot: StoredObject, family: Family) -> Outcome:
        try:
            placement = Placement.from_document(stored.encoded())
            cycle = self._decided(placement, snapshot, family)
            is_behind = bool(cycle.dangling) and await self._is_behind(cycle, family)
        except (UnexpectedState, Terminal) as error:
            counters.CYCLES.labels("failed").inc()
            await self._tell_failure(stored, snapshot, error.message)
            raise UnexpectedState(error.message) from error
        if is_behind:
            await self._clock.sleep(BEHIND_SECONDS)
            return Again("a cluster has not been announced here yet")
        if cycle.finalized:
            await self._finalize(cycle, family)
        told = with_outcome(snapshot.document(), cycle, timestamp(self._clock.now()))
        if cycle.creations or cycle.changes or cycle.given_up:
            snapshot = await written(self._store, snapshot, claimed(told), guards=[unchanged(stored)])
            if cycle.creations and await self._has_others(stored, family):
                return Again("others created bindings meanwhile")
            await self._carry_out(placement, snapshot, cycle, family)
        else:
            await written(self._store, snapshot, told)
        counters.CYCLES.labels("fulfilled" if cycle.fulfilled else "unfulfilled").inc()
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
        return Done(cycle.message) if cycle.recheck_after is None else After(cycle.recheck_after, cycle.message)

    def _decided(self, placement: Placement, snapshot: StoredObject, family: Family) -> Cycle:
        bindings = [ResourceBinding.from_document(each.encoded()) for each in family.bindings]
        return decide(
            placement,
            PolicySnapshot.from_document(snapshot.encoded()),
            self._known.fleet(),
            bindings,
            self._clock.now().timestamp(),
        )

    async def _is_behind(self, cycle: Cycle, family: Family) -> bool:
        """Whether a binding would be given up for a cluster that is there, and only not known here yet.

        Raises UnexpectedState for one that will never be known, as nobody can read it.
        """
        dangling, known = set(cycle.dangling), self._known.fleet()
        targets = {_target(each) for each in family.bindings if each.key.name in dangling}
        unknown = [ObjectKey("membercluster", "", target) for target in sorted(targets) if target not in known]
        found = [each for each in await self._store.get_many(unknown) if each is not None] if unknown else []
        for each in found:
            try:
                MemberCluster.from_document(each.encoded())
            except InvalidResource as error:
                raise UnexpectedState(f"the MemberCluster {each.key.name} cannot be read: {error.message}") from error
        return bool(found)

    async def _has_others(self, stored: StoredObject, family: Family) -> bool:
        """Whether there are bindings that were not decided upon. After the claim nobody else creates any."""
        known = {each.key for each in family.bindings}
        kind = of(stored.key.kind).binding.lower()
        return any(key.kind == kind and key not in known for key in await self._store.dependents(stored.uid))

    async def _finalize(self, cycle: Cycle, family: Family) -> None:
        """Let bindings go that are on their way out; they count for nothing whatever else is decided."""
        leaving = set(cycle.finalized)
        await all_of(
            rewritten(self._store, each, lambda binding: without_finalizer(binding, BINDING_CLEANUP))
            for each in family.bindings
            if each.key.name in leaving
        )

    async def _carry_out(self, placement: Placement, snapshot: StoredObject, cycle: Cycle, family: Family) -> None:
        guards = [unchanged(snapshot)]
        by_name = {each.key.name: each for each in family.bindings}
        on_cluster: dict[str, list[str]] = {}
        for each in family.bindings:
            on_cluster.setdefault(_target(each), []).append(each.uid)
        documents = [
            new_binding(placement, snapshot.key.name, pick, on_cluster.get(pick.cluster, ()))
            for pick in cycle.creations
        ]
        await self._give_up(cycle.dangling, by_name, guards)
        for each in await created_all(self._store, documents, guards):
            self._foresee(each)
        await all_of(
            rewritten(
                self._store,
                by_name[change.binding],
                lambda binding, change=change: rebound(binding, change),
                guards,
            )
            for change in cycle.changes
        )
        await self._give_up(cycle.unscheduled, by_name, guards)
        counters.BINDINGS.labels("created").inc(len(cycle.creations))
        counters.BINDINGS.labels("changed").inc(len(cycle.changes))
        counters.BINDINGS.labels("given-up").inc(len(cycle.given_up))

    async def _give_up(
        self, names: Iterable[str], by_name: Mapping[str, StoredObject], guards: Sequence[Guard]
    ) -> None:
        await all_of(rewritten(self._store, by_name[name], given_up, guards) for name in names)

    async def _tell_failure(self, stored: StoredObject, snapshot: StoredObject, message: str) -> None:
        present = snapshot.document()
        told = with_failure(present, message, timestamp(self._clock.now()))
        if told is present:
            return
        await written(self._store, snapshot, told)
        await self._store.record_event(
            EventRecord(
                about=stored.key,
                uid=stored.uid,
                type="Warning",
                reason="SchedulingFailed",
                message=message,
                reporter=REPORTER,
                action="Schedule",
            )
        )

    async def _leave(self, stored: StoredObject) -> Outcome:
        """Delete the bindings of a placement that leaves, and let it go once they are gone."""
        if SCHEDULER_CLEANUP not in stored.parts.finalizers:
            return Done("it is leaving")
        family = await family_of(self._store, stored, "policy_snapshot")
        for each in family.policy_snapshots:
            snapshot = each.document()
            if CLOSED not in section(snapshot, "metadata", "annotations"):
                await written(self._store, each, annotated(snapshot, {CLOSED: "true"}))
        bindings = (await family_of(self._store, stored, "binding")).bindings
        if not bindings:
            await written(self._store, stored, without_finalizer(stored.document(), SCHEDULER_CLEANUP))
            return Done("its bindings are gone")
        await all_of(self._remove(each) for each in bindings)
        return Done("its bindings are leaving")

    async def _remove(self, binding: StoredObject) -> None:
        await rewritten(self._store, binding, lambda each: without_finalizer(each, BINDING_CLEANUP))
        fresh = await self._store.get(binding.key)
        if fresh is not None:
            await deleted(self._store, fresh)


def _target(binding: StoredObject) -> str:
    return str(section(binding.document(), "spec").get("targetCluster") or "")
