"""Oracle baseline: the cost of a set whose operator knows everything in advance.

Given is the number of shoots on seeds at each moment. Serving the same shoots at the same times takes at least
ceil(shoots / capacity) seeds at each moment, paid for from the beginning of their construction to the end of their
removal. The seeds being alike and moves between them free, the needs split into levels (a first seed, a second): each
level is needed in some intervals, and between two of them the seed is either kept, or removed and built again. Choosing
the cheaper for every gap costs no more than any plan, so the sum is a true lower bound.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple


class CountChange(NamedTuple):
    """A number that holds from `at` (seconds) on."""

    at: int
    number: int


class Costs(NamedTuple):
    """Seconds that a seed is paid for before and after it can hold shoots."""

    build_seconds: int
    removal_seconds: int


def oracle_seed_seconds(hosted: Sequence[CountChange], *, end: int, capacity: int, least: int, costs: Costs) -> int:
    """The lower bound from 0 to `end`; `least` seeds exist from the beginning and always stay."""
    needs = _needs(hosted, capacity)
    most = max((step.number for step in needs), default=0)
    return least * end + sum(
        _level_seconds(_intervals(needs, level, end), costs) for level in range(least + 1, most + 1)
    )


def _needs(hosted: Sequence[CountChange], capacity: int) -> list[CountChange]:
    needs: list[CountChange] = []
    for step in hosted:
        need = -(-step.number // capacity)
        if needs and needs[-1].at == step.at:
            needs.pop()
        if not needs or needs[-1].number != need:
            needs.append(CountChange(step.at, need))
    return needs


def _intervals(needs: Sequence[CountChange], level: int, end: int) -> list[tuple[int, int]]:
    """Intervals in which at least `level` seeds are needed."""
    intervals: list[tuple[int, int]] = []
    since: int | None = None
    for step in needs:
        if step.number >= level and since is None:
            since = step.at
        elif step.number < level and since is not None:
            intervals.append((since, step.at))
            since = None
    if since is not None:
        intervals.append((since, end))
    return intervals


def _level_seconds(intervals: Sequence[tuple[int, int]], costs: Costs) -> int:
    if not intervals:
        return 0
    needed = sum(until - since for since, until in intervals)
    gaps = [after[0] - before[1] for before, after in pairwise(intervals)]
    again = costs.build_seconds + costs.removal_seconds
    first = min(intervals[0][0], costs.build_seconds)
    return first + needed + sum(min(gap, again) for gap in gaps)
