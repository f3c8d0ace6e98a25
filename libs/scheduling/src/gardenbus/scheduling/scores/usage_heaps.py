"""Sets of seeds in the order of their usage, the first by name among equals, kept while usage goes up and down.

Each set of feasible seeds has a heap, shared by all classes with the same set. An entry is checked only when it comes
first: if its seed's usage has risen it sinks, if its seed is full or gone it goes. Whatever could make it come earlier
(a decrease of usage, a change of the seed) is read from `UsageIndex.decreased` and `SeedIndex.changed`, and entered
anew.
"""

from heapq import heapify, heappop, heappush, heapreplace
from typing import NamedTuple

from gardenbus.common.api.bitsets import Bitset, members_of
from gardenbus.common.api.garden.shoot_networks import Ranges, network_problems
from gardenbus.scheduling.result_cache import ResultCache
from gardenbus.scheduling.seed_candidates import SeedCandidate
from gardenbus.scheduling.seed_index import SeedIndex
from gardenbus.scheduling.usage_index import UsageIndex

MAX_ENTRIES = 500_000
"""Entries of all heaps together, about 100 bytes each; above it all are dropped, and made again on demand."""

MAX_ASIDE = 8
"""Seeds whose networks clash that are put aside for one shoot, before the set of those that do not is made."""

MAX_DIFFERENCE = 4
"""A set that differs from another in at most so many seeds starts with a copy of that one's heap."""

_HeapEntry = tuple[int, str, int]
"""Usage, name, slot."""


class LeastUsed(NamedTuple):
    """The seed with the fewest shoots, and the one that would be next (None: no other, or too many clash)."""

    seed: SeedCandidate
    next: SeedCandidate | None


def least_used(bits: Bitset, ranges: Ranges, usage: UsageIndex, index: SeedIndex) -> LeastUsed | None:
    """The seed of a set with the fewest shoots that has room and whose networks do not clash; None when none has."""
    kept = _heap_of(bits, usage, index)
    aside: list[_HeapEntry] = []
    first = kept.first(ranges, aside)
    is_exhausted = first is None and len(aside) == MAX_ASIDE
    second = kept.second(ranges, aside) if first is not None else None
    for entry in aside:
        heappush(kept.heap, entry)
    if is_exhausted:
        rest = bits & index.compatible(ranges)
        return least_used(rest, Ranges(stated=False), usage, index) if rest else None
    return LeastUsed(first, second) if first is not None else None


class UsageHeap:
    """The heap of one set of seeds. `decreases` and `changes` are how much of the logs it has read."""

    __slots__ = ("bits", "changes", "decreases", "heap", "index", "size", "usage")

    def __init__(self, bits: Bitset, usage: UsageIndex, index: SeedIndex, similar: "UsageHeap | None") -> None:
        self.bits = bits
        self.usage = usage
        self.index = index
        if similar is None:
            self.heap = [self._entry(slot) for slot in members_of(bits)]
            heapify(self.heap)
            self.decreases, self.changes = len(usage.decreased), len(index.changed)
        else:
            self.heap = similar.heap.copy()
            self.decreases, self.changes = similar.decreases, similar.changes
        self.size = len(self.heap)
        if similar is not None:
            self._push(bits & ~similar.bits)

    def first(self, ranges: Ranges, aside: list[_HeapEntry]) -> SeedCandidate | None:
        """Bring the first suitable seed to the top; those that clash go `aside`, at most `MAX_ASIDE` in all."""
        heap, bits, seeds, usage_of = self.heap, self.bits, self.index.seeds, self.usage.get
        while heap:
            used, name, slot = heap[0]
            seed = seeds[slot]
            usage = usage_of(name, 0)
            if seed is None or not bits >> slot & 1 or (seed.capacity is not None and usage >= seed.capacity):
                heappop(heap)
            elif usage != used:
                heapreplace(heap, (usage, name, slot))
            elif ranges.stated and network_problems(ranges, seed.seed.spec.networks):
                aside.append(heappop(heap))
                if len(aside) >= MAX_ASIDE:
                    break
            else:
                return seed
        return None

    def second(self, ranges: Ranges, aside: list[_HeapEntry]) -> SeedCandidate | None:
        """The seed that follows the first one: in most cases one of the two entries below it."""
        heap = self.heap
        if len(heap) == 1 or len(aside) >= MAX_ASIDE:
            return None
        top = heap[0]
        used, name, slot = heap[1] if len(heap) == 2 or heap[1] < heap[2] else heap[2]  # noqa: PLR2004  a heap's children
        seed = self.index.seeds[slot]
        if (
            seed is not None
            and self.bits >> slot & 1
            and self.usage.get(name, 0) == used
            and slot != top[2]
            and (seed.capacity is None or used < seed.capacity)
            and not (ranges.stated and network_problems(ranges, seed.seed.spec.networks))
        ):
            return seed
        heappop(heap)
        while (following := self.first(ranges, aside)) is not None and heap[0] == top:
            heappop(heap)  # it was there twice
        heappush(heap, top)
        return following

    def catch_up(self) -> None:
        """Enter anew what has come to stand earlier since."""
        decreased, changed, slots = self.usage.decreased, self.index.changed, self.index.slots
        moved = [slot for name in decreased[self.decreases :] if (slot := slots.get(name)) is not None]
        for slot in (*moved, *changed[self.changes :]):
            if self.bits >> slot & 1:
                heappush(self.heap, self._entry(slot))
        self.decreases, self.changes = len(decreased), len(changed)
        if len(self.heap) > 2 * self.size + 64:  # every decrease has left an entry behind
            self.heap[:] = [self._entry(slot) for slot in members_of(self.bits)]
            heapify(self.heap)

    def _push(self, bits: Bitset) -> None:
        for slot in members_of(bits):
            heappush(self.heap, self._entry(slot))

    def _entry(self, slot: int) -> _HeapEntry:
        seed = self.index.seeds[slot]
        assert seed is not None, "a set holds seeds that are there"
        return self.usage.get(seed.name, 0), seed.name, slot


_CACHE = ResultCache[Bitset, UsageHeap]()


def _heap_of(bits: Bitset, usage: UsageIndex, index: SeedIndex) -> UsageHeap:
    heaps = _CACHE.of(usage.caches, index)
    kept = heaps.get(bits)
    if kept is None:
        similar = next((each for each in heaps.values() if (each.bits ^ bits).bit_count() <= MAX_DIFFERENCE), None)
        if sum(each.size for each in heaps.values()) > MAX_ENTRIES:
            heaps.clear()
        kept = heaps[bits] = UsageHeap(bits, usage, index, similar)
    if kept.decreases < len(usage.decreased) or kept.changes < len(index.changed):
        kept.catch_up()
    return kept
