"""The seeds that a class of shoots may choose from, nearest first: all filters that its shoots share, in bits.

Networks and room, which differ between the shoots of a class, are left to the choice among them.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from gardenbus.common.api.bitsets import Bitset
from gardenbus.scheduling.equivalence_classes import Constraints
from gardenbus.scheduling.filters.context import FilterContext, filter_context_of
from gardenbus.scheduling.filters.row import Filter
from gardenbus.scheduling.filters.strategy import STRATEGY
from gardenbus.scheduling.filters.table import FILTERS, checks_with
from gardenbus.scheduling.plugin_replies import NO_REPLIES, ClassReplies
from gardenbus.scheduling.result_cache import ResultCache
from gardenbus.scheduling.results import FilterSummary, FunnelStep, Unschedulable
from gardenbus.scheduling.scores.class_scores import Cells, ClassScore, cells_of, class_scores
from gardenbus.scheduling.seed_index import SeedIndex
from gardenbus.scheduling.snapshot import Landscape


class DistanceGroup(NamedTuple):
    """Seeds that are equally near. `candidates` passed all filters, `feasible` those of them that pass all checks.

    `cells` are the feasible ones by the sum of the scores that do not depend on usage; none without scores.
    """

    distance: int | None
    candidates: Bitset
    feasible: Bitset
    candidate_count: int
    cells: Cells = ()


class FeasibleSeeds(NamedTuple):
    """The seeds of a class, nearest first; no groups when no seed is feasible.

    `scores` are those of the profile that do not depend on usage, by name.
    """

    strategy: str = ""
    groups: tuple[DistanceGroup, ...] = ()
    summary: FilterSummary = FilterSummary()
    scores: Mapping[str, ClassScore] = MappingProxyType({})
    replies: ClassReplies = NO_REPLIES

    @property
    def feasible(self) -> Bitset:
        """The feasible seeds of all groups."""
        bits = 0
        for group in self.groups:
            bits |= group.feasible
        return bits


_CACHE = ResultCache[Constraints, FeasibleSeeds]()


class Narrowing(NamedTuple):
    """The seeds before and after one filter."""

    filter: Filter
    before: Bitset
    after: Bitset


def feasible_seeds_of(constraints: Constraints, landscape: Landscape) -> FeasibleSeeds:
    """The feasible seeds of a class, kept with the landscape until another reply of a plug-in comes."""
    index = landscape.index
    results = _CACHE.of(landscape.caches, index)
    found = results.get(constraints)
    replies = NO_REPLIES if landscape.replies is None else landscape.replies_of(constraints)
    if found is None or found.replies is not replies:
        found = _CACHE.keep(results, constraints, _find(constraints, landscape, index)._replace(replies=replies))
    return found


def narrowed(filters: Sequence[Filter], context: FilterContext, index: SeedIndex, bits: Bitset) -> Iterator[Narrowing]:
    """Apply filters one after another, until none of the seeds is left."""
    for each in filters:
        if each.narrow is None:
            continue
        left = each.narrow(context, index, bits)
        yield Narrowing(each, bits, left)
        if not left:
            return
        bits = left


def _find(constraints: Constraints, landscape: Landscape, index: SeedIndex) -> FeasibleSeeds:
    context = filter_context_of(constraints, landscape)
    if isinstance(context, Unschedulable):
        return FeasibleSeeds()
    steps = list(narrowed(FILTERS, context, index, index.present))
    candidates = feasible = steps[-1].after
    if not candidates:
        return FeasibleSeeds()
    checks = list(narrowed(checks_with(landscape), context, index, candidates))
    feasible = checks[-1].after if checks else candidates
    groups = tuple(
        DistanceGroup(distance, seeds, seeds & feasible, seeds.bit_count())
        for distance, seeds in context.ranking.groups(index, candidates)
    )
    ranked = sum(group.feasible.bit_count() for group in groups)
    if not ranked:
        return FeasibleSeeds()
    counts = [(each.filter.name, each.before.bit_count(), each.after.bit_count()) for each in (*steps, *checks)]
    counts.append((STRATEGY.name, feasible.bit_count(), ranked))
    found = FeasibleSeeds(context.ranking.strategy, groups, _summary(counts))
    return _scored(found, constraints, landscape) if landscape.scores else found


def _scored(found: FeasibleSeeds, constraints: Constraints, landscape: Landscape) -> FeasibleSeeds:
    scores, index = class_scores(constraints, landscape), landscape.index
    cells = (cells_of(landscape.scores.static, scores, index, group.feasible) for group in found.groups)
    groups = tuple(group._replace(cells=each) for group, each in zip(found.groups, cells, strict=True))
    return found._replace(groups=groups, scores=scores)


def _summary(counts: Sequence[tuple[str, int, int]]) -> FilterSummary:
    steps = tuple(FunnelStep(rule, before - after, after) for rule, before, after in counts if after < before)
    return FilterSummary(counts[0][1], steps, counts[-1][2], {step.rule: step.rejected for step in steps})
