"""One scheduling cycle: decides from a placement's policy, the fleet and the bindings which bindings to write.

KubeFleet writes after each batch; here the batches of a cycle follow each other in memory, and their result is written
once. Source: KubeFleet's `pkg/scheduler/framework/framework.go`.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, islice

from gardenbus.common.api.bitsets import members_of
from gardenbus.common.api.fleet.placement_parts import (
    BINDING_CLEANUP,
    NUMBER_OF_CLUSTERS,
    ClusterDecision,
    PolicySnapshot,
    ResourceBinding,
)
from gardenbus.common.api.fleet.placements import Placement
from gardenbus.fleet.binding_classes import BindingRecord, changes, classify, creations, given_up
from gardenbus.fleet.cycle_result import FULFILLED, CycleResult
from gardenbus.fleet.decisions import STATUS, Limits, annotated_number, chosen, condition, recorded_decisions, rejected
from gardenbus.fleet.downscaling import downscale, surplus
from gardenbus.fleet.fleet import Fleet
from gardenbus.fleet.framework import CycleState, FilteredClusters, Score
from gardenbus.fleet.picking import ScoredCluster, needs_another_batch, ranked
from gardenbus.fleet.profile import FRAMEWORK
from gardenbus.fleet.replacement import ReplacementPlan, plan_replacement, split_by_match
from gardenbus.fleet.requirements import requirements_of


def decide(
    placement: Placement,
    snapshot: PolicySnapshot,
    fleet: Fleet,
    bindings: Sequence[ResourceBinding],
    now: float,
    limits: Limits = STATUS,
) -> CycleResult:
    """Decide the clusters of a placement by its policy snapshot.

    `bindings` are all of the placement's, deleting ones too; `now` is unix seconds; `limits` bound what is recorded.
    Raises UnexpectedState when a policy cannot be evaluated or the stored state contradicts itself.
    """
    cycle = _SchedulingCycle(placement, snapshot, fleet.at(now), bindings, now=now, limits=limits)
    match cycle.policy.placement_type:
        case "PickFixed":
            return cycle.pick_fixed()
        case "PickN":
            return cycle.pick_n(annotated_number(snapshot, NUMBER_OF_CLUSTERS))
        case _:
            return cycle.pick_all()


class _SchedulingCycle:
    """A cycle in progress: the records of the placement's bindings change with each batch."""

    def __init__(
        self,
        placement: Placement,
        snapshot: PolicySnapshot,
        fleet: Fleet,
        bindings: Sequence[ResourceBinding],
        *,
        now: float,
        limits: Limits,
    ) -> None:
        self.placement = placement
        self.policy = requirements_of(snapshot.spec.policy)
        self.fleet = fleet
        self.now = now
        self.limits = limits
        self.snapshot = snapshot.metadata.name
        classes = classify(bindings, self.snapshot, fleet)
        self.finalized = tuple(
            record.binding.name
            for record in classes.deleting
            if record.binding and BINDING_CLEANUP in record.binding.metadata.finalizers
        )
        self.dangling = classes.dangling
        for record in self.dangling:
            record.mark_unscheduled()
        self.records = [*classes.obsolete, *classes.unscheduled, *classes.scheduled, *classes.bound]
        self.obsolete = _by_cluster(classes.obsolete)
        self.unscheduled = _by_cluster(classes.unscheduled)
        self.scheduled, lost = split_by_match(classes.scheduled, self.policy, fleet)
        self.bound, lost_too = split_by_match(classes.bound, self.policy, fleet)
        self.leaving = lost + lost_too
        self.selected = fleet.mask(record.cluster for record in chain(self.scheduled, self.bound))
        self.created: list[BindingRecord] = []
        self.patched: list[BindingRecord] = []
        self.batches = 0
        self.kept: dict[str, object] = {}

    @property
    def present(self) -> list[BindingRecord]:
        """The bindings of this policy, in the order of their decisions; without those that are leaving."""
        return [*self.created, *self.patched, *self.scheduled, *self.bound]

    def pick_all(self) -> CycleResult:
        """Pick all clusters that pass the filters."""
        for record in self.leaving:
            record.mark_unscheduled()
        filtered = FRAMEWORK.filter(self._state(0))
        picked = [ScoredCluster(place, Score()) for place in members_of(filtered.passed)]
        self._cross_reference(picked, self._by_score(picked))
        self.batches = 1
        found = len(self.present)
        return self._result(condition(found, found), self._recorded_decisions((), filtered))

    def pick_n(self, wanted: int) -> CycleResult:
        """Pick the best until enough are present, or unschedule the worst of too many."""
        while True:
            present = len(self.created) + len(self.patched) + len(self.scheduled) + len(self.bound)
            if wanted <= present:
                self._downscale(surplus(wanted, present, len(self.obsolete)))
                return self._pick_n_result(wanted, (), None)
            state = self._state(wanted - present)
            limit = FRAMEWORK.batch_limit(state)
            filtered = FRAMEWORK.filter(state)
            groups = FRAMEWORK.score(state, filtered.passed)
            order = ranked(groups)
            picked = list(islice(order, min(state.desired, limit, filtered.passed.bit_count())))
            made = self._cross_reference(picked, self._by_score(picked))
            self.batches += 1
            if not needs_another_batch(state.desired, limit, made):
                return self._pick_n_result(wanted, order, filtered)

    def pick_fixed(self) -> CycleResult:
        """Pick the named clusters that are eligible; no other filter applies."""
        names = self.policy.names
        if not names:
            return self._result((True, FULFILLED, ""), (), updates_status=False)
        missing = [name for name in names if name not in self.fleet]
        ineligible = {
            name: reason for name in names if name in self.fleet and (reason := self.fleet.ineligibility(name))
        }
        valid = [name for name in names if name in self.fleet and name not in ineligible]
        here = {record.cluster for record in self.present}
        self._cross_reference(
            [ScoredCluster(self.fleet.places[name], Score()) for name in valid if name not in here],
            lambda name: chosen(name, None),
        )
        self.batches = 1
        decisions = (
            *(chosen(name, None) for name in valid),
            *(rejected(name, f"it is not eligible: {reason}") for name, reason in ineligible.items()),
            *(rejected(name, "there is no such cluster") for name in missing),
        )
        return self._result(condition(len(names), len(valid)), decisions)

    def _state(self, desired: int) -> CycleState:
        return CycleState(
            self.policy,
            self.fleet,
            namespace=self.placement.metadata.namespace if self.placement.is_namespaced else "",
            selected=self.selected,
            obsolete=self.fleet.mask(self.obsolete),
            desired=desired,
            kept=self.kept,
        )

    def _by_score(self, picked: Iterable[ScoredCluster]) -> Callable[[str], ClusterDecision]:
        scores = {self.fleet.name(scored.place): scored.score for scored in picked}
        return lambda name: chosen(name, scores[name])

    def _cross_reference(self, picked: Iterable[ScoredCluster], decision: Callable[[str], ClusterDecision]) -> int:
        """Adopt the bindings of picked clusters, create the missing ones, and unschedule the obsolete ones.

        Of several bindings of one cluster one is adopted. Returns the number of adopted and created ones.
        """
        made = 0
        for place, _ in picked:
            name = self.fleet.name(place)
            if found := self.obsolete.get(name) or self.unscheduled.get(name):
                record = found.pop()
                record.adopt(self.snapshot, decision(name))
                self.patched.append(record)
            else:
                self.created.append(BindingRecord.new(name, self.snapshot, decision(name)))
            self.selected |= 1 << place
            made += 1
        self._give_up_obsolete()
        return made

    def _give_up_obsolete(self) -> None:
        for record in chain.from_iterable(self.obsolete.values()):
            record.mark_unscheduled()
            self.unscheduled.setdefault(record.cluster, []).append(record)
        self.obsolete = {}

    def _downscale(self, count: int | None) -> None:
        if count is None:
            return
        self._give_up_obsolete()
        removed, self.scheduled, self.bound = downscale(self.scheduled, self.bound, count)
        for record in removed:
            record.mark_unscheduled()

    def _pick_n_result(
        self, wanted: int, not_picked: Iterable[ScoredCluster], filtered: FilteredClusters | None
    ) -> CycleResult:
        """Return the result of PickN; bindings that no longer match go once their replacements are ready."""
        present = self.present
        leaving = ReplacementPlan([], [])
        if self.leaving:
            leaving = plan_replacement(self.leaving, present, wanted=wanted, placement=self.placement, now=self.now)
        for record in leaving.removed:
            record.mark_unscheduled()
        return self._result(
            condition(wanted, len(present)),
            self._recorded_decisions(not_picked, filtered, leaving.kept),
            leaving=leaving,
        )

    def _recorded_decisions(
        self, not_picked: Iterable[ScoredCluster], filtered: FilteredClusters | None, kept: Iterable[BindingRecord] = ()
    ) -> tuple[ClusterDecision, ...]:
        return recorded_decisions(self.fleet, chain(self.present, kept), not_picked, filtered, self.limits)

    def _result(
        self,
        scheduled_condition: tuple[bool, str, str],
        decisions: tuple[ClusterDecision, ...],
        *,
        updates_status: bool = True,
        leaving: ReplacementPlan | None = None,
    ) -> CycleResult:
        fulfilled, reason, message = scheduled_condition
        return CycleResult(
            finalized=self.finalized,
            dangling=given_up(self.dangling),
            creations=creations(self.created),
            changes=changes(self.patched),
            unscheduled=given_up(self.records),
            decisions=decisions,
            fulfilled=fulfilled,
            reason=reason,
            message=message,
            batches=max(1, self.batches),
            updates_status=updates_status,
            replacing=tuple(record.binding.name for record in leaving.kept if record.binding) if leaving else (),
            recheck_after=leaving.recheck_after if leaving else None,
        )


def _by_cluster(records: Iterable[BindingRecord]) -> dict[str, list[BindingRecord]]:
    found: dict[str, list[BindingRecord]] = {}
    for record in records:
        found.setdefault(record.cluster, []).append(record)
    return found
