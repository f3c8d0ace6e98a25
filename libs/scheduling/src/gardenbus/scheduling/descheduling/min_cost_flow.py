"""The fewest moves that bring the counts of some places into bounds: numbers only, no shoots and no seeds.

Greedy at first, then improved step by step: the problem is a flow of least cost, whose local improvements (cycles of
negative cost in the residual network) end at the true minimum.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

Bounds = Mapping[str, tuple[int, int]]
"""Place → the least and the greatest count that it should have."""


class UnitGroup(msgspec.Struct, frozen=True):
    """Units that are alike: the place they are at, and those they could go to. `home` is never among the `targets`."""

    home: str
    targets: frozenset[str]


class FlowPlan(msgspec.Struct, frozen=True):
    """Units to move by (group, target), and by how much the counts still miss their bounds."""

    moved: Mapping[tuple[UnitGroup, str], int]
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


def balance_counts(counts: Mapping[str, int], units: Mapping[UnitGroup, int], bounds: Bounds) -> FlowPlan:
    """Bring the counts into their bounds as far as possible, with the fewest moves.

    `counts` are all units of each place; only those of `units` can move. The same arguments give the same plan.
    """
    network = _Network(counts, units, bounds)
    network.move_greedily()
    while network.improve():
        pass
    return network.plan()


class _Arc(msgspec.Struct, frozen=True):
    """One unit from a place to another: its cost, and its group (None: a count changes for good)."""

    start: str
    end: str
    cost: int
    group: UnitGroup | None


_OUTSIDE = ""
"""Start and end of a path of moves: the first place loses a unit for good and the last one wins it."""


class _Network:
    """Units by group and place, with the arcs of the residual network."""

    def __init__(self, counts: Mapping[str, int], units: Mapping[UnitGroup, int], bounds: Bounds) -> None:
        self._counts = dict(counts)
        self._bounds = bounds
        self._groups = sorted(
            (group for group, number in units.items() if number),
            key=lambda group: (group.home, len(group.targets), sorted(group.targets)),
        )
        self._places = {group: {group.home: units[group]} for group in self._groups}
        self._miss = 2 * sum(units.values()) + 1
        """The cost of a unit too many or too few: more than all moves there can be."""

    def move_greedily(self) -> None:
        """Move units straight from places above their bounds to those that want some, the neediest first."""
        for group in self._groups:
            while self._places[group].get(group.home) and self._cost_change(group.home, -1) < 0:
                neediest = min(
                    group.targets & self._bounds.keys(), key=lambda place: (*self._need(place), place), default=None
                )
                if neediest is None or self._cost_change(neediest, 1) > 0:
                    break
                self._move(group, group.home, neediest)
                self._counts[group.home] -= 1
                self._counts[neediest] += 1

    def improve(self) -> bool:
        """Apply one set of moves that lowers the cost; False when there is none."""
        cycle = _negative_cycle([_OUTSIDE, *sorted(self._counts)], self._arcs())
        number = min(map(self._units_on, cycle), default=0)
        for arc in cycle:
            if arc.group is not None:
                self._move(arc.group, arc.start, arc.end, number)
            elif arc.start == _OUTSIDE:
                self._counts[arc.end] -= number
            else:
                self._counts[arc.start] += number
        return bool(cycle)

    def plan(self) -> FlowPlan:
        """The plan so far."""
        moved = {
            (group, place): number
            for group, places in self._places.items()
            for place, number in places.items()
            if number and place != group.home
        }
        return FlowPlan(moved, sum(self._missing(place, self._counts[place]) for place in self._bounds))

    def _arcs(self) -> Sequence[_Arc]:
        at: dict[str, list[UnitGroup]] = {place: [] for place in sorted(self._counts)}
        for group in self._groups:
            for place, number in self._places[group].items():
                if number:
                    at[place].append(group)
        arcs: list[_Arc] = []
        for place, groups in at.items():
            arcs.append(_Arc(_OUTSIDE, place, self._cost_change(place, -1), None))
            arcs.append(_Arc(place, _OUTSIDE, self._cost_change(place, 1), None))
            arcs += _ways_from(place, groups)
        return arcs

    def _units_on(self, arc: _Arc) -> int:
        """The number of units that an arc can take at the same cost each; one at least."""
        if arc.group is not None:
            return self._places[arc.group][arc.start]
        place = arc.end if arc.start == _OUTSIDE else arc.start
        low, high = self._bounds[place]
        count = self._counts[place]
        ahead = (count - high, count - low) if arc.start == _OUTSIDE else (low - count, high - count)
        return next((number for number in sorted(ahead) if number > 0), 1)

    def _move(self, group: UnitGroup, start: str, end: str, number: int = 1) -> None:
        places = self._places[group]
        places[start] -= number
        places[end] = places.get(end, 0) + number

    def _cost_change(self, place: str, change: int) -> int:
        count = self._counts[place]
        return self._miss * (self._missing(place, count + change) - self._missing(place, count))

    def _missing(self, place: str, count: int) -> int:
        low, high = self._bounds[place]
        return max(low - count, count - high, 0)

    def _need(self, place: str) -> tuple[int, int]:
        low, high = self._bounds[place]
        return self._counts[place] - low, self._counts[place] - high


def _ways_from(place: str, groups: Sequence[UnitGroup]) -> Iterator[_Arc]:
    """The cheapest arc to each other place: back home saves a move, onward costs none, and away from home costs one."""
    reached = {place}
    guests = [group for group in groups if group.home != place]
    for group in guests:
        if group.home not in reached:
            reached.add(group.home)
            yield _Arc(place, group.home, -1, group)
    for cost, movable in ((0, guests), (1, [group for group in groups if group.home == place])):
        for group in movable:
            further = group.targets - reached
            reached |= further
            for end in sorted(further):
                yield _Arc(place, end, cost, group)


def _negative_cycle(nodes: Sequence[str], arcs: Sequence[_Arc]) -> Sequence[_Arc]:
    """A cycle whose costs sum up to less than nothing, none when there is none (Bellman and Ford)."""
    distance = dict.fromkeys(nodes, 0)
    reached_by: dict[str, _Arc] = {}
    while True:
        changed = False
        for arc in arcs:
            if distance[arc.start] + arc.cost < distance[arc.end]:
                distance[arc.end] = distance[arc.start] + arc.cost
                reached_by[arc.end] = arc
                changed = True
        if not changed:
            return ()
        if cycle := _cycle_in(reached_by):
            return cycle


def _cycle_in(reached_by: Mapping[str, _Arc]) -> Sequence[_Arc]:
    """A cycle among the last arcs to each node; such a one is always of negative cost."""
    done: set[str] = set()
    for first in reached_by:
        path: list[_Arc] = []
        on_path: dict[str, int] = {}
        node = first
        while node in reached_by and node not in done and node not in on_path:
            on_path[node] = len(path)
            path.append(reached_by[node])
            node = reached_by[node].start
        if node in on_path:
            return path[on_path[node] :][::-1]
        done |= on_path.keys()
    return ()
