"""The plug-in TopologySpreadConstraints: how evenly the chosen clusters spread over the values of a label.

Values are those of all clusters, also of those that cannot be chosen. Source: KubeFleet's
`plugins/topologyspreadconstraints`.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, cast

from gardenbus.common.resources.placements import TopologySpreadConstraint
from gardenbus.fleet.framework import SKIP, SUCCESS, Code, CycleState, Group, Score, Status, Verdict
from gardenbus.fleet.labels import LabelIndex
from gardenbus.fleet.masks import Mask, ascending
from gardenbus.fleet.outcome import UnexpectedState

SOFT_PENALTY = 1000
"""What a violated soft constraint costs."""


class TopologySpreadConstraints:
    """Keeps off those that would make the spread too uneven, and prefers those that even it out."""

    name = "TopologySpreadConstraints"

    def post_batch(self, state: CycleState) -> tuple[int, Status]:
        """One at a time: each that is chosen changes what the next does to the spread."""
        return (1, SUCCESS) if state.policy.hard or state.policy.soft else (0, SKIP)

    def pre_filter(self, state: CycleState) -> Status:
        """Left out where nothing is excluded."""
        state.notes.pop(self.name, None)
        return SUCCESS if state.policy.hard else SKIP

    def filter(self, state: CycleState, candidates: Mask) -> Iterable[Verdict]:
        """Objects to those that violate a hard constraint, in the order of the constraints."""
        groups = [Group(candidates, Score())]
        for constraint in state.policy.hard:
            groups, violated = _weighed(state, constraint, groups)
            if violated:
                yield Verdict(violated, _uneven(constraint))
        state.notes[self.name] = groups

    def pre_score(self, state: CycleState) -> Status:
        """Left out where there are no constraints."""
        return SUCCESS if state.policy.hard or state.policy.soft else SKIP

    def score(self, state: CycleState, candidates: Mask) -> list[Group]:
        """By how much each evens the spread out; a soft violation costs a thousand."""
        groups = cast("list[Group]", state.notes.get(self.name) or [Group(candidates, Score())])
        for constraint in state.policy.soft:
            groups, _ = _weighed(state, constraint, groups)
        return [Group(hit, score) for clusters, score in groups if (hit := clusters & candidates)]


class Addition(NamedTuple):
    """What one more cluster in a domain does."""

    violates: bool
    """Whether the skew is then too great."""

    change: int
    """By how much the skew grows."""


def addition(counts: Mapping[str, int], domain: str, max_skew: int) -> Addition:
    """What one more in a domain does to the skew, as KubeFleet counts; raises UnexpectedState for an unknown domain.

    A step that makes the skew smaller still violates while the rest is too great.
    """
    if domain not in counts:
        raise UnexpectedState(f"there is no cluster in {domain!r}")
    ordered = sorted(counts.values())
    return _addition(counts[domain], ordered[0], ordered[min(1, len(ordered) - 1)], ordered[-1], max_skew)


def _addition(count: int, smallest: int, second: int, largest: int, max_skew: int) -> Addition:
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
    return Addition(skew + change > max_skew, change)


class Tally:
    """How many of the chosen clusters are in each value of a label; values with as many are kept together."""

    def __init__(self, labels: LabelIndex, key: str) -> None:
        self._labels = labels
        self._key = key
        self._domains = labels.domains(key)
        self._counts = dict.fromkeys(self._domains, 0)
        self._selected: Mask = 0
        self.by_count: dict[int, Mask] = {0: labels.having(key)} if self._domains else {}
        """The clusters of all values that have so many."""
        self._sizes = {0: len(self._domains)} if self._domains else {}

    def follow(self, selected: Mask) -> None:
        """Count these clusters from now on."""
        for place in ascending(selected ^ self._selected):
            value = self._labels.value(self._key, place)
            if value is not None:
                self._move(value, 1 if selected >> place & 1 else -1)
        self._selected = selected

    def additions(self, max_skew: int) -> dict[int, Addition]:
        """What one more does to the skew, by how many there are already."""
        counts = sorted(self._sizes)
        smallest = counts[0]
        second = smallest if self._sizes[smallest] > 1 or len(counts) == 1 else counts[1]
        return {count: _addition(count, smallest, second, counts[-1], max_skew) for count in counts}

    def _move(self, value: str, step: int) -> None:
        count, clusters = self._counts[value], self._domains[value]
        self._counts[value] = count + step
        self._sizes[count] -= 1
        self.by_count[count] ^= clusters
        if not self._sizes[count]:
            del self._sizes[count], self.by_count[count]
        self._sizes[count + step] = self._sizes.get(count + step, 0) + 1
        self.by_count[count + step] = self.by_count.get(count + step, 0) | clusters


def _weighed(state: CycleState, constraint: TopologySpreadConstraint, groups: list[Group]) -> tuple[list[Group], Mask]:
    """The groups with what a constraint adds to their scores, and whom it excludes."""
    key = constraint.topology_key
    labels = state.fleet.labels
    if not labels.domains(key):
        return groups, 0
    tally = cast("Tally", state.kept.get(key) or state.kept.setdefault(key, Tally(labels, key)))
    tally.follow(state.selected)
    violated: Mask = 0
    merged: dict[Score, Mask] = {}
    additions = tally.additions(constraint.max_skew)
    for clusters, score in groups:
        rest = clusters
        for count, members in tally.by_count.items():
            hit = rest & members
            if not hit:
                continue
            rest ^= hit
            violates, change = additions[count]
            if violates and constraint.is_hard:
                violated |= hit
                continue
            more = score.plus(Score(-SOFT_PENALTY if violates else -change))
            merged[more] = merged.get(more, 0) | hit
        if rest:
            merged[score] = merged.get(score, 0) | rest
    return [Group(clusters, score) for score, clusters in merged.items()], violated


def _uneven(constraint: TopologySpreadConstraint) -> Status:
    return Status(
        Code.UNSCHEDULABLE,
        f"TopologySpreadConstraints: {constraint.topology_key} would be spread less evenly than"
        f" maxSkew {constraint.max_skew} allows",
    )
