"""Pending shoots that another seed of a set would help: the scheduler's own decision, with one more seed."""

from typing import NamedTuple

from gardenbus.scheduling.assignment import decide
from gardenbus.scheduling.equivalence_classes import SchedulingRequest
from gardenbus.scheduling.free_capacity import FreeCapacity
from gardenbus.scheduling.results import Assignment
from gardenbus.scheduling.seed_candidates import SeedCandidate
from gardenbus.scheduling.snapshot import Snapshot
from gardenbus.scheduling.usage_index import UsageIndex


class PendingShoots(NamedTuple):
    """Unscheduled shoots: those that need a new seed of the set, and those that the scheduler will place elsewhere."""

    pending: int = 0
    being_scheduled: int = 0


class ScaleUpSimulation:
    """The landscape as it is, and with one seed more and every other seed full.

    Shoots that fit the landscape as it is are counted there, class after class, and need no new seed.
    """

    def __init__(self, current_snapshot: Snapshot, new_seed: SeedCandidate) -> None:
        landscape = current_snapshot.landscape.with_seed(new_seed)
        groups = current_snapshot.groups.copy()
        self._current = Snapshot(current_snapshot.landscape, UsageIndex(current_snapshot.usage), groups)
        full = UsageIndex((seed.name, seed.capacity or 0) for seed in landscape.seeds if seed.name != new_seed.name)
        self._with_new_seed = Snapshot(landscape, full, groups)
        self._new_seed = new_seed.name

    def fits(self, request: SchedulingRequest) -> bool:
        """True if a shoot would be placed on the new seed. Passes exceptions of a user's own filter on."""
        outcome = decide(request, self._with_new_seed)
        return isinstance(outcome, Assignment) and outcome.seed == self._new_seed

    def classify(self, request: SchedulingRequest, unscheduled: int) -> PendingShoots:
        """Split a number of unscheduled shoots into those that need the new seed and those that fit existing ones."""
        if unscheduled <= 0:
            return PendingShoots()
        placed = self._placed(request, unscheduled)
        return PendingShoots(unscheduled - placed if self.fits(request) else 0, placed)

    def _placed(self, request: SchedulingRequest, unscheduled: int) -> int:
        places = FreeCapacity(self._current).shoots(request)
        if places is None and not request.rules:
            return unscheduled
        most = unscheduled if places is None else min(places, unscheduled)
        for placed in range(most):
            outcome = decide(request, self._current)
            if not isinstance(outcome, Assignment):
                return placed
            self._current.assume(outcome.seed, request.requests)
            self._current.groups.assume(request.constraints.namespace, request.rules, outcome.seed)
        return most
