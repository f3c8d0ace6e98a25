"""Diagnosis of a shoot that no seed fits: the same filters as a decision, with their reasons."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from gardenbus.scheduling.equivalence_classes import Constraints, SchedulingRequest
from gardenbus.scheduling.feasible_seeds import narrowed
from gardenbus.scheduling.filters.context import FilterContext, filter_context_of
from gardenbus.scheduling.filters.row import Filter
from gardenbus.scheduling.filters.strategy import STRATEGY
from gardenbus.scheduling.filters.table import FILTERS, checks_with
from gardenbus.scheduling.group_checks import group_checks_of
from gardenbus.scheduling.plugin_replies import ClassReplies
from gardenbus.scheduling.result_cache import ResultCache
from gardenbus.scheduling.results import RejectedSeeds, SeedRejection, Unschedulable, format_rejections, grouped
from gardenbus.scheduling.seed_candidates import SeedCandidate
from gardenbus.scheduling.snapshot import Landscape, Snapshot


class Diagnosis(msgspec.Struct, frozen=True, eq=False):
    """The rejections that all shoots of a class share.

    `unschedulable` is set when a filter left no seed, or an object is missing (then `context` is None too). Otherwise
    `candidates` passed all filters, and `rejected` holds those of them that a check rejects for every shoot of the
    class.
    """

    context: FilterContext | None = None
    unschedulable: Unschedulable | None = None
    rejections: tuple[RejectedSeeds, ...] = ()
    candidates: Sequence[SeedCandidate] = ()
    rejected: Mapping[str, SeedRejection] = msgspec.field(default_factory=dict[str, SeedRejection])


_CACHE = ResultCache[tuple[Constraints, ClassReplies], Diagnosis]()


def diagnosis_of(constraints: Constraints, landscape: Landscape) -> Diagnosis:
    """The diagnosis of a class, kept with the landscape."""
    key = (constraints, landscape.replies_of(constraints))
    results = _CACHE.of(landscape.caches, landscape.index)
    return results.get(key) or _CACHE.keep(results, key, _diagnose(constraints, landscape))


def rejections_of(request: SchedulingRequest, snapshot: Snapshot) -> Mapping[str, SeedRejection]:
    """For each candidate that a check or the strategy rejects for one shoot: the first rejection, checks first."""
    diagnosis = diagnosis_of(request.constraints, snapshot.landscape)
    if diagnosis.context is None:
        return {}
    context = diagnosis.context.with_request(request, snapshot, group_checks_of(request, snapshot))
    checks = (*checks_with(snapshot.landscape), STRATEGY)
    found = (_first_rejection(seed, checks, context, diagnosis) for seed in diagnosis.candidates)
    return {rejection.seed: rejection for rejection in found if rejection is not None}


def unschedulable(request: SchedulingRequest, snapshot: Snapshot) -> Unschedulable:
    """The result for a shoot that no seed fits."""
    diagnosis = diagnosis_of(request.constraints, snapshot.landscape)
    if diagnosis.unschedulable is not None or diagnosis.context is None:
        assert diagnosis.unschedulable is not None, "a context is only missing along with an object"
        return diagnosis.unschedulable
    rejections = tuple(rejections_of(request, snapshot).values())
    against = tuple(each for each in rejections if each.rule != STRATEGY.name)
    rejected = _counted(diagnosis.rejections) + Counter(each.rule for each in rejections)
    if len(against) < len(diagnosis.candidates):
        return Unschedulable(STRATEGY.name, diagnosis.context.ranking.none_left, rejected)
    rules = {rejection.rule for rejection in against}
    rule = rules.pop() if len(rules) == 1 else "candidates"
    return Unschedulable(rule, f"0/{len(against)} seeds are eligible: {format_rejections(against)}", rejected)


def _diagnose(constraints: Constraints, landscape: Landscape) -> Diagnosis:
    context = filter_context_of(constraints, landscape)
    if isinstance(context, Unschedulable):
        return Diagnosis(unschedulable=context)
    index = landscape.index
    candidates, rejections = index.present, list[RejectedSeeds]()
    for row, before, candidates in narrowed(FILTERS, context, index, index.present):
        rejections += _rejected_by(row, context, index.seeds_in(before & ~candidates))
        if not candidates:
            message = row.none_left(context, before.bit_count())
            if row.state is not None:
                message = f"{message}: {_by_state(row.state, rejections)}"
            return Diagnosis(
                context, Unschedulable(row.name, message, _counted(rejections)), rejections=tuple(rejections)
            )
    rejected = {
        rejection.seed: rejection
        for row, before, after in narrowed(checks_with(landscape), context, index, candidates)
        for seeds in _rejected_by(row, context, index.seeds_in(before & ~after))
        for rejection in seeds.rejections
    }
    return Diagnosis(context, None, tuple(rejections), index.seeds_in(candidates), rejected)


def _rejected_by(row: Filter, context: FilterContext, seeds: Sequence[SeedCandidate]) -> list[RejectedSeeds]:
    return grouped(row.name, ((seed.name, row.reason(context, seed)) for seed in seeds))


def _by_state(state: Callable[[str], str], rejections: Iterable[RejectedSeeds]) -> str:
    """`12 not ready, 1 cordoned`: seeds by the words for the reasons of their rejection."""
    counts: Counter[str] = Counter()
    for each in rejections:
        counts[state(each.detail)] += len(each.seeds)
    return ", ".join(
        f"{seeds} {word}" for word, seeds in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    )


def _counted(rejections: Iterable[RejectedSeeds]) -> Counter[str]:
    """Seeds by the filter that rejected them."""
    counts: Counter[str] = Counter()
    for each in rejections:
        counts[each.rule] += len(each.seeds)
    return counts


def _first_rejection(
    seed: SeedCandidate, checks: Sequence[Filter], context: FilterContext, diagnosis: Diagnosis
) -> SeedRejection | None:
    shared = diagnosis.rejected.get(seed.name)
    for check in checks:
        if check.narrow is not None:
            if shared is not None and shared.rule == check.name:
                return shared
        elif detail := check.reason(context, seed):
            return SeedRejection(seed.name, check.name, detail)
    return None
