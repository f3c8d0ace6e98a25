"""One scheduling cycle: a placement's policy, the fleet and the bindings in, what to write out.

KubeFleet writes after each batch and looks again; here the batches of a cycle follow each other in memory, and what
they come to is written once. Source: KubeFleet's `pkg/scheduler/framework/framework.go`.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, islice

from gardenbus.common.resources.placement_parts import (
    BINDING_CLEANUP,
    NUMBER_OF_CLUSTERS,
    ClusterDecision,
    PolicySnapshot,
    ResourceBinding,
)
from gardenbus.common.resources.placements import Placement
from gardenbus.fleet.classifying import Record, changes, classify, creations, given_up
from gardenbus.fleet.decisions import STATUS, Limits, chosen, condition, refused, told, wanted_number
from gardenbus.fleet.downscaling import downscale, surplus
from gardenbus.fleet.fleet import Fleet
from gardenbus.fleet.framework import CycleState, Filtered, Score
from gardenbus.fleet.masks import ascending
from gardenbus.fleet.outcome import FULFILLED, Cycle
from gardenbus.fleet.picking import Scored, needs_another_batch, number_to_pick, ranked
from gardenbus.fleet.profile import FRAMEWORK
from gardenbus.fleet.replacing import Replaced, replaced, split
from gardenbus.fleet.requirements import requirements_of


def decide(
    placement: Placement,
    snapshot: PolicySnapshot,
    fleet: Fleet,
    bindings: Sequence[ResourceBinding],
    now: float,
    limits: Limits = STATUS,
) -> Cycle:
    """Decide on which clusters a placement is, by its policy snapshot.

    `bindings` are all of the placement's, deleting ones too; `now` is unix seconds; `limits` say how much is told.
    Raises UnexpectedState when a policy cannot be evaluated or what is stored contradicts itself.
    """
    deciding = _Deciding(placement, snapshot, fleet.at(now), bindings, now=now, limits=limits)
    match deciding.policy.placement_type:
        case "PickFixed":
            return deciding.pick_fixed()
        case "PickN":
            return deciding.pick_n(wanted_number(snapshot, NUMBER_OF_CLUSTERS))
        case _:
            return deciding.pick_all()


class _Deciding:
    """A cycle under way: the records of the placement's bindings change as batch follows batch."""

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
            record.give_up()
        self.records = [*classes.obsolete, *classes.unscheduled, *classes.scheduled, *classes.bound]
        self.obsolete = _by_cluster(classes.obsolete)
        self.unscheduled = _by_cluster(classes.unscheduled)
        self.scheduled, lost = split(classes.scheduled, self.policy, fleet)
        self.bound, lost_too = split(classes.bound, self.policy, fleet)
        self.leaving = lost + lost_too
        self.selected = fleet.mask(record.cluster for record in chain(self.scheduled, self.bound))
        self.created: list[Record] = []
        self.patched: list[Record] = []
        self.batches = 0
        self.kept: dict[str, object] = {}

    @property
    def present(self) -> list[Record]:
        """The bindings of this policy, in the order in which they are told; without those that are leaving."""
        return [*self.created, *self.patched, *self.scheduled, *self.bound]

    def pick_all(self) -> Cycle:
        """Everyone that the filters leave."""
        for record in self.leaving:
            record.give_up()
        filtered = FRAMEWORK.filter(self._state(0))
        picked = [Scored(place, Score()) for place in ascending(filtered.passed)]
        self._cross_reference(picked, self._by_score(picked))
        self.batches = 1
        found = len(self.present)
        return self._cycle(condition(found, found), self._told((), filtered))

    def pick_n(self, wanted: int) -> Cycle:
        """The best, as many as are wanted; or the worst of those present go."""
        while True:
            present = len(self.created) + len(self.patched) + len(self.scheduled) + len(self.bound)
            if wanted <= present:
                self._downscale(surplus(wanted, present, len(self.obsolete)))
                return self._settled(wanted, (), None)
            state = self._state(wanted - present)
            limit = FRAMEWORK.batch_limit(state)
            filtered = FRAMEWORK.filter(state)
            groups = FRAMEWORK.score(state, filtered.passed)
            order = ranked(groups)
            picked = list(islice(order, number_to_pick(state.desired, limit, filtered.passed.bit_count())))
            made = self._cross_reference(picked, self._by_score(picked))
            self.batches += 1
            if not needs_another_batch(state.desired, limit, made):
                return self._settled(wanted, order, filtered)

    def pick_fixed(self) -> Cycle:
        """Those that the policy names, as far as they are eligible. Nothing else about them counts."""
        names = self.policy.names
        if not names:
            return self._cycle((True, FULFILLED, ""), (), decides=False)
        missing = [name for name in names if name not in self.fleet]
        ineligible = {
            name: reason for name in names if name in self.fleet and (reason := self.fleet.ineligibility(name))
        }
        valid = [name for name in names if name in self.fleet and name not in ineligible]
        here = {record.cluster for record in self.present}
        self._cross_reference(
            [Scored(self.fleet.places[name], Score()) for name in valid if name not in here],
            lambda name: chosen(name, None),
        )
        self.batches = 1
        decisions = (
            *(chosen(name, None) for name in valid),
            *(refused(name, f"it is not eligible: {reason}") for name, reason in ineligible.items()),
            *(refused(name, "there is no such cluster") for name in missing),
        )
        return self._cycle(condition(len(names), len(valid)), decisions)

    def _state(self, desired: int) -> CycleState:
        state = CycleState(
            self.policy,
            self.fleet,
            namespace=self.placement.metadata.namespace if self.placement.is_namespaced else "",
            selected=self.selected,
            obsolete=self.fleet.mask(self.obsolete),
            desired=desired,
        )
        state.kept = self.kept
        return state

    def _by_score(self, picked: Iterable[Scored]) -> Callable[[str], ClusterDecision]:
        scores = {self.fleet.name(scored.place): scored.score for scored in picked}
        return lambda name: chosen(name, scores[name])

    def _cross_reference(self, picked: Iterable[Scored], decision: Callable[[str], ClusterDecision]) -> int:
        """Take over the bindings of those picked, create those that are missing, and give up the obsolete ones.

        Of several bindings of one cluster one is taken over. Returns how many were taken over or created.
        """
        made = 0
        for place, _ in picked:
            name = self.fleet.name(place)
            if found := self.obsolete.get(name) or self.unscheduled.get(name):
                record = found.pop()
                record.take_over(self.snapshot, decision(name))
                self.patched.append(record)
            else:
                self.created.append(Record.new(name, self.snapshot, decision(name)))
            self.selected |= 1 << place
            made += 1
        self._give_up_obsolete()
        return made

    def _give_up_obsolete(self) -> None:
        for record in chain.from_iterable(self.obsolete.values()):
            record.give_up()
            self.unscheduled.setdefault(record.cluster, []).append(record)
        self.obsolete = {}

    def _downscale(self, count: int | None) -> None:
        if count is None:
            return
        self._give_up_obsolete()
        removed, self.scheduled, self.bound = downscale(self.scheduled, self.bound, count)
        for record in removed:
            record.give_up()

    def _settled(self, wanted: int, not_picked: Iterable[Scored], filtered: Filtered | None) -> Cycle:
        """What PickN comes to: whoever stopped to match goes as soon as others serve."""
        present = self.present
        leaving = Replaced([], [])
        if self.leaving:
            leaving = replaced(self.leaving, present, wanted=wanted, placement=self.placement, now=self.now)
        for record in leaving.removed:
            record.give_up()
        return self._cycle(
            condition(wanted, len(present)), self._told(not_picked, filtered, leaving.kept), leaving=leaving
        )

    def _told(
        self, not_picked: Iterable[Scored], filtered: Filtered | None, kept: Iterable[Record] = ()
    ) -> tuple[ClusterDecision, ...]:
        return told(self.fleet, chain(self.present, kept), not_picked, filtered, self.limits)

    def _cycle(
        self,
        told_condition: tuple[bool, str, str],
        decisions: tuple[ClusterDecision, ...],
        *,
        decides: bool = True,
        leaving: Replaced | None = None,
    ) -> Cycle:
        fulfilled, reason, message = told_condition
        return Cycle(
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
            decides=decides,
            replacing=tuple(record.binding.name for record in leaving.kept if record.binding) if leaving else (),
            recheck_after=leaving.recheck_after if leaving else None,
        )


def _by_cluster(records: Iterable[Record]) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(record.cluster, []).append(record)
    return found
