"""The decision: the seed that a shoot is assigned to, or the reasons why it is unschedulable."""

from gardenbus.common.api.garden.shoot_groups import NO_GROUP_RULES
from gardenbus.scheduling.diagnosis import unschedulable
from gardenbus.scheduling.equivalence_classes import SchedulingRequest
from gardenbus.scheduling.feasible_seeds import DistanceGroup, FeasibleSeeds, feasible_seeds_of
from gardenbus.scheduling.group_checks import allowed_seeds
from gardenbus.scheduling.group_scores import cells_with, group_scores_of
from gardenbus.scheduling.results import Assignment, RunnerUp, SchedulingResult
from gardenbus.scheduling.scores.seed_scores import scores_of
from gardenbus.scheduling.scores.usage_heaps import least_used
from gardenbus.scheduling.scores.usage_levels import best_seed
from gardenbus.scheduling.snapshot import Snapshot


def decide(request: SchedulingRequest, snapshot: Snapshot) -> SchedulingResult:
    """Choose among the nearest seeds that fit: by the sum of scores, or without scores the one with the fewest shoots.

    The first by name among equals. The fewest shoots are found by heaps, or by levels for shoots that request
    resources, or that rules between shoots concern. Pure: the same request and snapshot always give the same result. It
    does not count the assignment; the caller does, with `Snapshot.assume`. An exception of a user's own filter is
    passed on.
    """
    is_plain = not request.requests and request.rules is NO_GROUP_RULES and not snapshot.landscape.scores
    choose = _assign if is_plain else _assign_by_levels
    return choose(request, snapshot) or unschedulable(request, snapshot)


def _assign(request: SchedulingRequest, snapshot: Snapshot) -> Assignment | None:
    landscape, usage = snapshot.landscape, snapshot.usage
    found = feasible_seeds_of(request.constraints, landscape)
    nearer = 0
    for group in found.groups:
        if not group.feasible:
            continue
        least = least_used(group.feasible, request.ranges, usage, landscape.index)
        if least is not None:
            seed, following = least
            return Assignment(
                seed=seed.name,
                scheduling_generation=seed.scheduling_generation,
                strategy=found.strategy,
                distance=group.distance,
                usage=usage.get(seed.name, 0),
                considered=len(landscape.seeds),
                eligible=group.candidate_count,
                capacity=seed.capacity,
                nearer=nearer,
                runner_up=RunnerUp(following.name, usage.get(following.name, 0)) if following is not None else None,
                summary=found.summary,
            )
        nearer += group.feasible.bit_count()
    return None


def _assign_by_levels(request: SchedulingRequest, snapshot: Snapshot) -> Assignment | None:
    found = feasible_seeds_of(request.constraints, snapshot.landscape)
    allowed = allowed_seeds(request, snapshot, found.feasible)
    preferred = group_scores_of(request, snapshot)
    if preferred:
        found = found._replace(scores={**found.scores, **preferred})
    nearer = 0
    for each in found.groups:
        group = each if request.rules is NO_GROUP_RULES else each._replace(feasible=each.feasible & allowed)
        if preferred:
            group = group._replace(cells=cells_with(preferred, found.scores, snapshot.landscape, group.feasible))
        if group.feasible:
            best = _best_of(group, found, request, snapshot, nearer)
            if best is not None:
                return best
            nearer += group.feasible.bit_count()
    return None


def _best_of(
    group: DistanceGroup, found: FeasibleSeeds, request: SchedulingRequest, snapshot: Snapshot, nearer: int
) -> Assignment | None:
    landscape, usage = snapshot.landscape, snapshot.usage
    cells = group.cells or ((0, group.feasible),)
    best = best_seed(cells, group.feasible, request, scores=landscape.scores, usage=usage, index=landscape.index)
    if best is None:
        return None
    seed, following = best.seed, best.next
    total = best.next_total if landscape.scores else None
    return Assignment(
        seed=seed.name,
        scheduling_generation=seed.scheduling_generation,
        strategy=found.strategy,
        distance=group.distance,
        usage=usage.get(seed.name, 0),
        considered=len(landscape.seeds),
        eligible=group.candidate_count,
        capacity=seed.capacity,
        nearer=nearer,
        runner_up=RunnerUp(following.name, usage.get(following.name, 0), total) if following is not None else None,
        summary=found.summary,
        scores=scores_of(landscape.scores, found.scores, seed, usage, request.requests),
    )
