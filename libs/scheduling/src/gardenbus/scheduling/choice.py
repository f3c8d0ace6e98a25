"""Which seeds a class of shoots may choose from, nearest first: the shortlist in bits, for decisions that succeed.

It says the same as shortlist.py, which also says why the others are left out, and takes longer.
"""

from collections import Counter
from typing import NamedTuple

from gardenbus.common.resources.fitting import taint_problem
from gardenbus.scheduling.landscape import Landscape
from gardenbus.scheduling.outcome import Grounds, Refusal, Step
from gardenbus.scheduling.request import Demand
from gardenbus.scheduling.rules import FILTERS, STRATEGY, TAINTS
from gardenbus.scheduling.rules.filtering import Inquiry
from gardenbus.scheduling.seed_index import MOST_REMEMBERED, SeedIndex
from gardenbus.scheduling.shortlist import Shortlist, inquiry_of, shortlist_of
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
    grounds: Grounds = Grounds()


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
    funnel = _Funnel(index.present.bit_count())
    bits = 0 if isinstance(inquiry, Refusal) else _passing(inquiry, index, funnel)
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
    funnel.narrowed(TAINTS, (bits & tolerated).bit_count())
    funnel.narrowed(STRATEGY, sum(near.bits.bit_count() for near in groups))
    return Choice(index.epoch, measure.strategy, tuple(near for near in groups if near.bits), funnel.grounds)


def _passing(inquiry: Inquiry, index: SeedIndex, funnel: "_Funnel") -> int:
    bits = index.present
    for rule in FILTERS:
        bits = rule.narrow(inquiry, index, bits)
        if not bits:
            return 0
        funnel.narrowed(rule.name, bits.bit_count())
    return bits


class _Funnel:
    """Counts seeds down, rule by rule."""

    def __init__(self, considered: int) -> None:
        self._considered = self._left = considered
        self._steps: list[Step] = []

    def narrowed(self, rule: str, left: int) -> None:
        if left < self._left:
            self._steps.append(Step(rule, self._left - left, left))
            self._left = left

    @property
    def grounds(self) -> Grounds:
        rejections = {step.rule: step.rejected for step in self._steps}
        return Grounds(self._considered, tuple(self._steps), self._left, rejections)


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
    kept = tuple(near for near in groups if near.bits)
    return Choice(index.epoch, shortlist.order.strategy, kept, grounds_of(shortlist, landscape))


def grounds_of(shortlist: Shortlist, landscape: Landscape) -> Grounds:
    """The grounds of a shortlist that has an order; the same as a choice gives."""
    counts = Counter(rejection.rule for rejection in shortlist.rejections)
    counts.update(objection.rule for objection in shortlist.objections.values())
    if shortlist.order is not None:
        counts[STRATEGY] += len(shortlist.order.left_out.keys() - shortlist.objections.keys())
    funnel = _Funnel(len(landscape.seeds))
    left = len(landscape.seeds)
    order = [*(rule.name for rule in FILTERS), TAINTS, *(each.name for each in landscape.filters), STRATEGY]
    for rule in order:
        left -= counts[rule]
        funnel.narrowed(rule, left)
    return funnel.grounds
