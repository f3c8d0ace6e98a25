"""A decision with every seed's part in it: its place in the ranking, or the first filter that rejects it."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from gardenbus.scheduling.assignment import decide
from gardenbus.scheduling.diagnosis import diagnosis_of, rejections_of
from gardenbus.scheduling.equivalence_classes import SchedulingRequest
from gardenbus.scheduling.feasible_seeds import feasible_seeds_of
from gardenbus.scheduling.filters.strategy import STRATEGY
from gardenbus.scheduling.filters.table import FILTERS, checks_with
from gardenbus.scheduling.group_scores import group_scores_of
from gardenbus.scheduling.results import Explanation, FunnelStep, RankedSeed, SeedRejection
from gardenbus.scheduling.scores.class_scores import class_scores
from gardenbus.scheduling.scores.seed_scores import scores_of
from gardenbus.scheduling.snapshot import Landscape, Snapshot


def explain(request: SchedulingRequest, snapshot: Snapshot) -> Explanation:
    """Decide, and account for every seed."""
    landscape = snapshot.landscape
    result = decide(request, snapshot)
    diagnosis = diagnosis_of(request.constraints, landscape)
    rejections = [rejection for seeds in diagnosis.rejections for rejection in seeds.rejections]
    ranking: tuple[RankedSeed, ...] = ()
    strategy = landscape.strategy
    if diagnosis.unschedulable is not None or diagnosis.context is None:
        assert diagnosis.unschedulable is not None, "a context is only missing along with an object"
        reason, rejected = diagnosis.unschedulable, {each.seed for each in rejections}
        rejections += [
            SeedRejection(seed.name, reason.rule, reason.message)
            for seed in landscape.seeds
            if seed.name not in rejected
        ]
    else:
        against = rejections_of(request, snapshot)
        rejections += against.values()
        ranking = tuple(_ranking(request, snapshot, against))
        strategy = diagnosis.context.ranking.strategy
    scores = {**class_scores(request.constraints, landscape), **group_scores_of(request, snapshot)}
    return Explanation(
        result,
        strategy,
        tuple(_funnel(rejections, landscape)),
        ranking,
        tuple(sorted(rejections, key=lambda each: each.seed)),
        tuple(name for name, score in scores.items() if not score.is_requested),
    )


def _ranking(
    request: SchedulingRequest, snapshot: Snapshot, against: Mapping[str, SeedRejection]
) -> Iterator[RankedSeed]:
    landscape, usage, place = snapshot.landscape, snapshot.usage, 0
    found = feasible_seeds_of(request.constraints, landscape)
    scores = {**found.scores, **group_scores_of(request, snapshot)}
    for group in found.groups:
        ranked = [
            RankedSeed(
                seed.name,
                place,
                group.distance,
                usage.get(seed.name, 0),
                seed.capacity,
                scores_of(landscape.scores, scores, seed, usage, request.requests),
            )
            for seed in landscape.index.seeds_in(group.candidates)
            if seed.name not in against
        ]
        by_scores = bool(landscape.scores)
        for each in sorted(ranked, key=lambda each: (-each.total if by_scores else each.usage, each.seed)):
            place += 1
            yield msgspec.structs.replace(each, place=place)


def _funnel(rejections: Sequence[SeedRejection], landscape: Landscape) -> Iterator[FunnelStep]:
    """Count the seeds down, filter by filter; a rule that is not in the table (no profile, no Project) is first."""
    order = [each.name for each in (*FILTERS, *checks_with(landscape), STRATEGY)]
    counts = Counter(rejection.rule for rejection in rejections)
    left = len(landscape.seeds)
    for rule in sorted(counts, key=lambda rule: order.index(rule) if rule in order else -1):
        left -= counts[rule]
        yield FunnelStep(rule, counts[rule], left)
