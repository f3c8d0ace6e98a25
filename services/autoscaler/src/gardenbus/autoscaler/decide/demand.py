"""Who waits for a seed that this set could bring: the scheduler's own decision, with one more seed in the landscape."""

from typing import NamedTuple

from gardenbus.scheduling.landscape import SeedCandidate, Snapshot
from gardenbus.scheduling.outcome import Placement
from gardenbus.scheduling.placement import decide, free_places
from gardenbus.scheduling.request import SchedulingRequest


class Waiting(NamedTuple):
    """Shoots without a seed: how many need a new seed of the set, and how many are about to be placed elsewhere."""

    pending: int = 0
    coming: int = 0


class Prospect:
    """A landscape as it stands, and as it were if the set had one seed more and every other seed were full.

    Shoots that find room in what stands are counted there, class after class, and are nobody's demand.
    """

    def __init__(self, standing: Snapshot, new_seed: SeedCandidate) -> None:
        landscape = standing.landscape.with_seed(new_seed)
        self._standing = Snapshot(standing.landscape, dict(standing.usage))
        full = {seed.name: seed.capacity or 0 for seed in landscape.seeds if seed.name != new_seed.name}
        self._with_new_seed = Snapshot(landscape, full)
        self._new_seed = new_seed.name

    def fits(self, request: SchedulingRequest) -> bool:
        """Whether a shoot would be placed on the new seed. An exception of a user's own filter is passed on."""
        outcome = decide(request, self._with_new_seed)
        return isinstance(outcome, Placement) and outcome.seed == self._new_seed

    def sort(self, request: SchedulingRequest, waiting: int) -> Waiting:
        """Which of some waiting shoots find room on a seed that stands, and which need the new one."""
        if waiting <= 0:
            return Waiting()
        placed = self._placed(request, waiting)
        return Waiting(waiting - placed if self.fits(request) else 0, placed)

    def _placed(self, request: SchedulingRequest, waiting: int) -> int:
        places = free_places(request, self._standing)
        if places is None:
            return waiting
        for placed in range(min(places, waiting)):
            outcome = decide(request, self._standing)
            if not isinstance(outcome, Placement):
                return placed
            self._standing.place(outcome.seed)
        return min(places, waiting)
