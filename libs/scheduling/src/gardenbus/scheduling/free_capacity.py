"""Free capacity of a landscape, for many classes at one moment: how many more shoots with a request fit."""

from gardenbus.common.api.bitsets import bitset_of, members_of
from gardenbus.scheduling.equivalence_classes import SchedulingRequest
from gardenbus.scheduling.feasible_seeds import feasible_seeds_of
from gardenbus.scheduling.seed_candidates import SeedCandidate
from gardenbus.scheduling.snapshot import Snapshot


class FreeCapacity:
    """Made once a moment: reading what all seeds have left takes long, each class then takes little."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._landscape = snapshot.landscape
        self._usage = snapshot.usage
        index = snapshot.landscape.index
        unlimited: list[int] = []
        self._free: dict[int, int] = {}
        for slot, seed in enumerate(index.seeds):
            if seed is None:
                continue
            if seed.capacity is None:
                unlimited.append(slot)
            elif (free := seed.capacity - snapshot.usage.get(seed.name, 0)) > 0:
                self._free[slot] = free
        self._unlimited = bitset_of(unlimited, len(index.seeds))
        self._open = bitset_of(self._free, len(index.seeds))

    def shoots(self, request: SchedulingRequest) -> int | None:
        """The number of shoots with this request that still fit; None when a seed that fits has no limit."""
        index = self._landscape.index
        bits = 0
        for group in feasible_seeds_of(request.constraints, self._landscape).groups:
            bits |= group.feasible
        bits &= self._unlimited | self._open
        if bits and request.ranges.stated:
            bits &= index.compatible(request.ranges)
        if request.requests:
            return sum(self._places(slot, request) for slot in members_of(bits))
        if bits & self._unlimited:
            return None
        return sum(self._free[slot] for slot in members_of(bits))

    def _places(self, slot: int, request: SchedulingRequest) -> int:
        """Shoots that fit on a seed by what they request of each resource, and by their number."""
        seed: SeedCandidate | None = self._landscape.index.seeds[slot]
        assert seed is not None, "a set holds seeds that are there"
        taken = self._usage.taken(seed.name)
        left = (
            max(seed.allocatable.get(resource, 0) - taken.get(resource, 0), 0) // amount
            for resource, amount in request.requests
        )
        places = min(left)
        return min(places, self._free[slot]) if slot in self._free else places
