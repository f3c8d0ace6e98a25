"""Improvements: moves of shoots of profiles with scores, to seeds where the sum of their scores is clearly higher.

The greatest goes first, and the sums are taken anew after each move, as each counts for the next. A shoot moves
once in a plan, and again only some time after its last move (`MOVED_AT`): scores differ by class, so that moves could
follow one another without end.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.moves import Move
from gardenbus.common.api.garden.scheduling_profiles import SchedulingProfile
from gardenbus.common.api.garden.shoots import DEFAULT_SCHEDULER, Shoot
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import InvalidResource
from gardenbus.common.ports.clock import parse_timestamp
from gardenbus.scheduling.assignment import decide
from gardenbus.scheduling.descheduling.relocation import Alternatives, AlternativesCache, HostedSeeds, immovable_reason
from gardenbus.scheduling.equivalence_classes import SchedulingRequest
from gardenbus.scheduling.feasible_seeds import feasible_seeds_of
from gardenbus.scheduling.group_scores import group_scores_of
from gardenbus.scheduling.results import Assignment
from gardenbus.scheduling.scores.seed_scores import scores_of
from gardenbus.scheduling.snapshot import Landscape, Snapshot
from gardenbus.scheduling.usage_index import UsageIndex

LEAST_POINTS = 10
COOLDOWN = timedelta(hours=24)

PROTECT_FROM_REBALANCING = "scheduling.gardener.cloud/protect-from-rebalancing"
"""Ours, on a Shoot: exactly "true" keeps it where it is when seeds are rebalanced. Draining moves it all the same."""

MOVED_AT = "scheduling.gardenbus.io/rebalanced-at"
"""On a Shoot: the instant (RFC 3339) at which it was moved for an improvement."""


class ImprovementLimits(NamedTuple):
    """Least points of a move, of a shoot that was not moved for an improvement within `cooldown` before `now`."""

    points: int = LEAST_POINTS
    cooldown: timedelta = COOLDOWN
    now: datetime | None = None


DEFAULT_LIMITS = ImprovementLimits()


class Improvement(msgspec.Struct, frozen=True):
    """A move, and the sums of scores where the shoot is and where it goes, as they are when it is its turn."""

    move: Move
    before: int
    after: int

    @property
    def points(self) -> int:
        """The points by which the sum rises."""
        return self.after - self.before


def landscapes_of(landscape: Landscape, profiles: Iterable[SchedulingProfile]) -> Mapping[str, Landscape]:
    """The landscape by scheduler; that of the default one has no scores unless a profile says so."""
    return {DEFAULT_SCHEDULER: landscape, **{each.scheduler_name: landscape.with_profile(each) for each in profiles}}


def plan_improvements(
    shoots: Sequence[Document],
    working: Snapshot,
    *,
    landscapes: Mapping[str, Landscape],
    forbidden: HostedSeeds,
    limits: ImprovementLimits = DEFAULT_LIMITS,
    most: int | None = None,
) -> Sequence[Improvement]:
    """Plan moves of shoots whose profile has scores, each within the `limits`; they are counted in `working`.

    A shoot moves to the seed that its scheduler would choose now, no farther away than its own, by all filters and
    rules. Shoots that host seeds, or that are protected, stay.
    """
    scored = {name: each for name, each in landscapes.items() if each.scores}
    planner = _ImprovementPlanner(working, scored)
    waiting = [each for document in shoots if (each := planner.candidate(document, forbidden, limits)) is not None]
    waiting.sort(key=lambda each: each.key)
    found: list[Improvement] = []
    while waiting and (most is None or len(found) < most):
        best = planner.best(waiting)
        if best is None or best[1].points < limits.points:
            break
        candidate, chosen = best
        planner.move(candidate, chosen.move.target)
        waiting.remove(candidate)
        found.append(chosen)
    return found


class _Candidate(msgspec.Struct, frozen=True, eq=False):
    """A shoot that may move: its request, its seed, and the landscape of its choice, its own seed among the others."""

    key: ObjectKey
    home: str
    request: SchedulingRequest
    landscape: Landscape


class _ImprovementPlanner:
    def __init__(self, working: Snapshot, landscapes: Mapping[str, Landscape]) -> None:
        self._usage: UsageIndex = working.usage
        self._groups = working.groups
        self._landscapes = landscapes
        self._alternatives = {name: AlternativesCache(each) for name, each in landscapes.items()}

    def candidate(self, document: Document, forbidden: HostedSeeds, limits: ImprovementLimits) -> _Candidate | None:
        """A shoot with what decides about it; None where it stays."""
        metadata = section(document, "metadata")
        key = ObjectKey("shoot", str(metadata.get("namespace") or ""), str(metadata.get("name") or ""))
        annotations = section(metadata, "annotations")
        if key in forbidden or annotations.get(PROTECT_FROM_REBALANCING) == "true":
            return None
        moved_at = parse_timestamp(annotations.get(MOVED_AT))
        if limits.now is not None and moved_at is not None and limits.now - moved_at < limits.cooldown:
            return None
        try:
            shoot = Shoot.from_document(document)
        except InvalidResource:
            return None
        home, landscape = shoot.spec.seed_name, self._landscapes.get(shoot.scheduler_name)
        if landscape is None or home not in landscape.seeds_by_name:
            return None
        if immovable_reason(shoot, home, self._landscapes.keys()):
            return None
        cache = self._alternatives[shoot.scheduler_name]
        found: Alternatives = cache.alternatives(shoot, document, landscape.seeds_by_name[home], frozenset())
        return _Candidate(key, home, found.request, cache.without(found.absent - {home}))

    def best(self, candidates: Sequence[_Candidate]) -> tuple[_Candidate, Improvement] | None:
        """The candidate whose sum rises most by moving now, the first by name among equals; None where none rises."""
        best: tuple[_Candidate, Improvement] | None = None
        sums: dict[tuple[SchedulingRequest, str, int], tuple[str, int, int] | None] = {}
        for each in candidates:
            alike = (each.request, each.home, id(each.landscape))
            if alike not in sums:
                sums[alike] = self._sums(each)
            found = sums[alike]
            if found is not None and (best is None or found[2] - found[1] > best[1].points):
                best = (
                    each,
                    Improvement(Move(each.key.namespace, each.key.name, each.home, found[0]), found[1], found[2]),
                )
        return best

    def move(self, candidate: _Candidate, target: str) -> None:
        """Count a shoot on another seed."""
        namespace, request = candidate.key.namespace, candidate.request
        self._usage.move(candidate.home, target, request.requests)
        self._groups.take_away(namespace, request.rules, candidate.home)
        self._groups.assume(namespace, request.rules, target)

    def _sums(self, candidate: _Candidate) -> tuple[str, int, int] | None:
        """The seed that is chosen for a shoot as if it were nowhere, with the sum at its own seed and there."""
        namespace, request, home = candidate.key.namespace, candidate.request, candidate.home
        self._usage.move(home, "", request.requests)
        self._groups.take_away(namespace, request.rules, home)
        snapshot = Snapshot(candidate.landscape, self._usage, self._groups)
        outcome = decide(request, snapshot)
        found = None
        if isinstance(outcome, Assignment) and outcome.seed != home and _as_near(outcome.seed, home, request, snapshot):
            found = outcome.seed, _sum_at(home, request, snapshot), outcome.total or 0
        self._usage.move("", home, request.requests)
        self._groups.assume(namespace, request.rules, home)
        return found


def _as_near(seed: str, home: str, request: SchedulingRequest, snapshot: Snapshot) -> bool:
    """True for two seeds of one distance: sums compare only those, as distance comes before scores."""
    slots = snapshot.landscape.index.slots
    both = 1 << slots[seed] | 1 << slots[home]
    groups = feasible_seeds_of(request.constraints, snapshot.landscape).groups
    return any(group.candidates & both == both for group in groups)


def _sum_at(seed: str, request: SchedulingRequest, snapshot: Snapshot) -> int:
    landscape = snapshot.landscape
    by_class = feasible_seeds_of(request.constraints, landscape).scores
    by_class = {**by_class, **group_scores_of(request, snapshot)}
    scores = scores_of(landscape.scores, by_class, landscape.seeds_by_name[seed], snapshot.usage, request.requests)
    return sum(each.points for each in scores)
