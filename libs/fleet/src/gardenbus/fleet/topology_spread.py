"""The plug-in TopologySpreadConstraints: spreads the chosen clusters evenly over the values of a label.

Values are those of all clusters, also of infeasible ones. Source: KubeFleet's `plugins/topologyspreadconstraints`.
"""

from collections.abc import Iterable
from typing import NamedTuple, cast

from gardenbus.common.api.bitsets import Bitset, ascending
from gardenbus.common.api.fleet.placements import TopologySpreadConstraint
from gardenbus.fleet.cycle_result import UnexpectedState
from gardenbus.fleet.framework import SKIP, SUCCESS, Code, CycleState, FilterResult, Score, ScoreGroup, Status
from gardenbus.fleet.labels import LabelIndex

SOFT_PENALTY = 1000
"""Score lost by violating a soft constraint."""


class TopologySpreadPlugin:
    """Rejects clusters that would make the skew too great, and prefers those that reduce it."""

    name = "TopologySpreadConstraints"

    def post_batch(self, state: CycleState) -> tuple[int, Status]:
        """Limit a batch to one: each choice changes the skew for the next."""
        return (1, SUCCESS) if state.policy.hard or state.policy.soft else (0, SKIP)

    def pre_filter(self, state: CycleState) -> Status:
        """Skip the filter without hard constraints."""
        state.notes.pop(self.name, None)
        return SUCCESS if state.policy.hard else SKIP

    def filter(self, state: CycleState, candidates: Bitset) -> Iterable[FilterResult]:
        """Reject clusters that violate a hard constraint, in the order of the constraints."""
        groups = [ScoreGroup(candidates, Score())]
        for constraint in state.policy.hard:
            groups, violated = _apply_constraint(state, constraint, groups)
            if violated:
                yield FilterResult(violated, _skew_status(constraint))
        state.notes[self.name] = groups

    def pre_score(self, state: CycleState) -> Status:
        """Skip the score without constraints."""
        return SUCCESS if state.policy.hard or state.policy.soft else SKIP

    def score(self, state: CycleState, candidates: Bitset) -> list[ScoreGroup]:
        """Score by the change of the skew; a soft violation costs a thousand."""
        groups = cast("list[ScoreGroup]", state.notes.get(self.name) or [ScoreGroup(candidates, Score())])
        for constraint in state.policy.soft:
            groups, _ = _apply_constraint(state, constraint, groups)
        return [ScoreGroup(hit, score) for clusters, score in groups if (hit := clusters & candidates)]


class SkewChange(NamedTuple):
    """Effect of one more cluster in a domain."""

    violates: bool
    """True when the skew becomes too great."""

    change: int
    """Growth of the skew."""


def skew_change(count: int, smallest: int, second: int, largest: int, max_skew: int) -> SkewChange:
    """Return the effect of one more cluster in a domain with `count` of them, as KubeFleet counts.

    A step that reduces the skew still violates while the rest is too great. Raises UnexpectedState for a count outside.
    """
    if not smallest <= count <= largest:
        raise UnexpectedState(f"a domain with {count} clusters is outside of {smallest} to {largest}")
    skew = largest - smallest
    if largest == smallest:
        change = 1
    elif count == smallest and smallest != second:
        change = -1
    elif count == largest:
        change = 1
    else:
        change = 0
    return SkewChange(skew + change > max_skew, change)


class DomainCounts:
    """Chosen clusters per value of a label; values with equal counts are kept together."""

    def __init__(self, labels: LabelIndex, key: str) -> None:
        self._labels = labels
        self._key = key
        self._domains = labels.domains(key)
        self._counts = dict.fromkeys(self._domains, 0)
        self._selected: Bitset = 0
        self.by_count: dict[int, Bitset] = {0: labels.having(key)} if self._domains else {}
        """Clusters of all values with a count."""
        self._sizes = {0: len(self._domains)} if self._domains else {}

    def count_selected(self, selected: Bitset) -> None:
        """Count these clusters from now on."""
        for place in ascending(selected ^ self._selected):
            value = self._labels.value(self._key, place)
            if value is not None:
                self._move(value, 1 if selected >> place & 1 else -1)
        self._selected = selected

    def skew_changes(self, max_skew: int) -> dict[int, SkewChange]:
        """Return the effect of one more cluster, by the present count."""
        counts = sorted(self._sizes)
        smallest = counts[0]
        second = smallest if self._sizes[smallest] > 1 or len(counts) == 1 else counts[1]
        return {count: skew_change(count, smallest, second, counts[-1], max_skew) for count in counts}

    def _move(self, value: str, step: int) -> None:
        count, clusters = self._counts[value], self._domains[value]
        self._counts[value] = count + step
        self._sizes[count] -= 1
        self.by_count[count] ^= clusters
        if not self._sizes[count]:
            del self._sizes[count], self.by_count[count]
        self._sizes[count + step] = self._sizes.get(count + step, 0) + 1
        self.by_count[count + step] = self.by_count.get(count + step, 0) | clusters


def _apply_constraint(
    state: CycleState, constraint: TopologySpreadConstraint, groups: list[ScoreGroup]
) -> tuple[list[ScoreGroup], Bitset]:
    """Return the groups with a constraint's scores added, and the clusters that it excludes."""
    key = constraint.topology_key
    labels = state.fleet.labels
    if not labels.domains(key):
        return groups, 0
    domain_counts = cast("DomainCounts", state.kept.get(key) or state.kept.setdefault(key, DomainCounts(labels, key)))
    domain_counts.count_selected(state.selected)
    violated: Bitset = 0
    merged: dict[Score, Bitset] = {}
    skew_changes = domain_counts.skew_changes(constraint.max_skew)
    for clusters, score in groups:
        rest = clusters
        for count, members in domain_counts.by_count.items():
            hit = rest & members
            if not hit:
                continue
            rest ^= hit
            violates, change = skew_changes[count]
            if violates and constraint.is_hard:
                violated |= hit
                continue
            more = score.plus(Score(-SOFT_PENALTY if violates else -change))
            merged[more] = merged.get(more, 0) | hit
        if rest:
            merged[score] = merged.get(score, 0) | rest
    return [ScoreGroup(clusters, score) for score, clusters in merged.items()], violated


def _skew_status(constraint: TopologySpreadConstraint) -> Status:
    return Status(
        Code.UNSCHEDULABLE,
        f"TopologySpreadConstraints: {constraint.topology_key} would be spread less evenly than"
        f" maxSkew {constraint.max_skew} allows",
    )
