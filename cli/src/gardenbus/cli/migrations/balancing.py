"""Moves that bring the counts of some places into bounds: numbers only, no shoots and no seeds. Pure.

Greedy: units go from where there are too many to where they are wanted, on the shortest way there is (a place on it
takes one unit and gives another), until no way is left. So the bounds are met if moves can meet them, and missed least
otherwise; moves are few, not always the fewest.
"""

from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

import msgspec

Bounds = Mapping[str, tuple[int, int]]
"""Place → the least and the greatest count that it should have."""


class UnitGroup(msgspec.Struct, frozen=True):
    """Units that are alike: the place they are at, and those they could go to. `home` is never among the `targets`."""

    home: str
    targets: frozenset[str]


UnitTransfer = tuple[UnitGroup, str]
"""Units of a group, and where they go."""


class BalancePlan(msgspec.Struct, frozen=True):
    """Units to move by (group, target), and by how much the counts still miss their bounds."""

    moved: Mapping[UnitTransfer, int]
    missed: int

    @property
    def moves(self) -> int:
        """The number of units moved."""
        return sum(self.moved.values())


def least_moves(counts: Mapping[str, int], bounds: Bounds) -> int:
    """A lower bound: no fewer moves can do, even if everything could go everywhere."""
    above = sum(max(counts[place] - high, 0) for place, (_, high) in bounds.items())
    below = sum(max(low - counts[place], 0) for place, (low, _) in bounds.items())
    return max(above, below)


def balance_counts(counts: Mapping[str, int], units: Mapping[UnitGroup, int], bounds: Bounds) -> BalancePlan:
    """Bring the counts into their bounds as far as possible.

    `counts` are all units of each place; only those of `units` can move. The same arguments give the same plan.
    """
    balance = _Balance(counts, units, bounds)
    while balance.improve():
        pass
    missed = sum(
        max(low - balance.counts[place], balance.counts[place] - high, 0) for place, (low, high) in bounds.items()
    )
    return BalancePlan(_without_circles(balance.moved()), missed)


class _TransferStep(msgspec.Struct, frozen=True):
    """Units of a group from one place to another."""

    group: UnitGroup
    start: str
    end: str


class _Balance:
    """Units by group and place, moved from surplus to need as long as that brings the counts nearer to their bounds."""

    def __init__(self, counts: Mapping[str, int], units: Mapping[UnitGroup, int], bounds: Bounds) -> None:
        self.counts = dict(counts)
        self._bounds = bounds
        self._at = {
            group: {group.home: units[group]}
            for group in sorted(units, key=lambda group: (group.home, len(group.targets), sorted(group.targets)))
            if units[group]
        }

    def improve(self) -> bool:
        """Move units along one way; False when there is none that helps."""
        above = {place: self.counts[place] - high for place, (_, high) in self._bounds.items()}
        wanted = {place: low - self.counts[place] for place, (low, _) in self._bounds.items()}
        room = {place: -number for place, number in above.items()}
        spare = {place: -number for place, number in wanted.items()}
        for surplus, need in ((above, wanted), (above, room), (spare, wanted)):
            if steps := self._shortest_way(surplus, need):
                start, end = steps[0].start, steps[-1].end
                number = min(surplus[start], need[end], *(self._at[step.group][step.start] for step in steps))
                self.counts[start] -= number
                self.counts[end] += number
                for step in steps:
                    places = self._at[step.group]
                    places[step.start] -= number
                    places[step.end] = places.get(step.end, 0) + number
                return True
        return False

    def moved(self) -> dict[UnitTransfer, int]:
        """Units that are not at home."""
        return {
            (group, place): number
            for group, places in self._at.items()
            for place, number in places.items()
            if number and place != group.home
        }

    def _shortest_way(self, surplus: Mapping[str, int], need: Mapping[str, int]) -> Sequence[_TransferStep]:
        """Steps from the fullest place with a surplus to a place in need, the neediest of the nearest."""
        reached_by: dict[str, _TransferStep | None] = dict.fromkeys(
            sorted(
                (place for place, number in surplus.items() if number > 0), key=lambda place: (-surplus[place], place)
            )
        )
        layer = list(reached_by)
        while layer:
            following: list[str] = []
            for step in (step for place in layer for step in self._steps_from(place)):
                if step.end not in reached_by:
                    reached_by[step.end] = step
                    following.append(step.end)
            in_need = [place for place in following if need.get(place, 0) > 0]
            if in_need:
                return _way_to(min(in_need, key=lambda place: (-need[place], place)), reached_by)
            layer = following
        return ()

    def _steps_from(self, place: str) -> Iterator[_TransferStep]:
        """Units that are there go home first, then on, and those that are at home go last."""
        there = [group for group, places in self._at.items() if places.get(place)]
        away = [group for group in there if group.home != place]
        yield from (_TransferStep(group, place, group.home) for group in away)
        for group in (*away, *(group for group in there if group.home == place)):
            yield from (
                _TransferStep(group, place, end) for end in sorted(group.targets - {place}) if end in self._bounds
            )


def _way_to(place: str, reached_by: Mapping[str, _TransferStep | None]) -> Sequence[_TransferStep]:
    steps: list[_TransferStep] = []
    while step := reached_by[place]:
        steps.append(step)
        place = step.start
    return steps[::-1]


def _without_circles(moved: dict[UnitTransfer, int]) -> Mapping[UnitTransfer, int]:
    """The same counts by fewer moves: units that places would give to each other in a circle stay."""
    while True:
        sources: dict[str, list[str]] = {}
        for group, target in moved:
            sources.setdefault(target, []).append(group.home)
        try:
            TopologicalSorter(sources).prepare()
        except CycleError as error:
            circle: Sequence[str] = error.args[1]
            ways = [
                next(way for way in moved if way[0].home == home and way[1] == target)
                for home, target in pairwise(circle)
            ]
            number = min(moved[way] for way in ways)
            moved = {way: left for way, count in moved.items() if (left := count - number * (way in ways))}
        else:
            return moved
