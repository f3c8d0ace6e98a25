"""Sets of seeds in the order of their usage, the first by name among equals, kept while usage goes up and down.

Each set that a class of shoots may choose from has a heap, shared by all classes with the same set. An entry is
believed only when it comes first: if its seed's usage has risen it sinks, if its seed is full or gone it goes. What
could make it come *earlier* than it stands (a fall in usage, a change of the seed) is read from `Tally.fallen` and
`SeedIndex.changed`, and entered anew.
"""

from heapq import heapify, heappop, heappush, heapreplace

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


class Order:
    """The heap of one set of seeds: (usage, name, slot)."""

    __slots__ = ("bits", "changed", "fallen", "heap", "size")

    def __init__(self, bits: int, heap: list[tuple[int, str, int]], tally: Tally, index: SeedIndex) -> None:
        self.bits = bits
        self.heap = heap
        self.size = len(heap)
        self.fallen = len(tally.fallen)
        self.changed = len(index.changed)


def least_used(bits: int, ranges: Ranges, tally: Tally, index: SeedIndex) -> SeedCandidate | None:
    """The seed of a set with the fewest shoots that has room and whose networks do not clash; None when none has."""
    heap, seeds, usage_of = _order_of(bits, tally, index).heap, index.seeds, tally.get
    aside: list[tuple[int, str, int]] = []
    chosen: SeedCandidate | None = None
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
            if len(aside) == MOST_ASIDE:
                break
        else:
            chosen = seed
            break
    for entry in aside:
        heappush(heap, entry)
    if len(aside) < MOST_ASIDE:
        return chosen
    rest = bits & index.compatible(ranges)
    return least_used(rest, Ranges(stated=False), tally, index) if rest else None


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


def _entry(slot: int, tally: Tally, index: SeedIndex) -> tuple[int, str, int]:
    seed = index.seeds[slot]
    assert seed is not None, "a set holds seeds that are there"
    return tally.get(seed.name, 0), seed.name, slot
