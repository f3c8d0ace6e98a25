"""Sets of seeds in the order of their usage, the first by name among equals, kept while usage goes up and down.

Each set that a class of shoots may choose from has a heap, shared by all classes with the same set. An entry is
believed only when it comes first: if its seed's usage has risen it sinks, if its seed is full or gone it goes. What
could make it come *earlier* than it stands (a fall in usage, a change of the seed) is read from `Tally.fallen` and
`SeedIndex.changed`, and entered anew.
"""

from heapq import heapify, heappop, heappush, heapreplace
from typing import NamedTuple

from gardenbus.common.resources.shoot_networks import Ranges, network_problems
from gardenbus.scheduling.landscape import SeedCandidate
from gardenbus.scheduling.seed_index import SeedIndex
from gardenbus.scheduling.tally import Tally

MOST_ENTRIES = 500_000
"""Entries of all heaps together, about 100 bytes each; above it all are worked out again as they are needed."""

MOST_ASIDE = 8
"""Seeds whose networks clash that are put aside for one shoot, before the set of those that do not is made."""

ALIKE = 4
"""A set that differs from another in so few seeds takes over that one's heap."""


_Entry = tuple[int, str, int]
"""Usage, name, slot."""


class Order:
    """The heap of one set of seeds: (usage, name, slot)."""

    __slots__ = ("bits", "changed", "fallen", "heap", "size")

    def __init__(self, bits: int, heap: list[_Entry], tally: Tally, index: SeedIndex) -> None:
        self.bits = bits
        self.heap = heap
        self.size = len(heap)
        self.fallen = len(tally.fallen)
        self.changed = len(index.changed)


class Winner(NamedTuple):
    """The seed with the fewest shoots, and the one that would be next (None: no other, or too many clash)."""

    seed: SeedCandidate
    next: SeedCandidate | None


def least_used(bits: int, ranges: Ranges, tally: Tally, index: SeedIndex) -> Winner | None:
    """The seed of a set with the fewest shoots that has room and whose networks do not clash; None when none has."""
    heap = _order_of(bits, tally, index).heap
    aside: list[_Entry] = []
    chosen = _first(heap, bits, ranges, tally, index, aside)
    if chosen is None and len(aside) == MOST_ASIDE:
        for entry in aside:
            heappush(heap, entry)
        rest = bits & index.compatible(ranges)
        return least_used(rest, Ranges(stated=False), tally, index) if rest else None
    following = _next(heap, bits, ranges, tally, index, aside) if chosen is not None else None
    for entry in aside:
        heappush(heap, entry)
    return Winner(chosen, following) if chosen is not None else None


def _first(
    heap: list[_Entry], bits: int, ranges: Ranges, tally: Tally, index: SeedIndex, aside: list[_Entry]
) -> SeedCandidate | None:
    """Bring the heap's first seed that will do to its top; what clashes goes aside, at most `MOST_ASIDE` in all."""
    seeds, usage_of = index.seeds, tally.get
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
            if len(aside) >= MOST_ASIDE:
                break
        else:
            return seed
    return None


def _next(
    heap: list[_Entry], bits: int, ranges: Ranges, tally: Tally, index: SeedIndex, aside: list[_Entry]
) -> SeedCandidate | None:
    """The seed that comes after the heap's first: mostly one look at its children is enough."""
    if len(heap) == 1 or len(aside) >= MOST_ASIDE:
        return None
    chosen = heap[0]
    entry = heap[1] if len(heap) == 2 or heap[1] < heap[2] else heap[2]  # noqa: PLR2004  a heap's children
    used, name, slot = entry
    seed = index.seeds[slot]
    if (
        seed is not None
        and bits >> slot & 1
        and tally.get(name, 0) == used
        and slot != chosen[2]
        and (seed.capacity is None or used < seed.capacity)
        and not (ranges.stated and network_problems(ranges, seed.seed.spec.networks))
    ):
        return seed
    heappop(heap)
    while (following := _first(heap, bits, ranges, tally, index, aside)) is not None and heap[0] == chosen:
        heappop(heap)  # it stood there twice
    heappush(heap, chosen)
    return following


def _order_of(bits: int, tally: Tally, index: SeedIndex) -> Order:
    if tally.orders_of is not index:
        tally.orders_of = index
        tally.orders.clear()
    order = tally.orders.get(bits)
    if order is None:
        order = tally.orders[bits] = _made(bits, tally, index)
    if order.fallen < len(tally.fallen) or order.changed < len(index.changed):
        _catch_up(order, tally, index)
    return order


def _made(bits: int, tally: Tally, index: SeedIndex) -> Order:
    orders: dict[int, Order] = tally.orders
    alike = next((order for order in orders.values() if (order.bits ^ bits).bit_count() <= ALIKE), None)
    if sum(order.size for order in orders.values()) > MOST_ENTRIES:
        orders.clear()
    if alike is None:
        entries = [_entry(slot, tally, index) for slot in index.slots_in(bits)]
        heapify(entries)
        return Order(bits, entries, tally, index)
    order = Order(bits, alike.heap.copy(), tally, index)
    order.fallen, order.changed = alike.fallen, alike.changed
    for slot in index.slots_in(bits & ~alike.bits):
        heappush(order.heap, _entry(slot, tally, index))
    return order


def _catch_up(order: Order, tally: Tally, index: SeedIndex) -> None:
    for name in tally.fallen[order.fallen :]:
        slot = index.slots.get(name)
        if slot is not None and order.bits >> slot & 1:
            heappush(order.heap, _entry(slot, tally, index))
    for slot in index.changed[order.changed :]:
        if order.bits >> slot & 1:
            heappush(order.heap, _entry(slot, tally, index))
    order.fallen, order.changed = len(tally.fallen), len(index.changed)
    if len(order.heap) > 2 * order.size + 64:  # every fall has left an entry behind
        order.heap[:] = [_entry(slot, tally, index) for slot in index.slots_in(order.bits)]
        heapify(order.heap)


def _entry(slot: int, tally: Tally, index: SeedIndex) -> _Entry:
    seed = index.seeds[slot]
    assert seed is not None, "a set holds seeds that are there"
    return tally.get(seed.name, 0), seed.name, slot
