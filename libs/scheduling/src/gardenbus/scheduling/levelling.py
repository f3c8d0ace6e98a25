"""The fewest moves that bring the counts of some places into bounds: numbers only, no shoots and no seeds.

First greedily, then improved as long as anything can be: the problem is a flow of least cost, whose local improvements
(cycles of negative cost in what is left of the network) end at the true minimum.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

Bounds = Mapping[str, tuple[int, int]]
"""Place → the least and the greatest count that it should have."""


class Kind(msgspec.Struct, frozen=True):
    """Units that are alike: where they are, and where they could go. `home` is never among the `targets`."""

    home: str
    targets: frozenset[str]


class Levelled(msgspec.Struct, frozen=True):
    """What it comes to: units to move by (kind, target), and by how much the counts miss their bounds still."""

    moved: Mapping[tuple[Kind, str], int]
    missed: int

    @property
    def moves(self) -> int:
        """How many units are moved."""
        return sum(self.moved.values())


def least_moves(counts: Mapping[str, int], bounds: Bounds) -> int:
    """A lower bound: no fewer moves can do, even if everything could go everywhere."""
    above = sum(max(counts[place] - high, 0) for place, (_, high) in bounds.items())
    below = sum(max(low - counts[place], 0) for place, (low, _) in bounds.items())
    return max(above, below)


def level(counts: Mapping[str, int], units: Mapping[Kind, int], bounds: Bounds) -> Levelled:
    """Bring the counts into their bounds as far as possible, with the fewest moves that do.

    `counts` are all units of each place; only those of `units` can move. The same arguments give the same answer.
    """
    network = _Network(counts, units, bounds)
    network.take_greedily()
    while network.improve():
        pass
    return network.levelled()


class _Arc(msgspec.Struct, frozen=True):
    """One unit from a place to another: what that costs, and of which kind (None: a count changes for good)."""

    start: str
    end: str
    cost: int
    kind: Kind | None


_OUTSIDE = ""
"""Where a path of moves begins and ends: the first place loses a unit for good and the last one wins it."""


class _Network:
    """Units by kind and place, and what would change if one more moved."""

    def __init__(self, counts: Mapping[str, int], units: Mapping[Kind, int], bounds: Bounds) -> None:
        self._counts = dict(counts)
        self._bounds = bounds
        self._kinds = sorted(
            (kind for kind, number in units.items() if number),
            key=lambda kind: (kind.home, len(kind.targets), sorted(kind.targets)),
        )
        self._places = {kind: {kind.home: units[kind]} for kind in self._kinds}
        self._miss = 2 * sum(units.values()) + 1
        """What a unit too many or too few costs: more than all moves there can be."""

    def take_greedily(self) -> None:
        """Move units straight from places above their bounds to those that want some, the neediest first."""
        for kind in self._kinds:
            while self._places[kind].get(kind.home) and self._gain(kind.home, -1) < 0:
                neediest = min(
                    kind.targets & self._bounds.keys(), key=lambda place: (*self._need(place), place), default=None
                )
                if neediest is None or self._gain(neediest, 1) > 0:
                    break
                self._move(kind, kind.home, neediest)
                self._counts[kind.home] -= 1
                self._counts[neediest] += 1

    def improve(self) -> bool:
        """Carry out one set of moves that makes things better; whether there was any."""
        cycle = _negative_cycle([_OUTSIDE, *sorted(self._counts)], self._arcs())
        number = min(map(self._room_on, cycle), default=0)
        for arc in cycle:
            if arc.kind is not None:
                self._move(arc.kind, arc.start, arc.end, number)
            elif arc.start == _OUTSIDE:
                self._counts[arc.end] -= number
            else:
                self._counts[arc.start] += number
        return bool(cycle)

    def levelled(self) -> Levelled:
        """What is planned now."""
        moved = {
            (kind, place): number
            for kind, places in self._places.items()
            for place, number in places.items()
            if number and place != kind.home
        }
        return Levelled(moved, sum(self._missing(place, self._counts[place]) for place in self._bounds))

    def _arcs(self) -> Sequence[_Arc]:
        at: dict[str, list[Kind]] = {place: [] for place in sorted(self._counts)}
        for kind in self._kinds:
            for place, number in self._places[kind].items():
                if number:
                    at[place].append(kind)
        arcs: list[_Arc] = []
        for place, kinds in at.items():
            arcs.append(_Arc(_OUTSIDE, place, self._gain(place, -1), None))
            arcs.append(_Arc(place, _OUTSIDE, self._gain(place, 1), None))
            arcs += _ways_from(place, kinds)
        return arcs

    def _room_on(self, arc: _Arc) -> int:
        """How many units can take a way at the same cost each; one at least."""
        if arc.kind is not None:
            return self._places[arc.kind][arc.start]
        place = arc.end if arc.start == _OUTSIDE else arc.start
        low, high = self._bounds[place]
        count = self._counts[place]
        ahead = (count - high, count - low) if arc.start == _OUTSIDE else (low - count, high - count)
        return next((number for number in sorted(ahead) if number > 0), 1)

    def _move(self, kind: Kind, start: str, end: str, number: int = 1) -> None:
        places = self._places[kind]
        places[start] -= number
        places[end] = places.get(end, 0) + number

    def _gain(self, place: str, change: int) -> int:
        count = self._counts[place]
        return self._miss * (self._missing(place, count + change) - self._missing(place, count))

    def _missing(self, place: str, count: int) -> int:
        low, high = self._bounds[place]
        return max(low - count, count - high, 0)

    def _need(self, place: str) -> tuple[int, int]:
        low, high = self._bounds[place]
        return self._counts[place] - low, self._counts[place] - high


def _ways_from(place: str, kinds: Sequence[Kind]) -> Iterator[_Arc]:
    """The cheapest way to each other place: back home saves a move, on costs none, and away from home costs one."""
    reached = {place}
    guests = [kind for kind in kinds if kind.home != place]
    for kind in guests:
        if kind.home not in reached:
            reached.add(kind.home)
            yield _Arc(place, kind.home, -1, kind)
    for cost, movable in ((0, guests), (1, [kind for kind in kinds if kind.home == place])):
        for kind in movable:
            further = kind.targets - reached
            reached |= further
            for end in sorted(further):
                yield _Arc(place, end, cost, kind)


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
