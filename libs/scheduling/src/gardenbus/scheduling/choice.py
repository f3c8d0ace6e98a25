"""Which seeds a class of shoots may choose from, nearest first: the shortlist in bits, for decisions that succeed.

It says the same as shortlist.py, which also says why the others are left out, and takes longer.
"""

from typing import NamedTuple

from gardenbus.common.resources.fitting import taint_problem
from gardenbus.scheduling.landscape import Landscape
from gardenbus.scheduling.outcome import Refusal
from gardenbus.scheduling.request import Demand
from gardenbus.scheduling.rules import FILTERS, TAINTS
from gardenbus.scheduling.rules.filtering import Inquiry
from gardenbus.scheduling.seed_index import MOST_REMEMBERED, SeedIndex
from gardenbus.scheduling.shortlist import inquiry_of, shortlist_of
from gardenbus.scheduling.strategies import measure_of


class Near(NamedTuple):
    """Seeds that are equally near: how many passed the filters, and those among them that nothing objects to."""

    distance: int | None
    eligible: int
    bits: int


class Choice(NamedTuple):
    """What stands at an epoch of the index; no groups when no seed fits."""

    epoch: int
    strategy: str
    groups: tuple[Near, ...]


def choice_of(demand: Demand, landscape: Landscape) -> Choice:
    """Work the choice out, or take it from the index's memory."""
    index = landscape.index
    known: Choice | None = index.choices.get(demand)
    if known is None or known.epoch != index.epoch:
        if len(index.choices) >= MOST_REMEMBERED:
            index.choices.clear()
        known = index.choices[demand] = (
            _of_shortlist(demand, landscape, index) if landscape.filters else _worked_out(demand, landscape, index)
        )
    return known


def _worked_out(demand: Demand, landscape: Landscape, index: SeedIndex) -> Choice:
    inquiry = inquiry_of(demand, landscape)
    bits = 0 if isinstance(inquiry, Refusal) else _passing(inquiry, index)
    if not bits or isinstance(inquiry, Refusal):
        return Choice(index.epoch, "", ())
    measure = measure_of(demand, landscape)
    ranks: dict[tuple[int, int], int] = {}
    for place, there in index.places.items():
        if here := there & bits:
            rank = measure.rank(*place)
            if not isinstance(rank, str):
                ranks[rank] = ranks.get(rank, 0) | here
    tolerations = inquiry.tolerations
    tolerated = index.those((TAINTS, tolerations), lambda seed: not taint_problem(tolerations, seed.seed.spec.taints))
    groups = [
        Near(rank[1] if measure.has_distances else None, ranks[rank].bit_count(), ranks[rank] & tolerated)
        for rank in sorted(ranks)
    ]
    return Choice(index.epoch, measure.strategy, tuple(near for near in groups if near.bits))


def _passing(inquiry: Inquiry, index: SeedIndex) -> int:
    bits = index.present
    for rule in FILTERS:
        bits = rule.narrow(inquiry, index, bits)
        if not bits:
            return 0
    return bits


def _of_shortlist(demand: Demand, landscape: Landscape, index: SeedIndex) -> Choice:
    """Users' own filters are only asked for seeds that have passed ours, so that a class's answers are its own."""
    shortlist = shortlist_of(demand, landscape)
    if shortlist.order is None:
        return Choice(index.epoch, "", ())
    groups = [
        Near(
            group.distance,
            len(group.seeds),
            index.bits_of(seed for seed in group.seeds if seed.name not in shortlist.objections),
        )
        for group in shortlist.order.groups
    ]
    return Choice(index.epoch, shortlist.order.strategy, tuple(near for near in groups if near.bits))
