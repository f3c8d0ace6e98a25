"""The decision: the seed that a shoot is assigned to, or the reasons why it is unschedulable."""

from gardenbus.scheduling.diagnosis import unschedulable
from gardenbus.scheduling.equivalence_classes import SchedulingRequest
from gardenbus.scheduling.feasible_seeds import feasible_seeds_of
from gardenbus.scheduling.results import Assignment, RunnerUp, SchedulingResult
from gardenbus.scheduling.scores.usage_heaps import least_used
from gardenbus.scheduling.snapshot import Snapshot


def decide(request: SchedulingRequest, snapshot: Snapshot) -> SchedulingResult:
    """Choose the least used of the nearest seeds that fit, the first by name among equals.

    Pure: the same request and snapshot always give the same result. It does not count the assignment; the caller does,
    with `Snapshot.assume`. An exception of a user's own filter is passed on.
    """
    return _assign(request, snapshot) or unschedulable(request, snapshot)


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
