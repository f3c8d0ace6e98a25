"""The free places of a landscape, for many questions at one moment: how many shoots with a request still fit."""

from gardenbus.scheduling.choice import choice_of
from gardenbus.scheduling.landscape import Snapshot
from gardenbus.scheduling.request import SchedulingRequest


class Vacancies:
    """Made once a look: asking what all seeds have left takes long, asking about one class then takes little."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._landscape = snapshot.landscape
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
        self._unlimited = index.bits_in(unlimited)
        self._open = index.bits_in(self._free)

    def places(self, request: SchedulingRequest) -> int | None:
        """The same as `placement.free_places`: None when a seed that fits has no limit."""
        index = self._landscape.index
        bits = 0
        for near in choice_of(request.demand, self._landscape).groups:
            bits |= near.bits
        bits &= self._unlimited | self._open
        if bits and request.ranges.stated:
            bits &= index.compatible(request.ranges)
        if bits & self._unlimited:
            return None
        return sum(self._free[slot] for slot in index.slots_in(bits))
