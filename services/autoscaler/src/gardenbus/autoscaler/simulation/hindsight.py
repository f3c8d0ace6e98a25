"""What a set would have cost somebody who knew everything in advance.

Given is how many shoots were on seeds at each moment. Whoever serves the same shoots at the same times needs at least
ceil(shoots / capacity) seeds up at each moment, pays for the building of every seed before it is up, and for its
removal after. The seeds being alike and moves between them free, the needs split into levels (a first seed, a second):
each level is needed in some intervals, and between two of them the seed is either kept, or removed and built again.
Choosing the cheaper for every gap costs no more than any plan, so the sum is a true lower bound.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple


class Step(NamedTuple):
    """From `at` (seconds) on, so many."""

    at: int
    number: int


class Costs(NamedTuple):
    """Seconds that a seed is paid for before and after it can hold shoots."""

    build_seconds: int
    removal_seconds: int


def fewest_seed_seconds(hosted: Sequence[Step], *, end: int, capacity: int, least: int, costs: Costs) -> int:
    """The lower bound from 0 to `end`; `least` seeds are there from the beginning and always stay."""
    needs = _needs(hosted, capacity)
    most = max((step.number for step in needs), default=0)
    return least * end + sum(
        _level_seconds(_intervals(needs, level, end), costs) for level in range(least + 1, most + 1)
    )


def _needs(hosted: Sequence[Step], capacity: int) -> list[Step]:
    needs: list[Step] = []
    for step in hosted:
        need = -(-step.number // capacity)
        if needs and needs[-1].at == step.at:
            needs.pop()
        if not needs or needs[-1].number != need:
            needs.append(Step(step.at, need))
    return needs


def _intervals(needs: Sequence[Step], level: int, end: int) -> list[tuple[int, int]]:
    """When at least `level` seeds are needed."""
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
