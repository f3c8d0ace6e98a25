"""Seeds of equal usage score as bitsets, kept while usage changes: a choice is a few intersections, whatever the size.

A seed whose usage changed is taken out of one set and put into another. Levels are shared by all classes with the same
requests, and by all profiles with the same usage scores. The seed chosen costs no search: slots are given in reverse
order of names. A profile without scores chooses by the fewest shoots: here for shoots that request more than a place.
"""

from bisect import bisect_left, insort
from typing import NamedTuple

from gardenbus.common.api.bitsets import Bitset, bitset_of
from gardenbus.common.api.garden.scheduling_requirements import Requests
from gardenbus.common.api.garden.shoot_networks import Ranges, network_problems
from gardenbus.scheduling.equivalence_classes import SchedulingRequest
from gardenbus.scheduling.result_cache import ResultCache
from gardenbus.scheduling.room import has_room
from gardenbus.scheduling.score_table import ScoreTable
from gardenbus.scheduling.scores.class_scores import Cells
from gardenbus.scheduling.scores.seed_scores import usage_score
from gardenbus.scheduling.seed_candidates import SeedCandidate
from gardenbus.scheduling.seed_index import SeedIndex
from gardenbus.scheduling.usage_index import UsageIndex

MAX_LEVELS = 256
"""Usage levels that are kept, 5 MiB for 10,000 seeds each at most; then all are dropped, and made again on demand."""

MAX_ASIDE = 8
"""Seeds whose networks clash that are put aside for one shoot, before the set of those that do not is made."""


class BestSeed(NamedTuple):
    """A seed with the greatest sum of scores, and the one that would be next (None: no other)."""

    seed: SeedCandidate
    total: int
    next: SeedCandidate | None
    next_total: int


def best_seed(
    cells: Cells,
    seeds: Bitset,
    request: SchedulingRequest,
    *,
    scores: ScoreTable,
    usage: UsageIndex,
    index: SeedIndex,
) -> BestSeed | None:
    """The seed with the greatest sum among those that have room and whose networks do not clash; the first by name."""
    levels, ranges = _levels_of(scores, request.requests, usage, index), request.ranges
    room = seeds & levels.open
    first = _choose(cells, room, ranges, levels)
    if first is None:
        return None
    slot, total, room = first
    second = _choose(cells, room & ~(1 << slot), ranges, levels)
    seed = index.seeds[slot]
    assert seed is not None, "a set holds seeds that are there"
    if second is None:
        return BestSeed(seed, total, None, 0)
    return BestSeed(seed, total, index.seeds[second[0]], second[1])


def open_seeds(requests: Requests, *, scores: ScoreTable, usage: UsageIndex, index: SeedIndex) -> Bitset:
    """All seeds that take one more shoot with these requests."""
    return _levels_of(scores, requests, usage, index).open


def _choose(cells: Cells, room: Bitset, ranges: Ranges, levels: "UsageLevels") -> tuple[int, int, Bitset] | None:
    """Slot and sum of the best seed, with the set that it was found in."""
    index = levels.index
    while room:
        total, hits = _best_hits(cells, room, levels)
        if not ranges.stated:
            return index.first_by_name(hits), total, room
        for _ in range(MAX_ASIDE):
            if not hits:
                break
            slot = index.first_by_name(hits)
            seed = index.seeds[slot]
            assert seed is not None, "a set holds seeds that are there"
            if not network_problems(ranges, seed.seed.spec.networks):
                return slot, total, room
            hits &= ~(1 << slot)
        room &= index.compatible(ranges)
    return None


def _best_hits(cells: Cells, room: Bitset, levels: "UsageLevels") -> tuple[int, Bitset]:
    """The greatest sum, and the seeds of a set (not empty, all of it in cells) that have it."""
    sums, by_sum = levels.sums, levels.by_sum
    best, hits, top = cells[-1][0] + sums[0] - 1, 0, sums[-1]
    for cell_sum, cell in cells:
        if cell_sum + top < best:
            break
        here = cell & room
        if not here:
            continue
        for usage_sum in reversed(sums):
            total = cell_sum + usage_sum
            if total < best:
                break
            if found := here & by_sum[usage_sum]:
                best, hits = total, hits | found if total == best else found
                break
    return best, hits


class UsageLevels:
    """All seeds of an index by the weighted sum of their usage scores. `open` are those that have room.

    `sums` ascend. `touches` and `changes` are how much of the logs has been read.
    """

    __slots__ = (
        "by_sum",
        "changes",
        "index",
        "open",
        "requests",
        "scores",
        "sum_of",
        "sums",
        "touches",
        "usage",
    )

    def __init__(self, scores: ScoreTable, requests: Requests, usage: UsageIndex, index: SeedIndex) -> None:
        self.scores = scores
        self.requests = requests
        self.usage = usage
        self.index = index
        self.open: Bitset = 0
        self.by_sum: dict[int, Bitset] = {}
        self.sums: list[int] = []
        self.sum_of: dict[int, int] = {}
        self._read_logs()
        self._grade_all()

    def catch_up(self) -> None:
        """Grade the seeds anew that have changed since, or whose usage has."""
        usage, changed, slot_of = self.usage, self.index.changed, self.index.slots.get
        slots = {slot for name in (usage.touched or ())[self.touches :] if (slot := slot_of(name)) is not None}
        if self.changes < len(changed):
            slots.update(changed[self.changes :])
        for slot in slots:
            self._grade(slot)
        self._read_logs()

    def _grade_all(self) -> None:
        """Grade all seeds: of those that state and use the same, one."""
        usage, slots = self.usage, dict[tuple[object, ...], list[int]]()
        for slot, seed in enumerate(self.index.seeds):
            if seed is not None:
                taken, stated = usage.taken(seed.name), seed.allocatable
                of_requests = ((stated.get(each), taken.get(each, 0)) for each, _ in self.requests)
                slots.setdefault((seed.capacity, usage.get(seed.name, 0), *of_requests), []).append(slot)
        by_sum: dict[int, list[int]] = {}
        for alike in slots.values():
            seed = self.index.seeds[alike[0]]
            if seed is not None and has_room(seed, usage, self.requests):
                by_sum.setdefault(self._sum_of(seed), []).extend(alike)
        size = len(self.index.seeds)
        self.by_sum = {total: bitset_of(alike, size) for total, alike in by_sum.items()}
        self.sum_of = {slot: total for total, alike in by_sum.items() for slot in alike}
        self.sums = sorted(by_sum)
        self.open = bitset_of(self.sum_of, size)

    def _read_logs(self) -> None:
        if self.usage.touched is None:
            self.usage.touched = []
        self.touches = len(self.usage.touched)
        self.changes = len(self.index.changed)

    def _grade(self, slot: int) -> None:
        seed, bit = self.index.seeds[slot], 1 << slot
        is_open = seed is not None and has_room(seed, self.usage, self.requests)
        self.open = self.open | bit if is_open else self.open & ~bit
        before = self.sum_of.pop(slot, None)
        after = None
        if seed is not None and is_open:
            after = self.sum_of[slot] = self._sum_of(seed)
        if before == after:
            return
        if before is not None:
            self.by_sum[before] &= ~bit
            if not self.by_sum[before]:
                del self.by_sum[before]
                del self.sums[bisect_left(self.sums, before)]
        if after is not None:
            if after not in self.by_sum:
                insort(self.sums, after)
            self.by_sum[after] = self.by_sum.get(after, 0) | bit

    def _sum_of(self, seed: SeedCandidate) -> int:
        if not self.scores:
            return -self.usage.get(seed.name, 0)
        plugins = self.scores.of_usage
        return sum(each.weight * usage_score(each, seed, self.usage, self.requests) for each in plugins)


_CACHE = ResultCache[tuple[str, Requests], UsageLevels](MAX_LEVELS)


def _levels_of(scores: ScoreTable, requests: Requests, usage: UsageIndex, index: SeedIndex) -> UsageLevels:
    levels, key = _CACHE.of(usage.caches, index), (scores.usage_key, requests)
    found = levels.get(key)
    if found is None:
        return _CACHE.keep(levels, key, UsageLevels(scores, requests, usage, index))
    found.catch_up()
    return found
