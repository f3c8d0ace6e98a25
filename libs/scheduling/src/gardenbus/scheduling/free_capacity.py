"""Free capacity of a landscape, for many classes at one moment: how many more shoots with a request fit."""

import heapq
from collections import Counter

from gardenbus.common.api.bitsets import bitset_of, members_of
from gardenbus.scheduling.equivalence_classes import SchedulingRequest
from gardenbus.scheduling.feasible_seeds import feasible_seeds_of
from gardenbus.scheduling.group_checks import allowed_seeds
from gardenbus.scheduling.group_index import GroupIndex
from gardenbus.scheduling.seed_candidates import SeedCandidate
from gardenbus.scheduling.snapshot import Snapshot

_NOTHING: Counter[str] = Counter()


class FreeCapacity:
    """Made once a moment: reading what all seeds have left takes long, each class then takes little.

    Rules between shoots count for those requests whose `groups` are given.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._landscape = snapshot.landscape
        self._usage = snapshot.usage
        index = snapshot.landscape.index
        unlimited: list[int] = []
        self._free: dict[int, int] = {}
        self._promised: dict[int, Counter[str]] = {}
        for slot, seed in enumerate(index.seeds):
            if seed is None:
                continue
            if seed.capacity is None:
                unlimited.append(slot)
            elif (free := seed.capacity - snapshot.usage.get(seed.name, 0)) > 0:
                self._free[slot] = free
        self._unlimited = bitset_of(unlimited, len(index.seeds))
        self._open = bitset_of(self._free, len(index.seeds))

    def shoots(self, request: SchedulingRequest, groups: GroupIndex | None = None) -> int | None:
        """The number of shoots with this request that still fit; None when a seed that fits has no limit."""
        bits = self._open_to(request, groups)
        if request.requests:
            return sum(self._places(slot, request) for slot in members_of(bits))
        if bits & self._unlimited:
            return None
        return sum(self._free[slot] for slot in members_of(bits))

    def promise(self, request: SchedulingRequest, most: int, groups: GroupIndex | None = None) -> int:
        """Take places for at most so many shoots, each on the seed with the most of them; returns how many there were.

        What is promised to one request is not there for the next one.
        """
        bits = self._open_to(request, groups)
        if not request.requests and bits & self._unlimited:
            return most
        places = {slot: self._places(slot, request) for slot in members_of(bits)}
        left = [(-count, slot) for slot, count in places.items() if count > 0]
        heapq.heapify(left)
        promised = 0
        while left and promised < most:
            count, slot = left[0]
            self._take(slot, request)
            heapq.heapreplace(left, (count + 1, slot)) if count < -1 else heapq.heappop(left)
            promised += 1
        return promised

    def _take(self, slot: int, request: SchedulingRequest) -> None:
        if slot in self._free:
            self._free[slot] -= 1
            if not self._free[slot]:
                self._open &= ~(1 << slot)
        promised = self._promised.setdefault(slot, Counter())
        for resource, amount in request.requests:
            promised[resource] += amount

    def _open_to(self, request: SchedulingRequest, groups: GroupIndex | None) -> int:
        """The seeds with a place that a request may use, as a set of slots."""
        index = self._landscape.index
        bits = feasible_seeds_of(request.constraints, self._landscape).feasible
        if groups is not None:
            bits = allowed_seeds(request, Snapshot(self._landscape, self._usage, groups), bits)
        bits &= self._unlimited | self._open
        if bits and request.ranges.stated:
            bits &= index.compatible(request.ranges)
        return bits

    def _places(self, slot: int, request: SchedulingRequest) -> int:
        """Shoots that fit on a seed by what they request of each resource, and by their number."""
        seed: SeedCandidate | None = self._landscape.index.seeds[slot]
        assert seed is not None, "a set holds seeds that are there"
        if not request.requests:
            return self._free[slot]
        taken, promised = self._usage.taken(seed.name), self._promised.get(slot, _NOTHING)
        left = (
            max(seed.allocatable.get(resource, 0) - taken.get(resource, 0) - promised[resource], 0) // amount
            for resource, amount in request.requests
        )
        places = min(left)
        return min(places, self._free[slot]) if slot in self._free else places
