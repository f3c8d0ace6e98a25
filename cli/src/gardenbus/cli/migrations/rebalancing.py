"""Rebalancing: a small set of migrations after which the seeds are used alike, as far as the filters allow it.

Seeds are compared only with those that shoots of theirs can move to, or come from: a full seed in one region is no
reason to touch another region's. Of each such group, the used/allocatable of every seed shall lie in a band of a given
width; where the band lies is chosen so that few shoots move. Shoots of profiles with scores have no band: they move
where the sum of their scores rises (`migrations.improvements`). No move breaks a rule between shoots.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import islice, pairwise
from math import ceil, floor

import msgspec

from gardenbus.cli.migrations.balancing import BalancePlan, Bounds, UnitGroup, balance_counts, least_moves
from gardenbus.cli.migrations.improvements import (
    DEFAULT_LIMITS,
    PROTECT_FROM_REBALANCING,
    Improvement,
    ImprovementLimits,
    landscapes_of,
    plan_improvements,
)
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.moves import Move
from gardenbus.common.api.garden.scheduling_profiles import SchedulingProfile
from gardenbus.common.api.garden.shoots import Shoot
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import InvalidResource
from gardenbus.scheduling.descheduling.distant_shoots import NearerSeed, NearerSeeds
from gardenbus.scheduling.descheduling.relocation import (
    Alternatives,
    AlternativesCache,
    HostedSeeds,
    immovable_reason,
)
from gardenbus.scheduling.equivalence_classes import SchedulingRequest
from gardenbus.scheduling.feasible_seeds import feasible_seeds_of
from gardenbus.scheduling.filters.emergency_stop import stopped_because
from gardenbus.scheduling.filters.usable import unusable_because
from gardenbus.scheduling.group_checks import group_checks_of
from gardenbus.scheduling.room import has_room
from gardenbus.scheduling.seed_candidates import SeedCandidate
from gardenbus.scheduling.snapshot import Landscape, Snapshot
from gardenbus.scheduling.usage_index import UsageIndex

BAND = Fraction(1, 10)

_MAX_PLACES = 50
"""Places of the band for which a group is worked out, when none of them can be reached in full."""


class SeedShare(msgspec.Struct, frozen=True):
    """A seed that takes part: shoots now and after the plan, and whether that lies in its group's band.

    `group` is the first seed of its group, by name.
    """

    seed: str
    group: str
    allocatable: int
    used: int
    planned: int
    is_within: bool
    will_be_within: bool


class DistantShoot(msgspec.Struct, frozen=True):
    """A placed shoot that would be nearer on another seed, which has room for it now."""

    namespace: str
    name: str
    seed: str
    nearer: NearerSeed


class RebalancingPlan(msgspec.Struct, frozen=True):
    """The moves, in an order in which each finds room; a lower bound of their number; and the seeds that take part.

    `left_out` has the reasons why the other seeds take no part. `distant` are the shoots that a nearer seed has
    room for, as the landscape is now.
    """

    moves: Sequence[Move]
    lower_bound: int
    seeds: Sequence[SeedShare]
    left_out: Mapping[str, str]
    distant: Sequence[DistantShoot] = ()
    improvements: Sequence[Improvement] = ()
    """Those of the moves that were planned for their improvement."""

    @property
    def is_complete(self) -> bool:
        """True when every seed that takes part lies in its band afterwards."""
        return all(share.will_be_within for share in self.seeds)


def plan_rebalancing(  # noqa: PLR0913  what a plan is made of, by keyword
    shoots: Sequence[Document],
    snapshot: Snapshot,
    *,
    band: Fraction = BAND,
    forbidden: HostedSeeds = {},
    max_moves: int | None = None,
    profiles: Sequence[SchedulingProfile] = (),
    limits: ImprovementLimits = DEFAULT_LIMITS,
) -> RebalancingPlan:
    """Plan migrations that bring used/allocatable of the seeds of each group within `band` (of 1).

    `shoots` are all of the landscape, counted where they are going. They move to seeds that the scheduler could choose
    for them, no farther away than theirs. Shoots that host seeds (those in `forbidden`), that are protected by
    annotation, or have an operation under way keep their place. With `max_moves` only the first moves are planned.
    Shoots are planned for by the profile of their scheduler: those of one with scores move where the sum rises,
    within the `limits`; those of a scheduler without a profile stay, unless it is
    the default one.
    """
    landscapes = landscapes_of(snapshot.landscape, profiles)
    plain = {name: each for name, each in landscapes.items() if not each.scores}
    left_out, capacities = _eligible(snapshot.landscape)
    counts = Counter(str(section(shoot, "spec").get("seedName") or "") for shoot in shoots)
    units, requests = _movable(shoots, snapshot, plain, capacities, forbidden)
    moves: list[Move] = []
    shares: list[SeedShare] = []
    lower_bound = 0
    for group in _groups(sorted(capacities), units):
        used = {seed: counts[seed] for seed in group}
        numbers = {kind: len(keys) for kind, keys in units.items() if kind.home in used}
        plan = _best_plan(used, {seed: capacities[seed] for seed in group}, numbers, band)
        lower_bound += plan.lower_bound
        moves += _moves_of(plan.balanced, units)
        shares += [SeedShare(seed, group[0], capacities[seed], used[seed], used[seed], False, False) for seed in group]
    working = Snapshot(snapshot.landscape, UsageIndex(snapshot.usage), snapshot.groups.copy())
    ordered = _in_order(moves, working, requests)[:max_moves]
    improvements: Sequence[Improvement] = ()
    if max_moves is None or len(ordered) < max_moves:
        improvements = plan_improvements(
            shoots,
            working,
            landscapes=landscapes,
            forbidden=forbidden,
            limits=limits,
            most=None if max_moves is None else max_moves - len(ordered),
        )
    ordered += [each.move for each in improvements]
    distant = distant_shoots(shoots, snapshot, forbidden, profiles)
    shares = _with_outcome(shares, ordered, band)
    return RebalancingPlan(ordered, lower_bound, shares, left_out, distant, improvements)


def distant_shoots(
    shoots: Iterable[Document],
    snapshot: Snapshot,
    forbidden: HostedSeeds = {},
    profiles: Sequence[SchedulingProfile] = (),
) -> Sequence[DistantShoot]:
    """The shoots that are farther away than a ready seed with room would be, by namespace and name."""
    nearer_seeds = {
        name: NearerSeeds(Snapshot(landscape, snapshot.usage, snapshot.groups))
        for name, landscape in landscapes_of(snapshot.landscape, profiles).items()
    }
    found: list[DistantShoot] = []
    for document in shoots:
        try:
            shoot = Shoot.from_document(document)
        except InvalidResource:
            continue
        metadata, home = shoot.metadata, shoot.spec.seed_name
        if not home or immovable_reason(shoot, home, nearer_seeds.keys()):
            continue
        barred = forbidden.get(ObjectKey("shoot", metadata.namespace, metadata.name), frozenset())
        if nearer := nearer_seeds[shoot.scheduler_name].of(shoot, document, barred):
            found.append(DistantShoot(metadata.namespace, metadata.name, home, nearer))
    return sorted(found, key=lambda each: (each.namespace, each.name))


def bands_of(capacities: Mapping[str, int], used: Mapping[str, int], band: Fraction) -> Sequence[Bounds]:
    """The places where the band can lie, each as the whole numbers of shoots that lie in it, seed by seed.

    A seed for which there is no such number may have the next one on either side. The band holds the mean: a group
    whose seeds all lie above or all below it cannot be. A place that differs from another in no seed is left out.
    """
    mean = Fraction(sum(used.values()), sum(capacities.values()))
    lowest = max(mean - band, Fraction(0))
    edges = {lowest, mean}
    for capacity in {*capacities.values()}:
        for offset in (Fraction(0), band):  # a whole number of shoots at the lower end of the band, then at the upper
            counts = range(ceil((lowest + offset) * capacity), floor((mean + offset) * capacity) + 1)
            edges |= {Fraction(count, capacity) - offset for count in counts}
    # Between two edges a seed may have the next number on either side that at an edge has just the one on it.
    between = {(low + high) / 2 for low, high in pairwise(sorted(edges))}
    places: dict[tuple[tuple[int, int], ...], Bounds] = {}
    for edge in sorted(edges | between, key=lambda edge: (abs(edge + band / 2 - mean), edge)):
        bounds = {seed: _bounds(capacity, edge, edge + band) for seed, capacity in capacities.items()}
        places.setdefault(tuple(bounds.values()), bounds)
    return list(places.values())


class _Plan(msgspec.Struct, frozen=True):
    balanced: BalancePlan
    lower_bound: int


def _bounds(capacity: int, low: Fraction, high: Fraction) -> tuple[int, int]:
    least, greatest = ceil(capacity * low), floor(capacity * high)
    if least > greatest:
        least, greatest = greatest, least
    return max(min(least, capacity), 0), min(greatest, capacity)


def _best_plan(
    used: Mapping[str, int], capacities: Mapping[str, int], units: Mapping[UnitGroup, int], band: Fraction
) -> _Plan:
    """The first place of the band that moves can reach, beginning with those that promise few; else the nearest."""
    total = sum(used.values())
    possible = bands_of(capacities, used, band)
    holding = [
        bounds
        for bounds in possible
        if sum(low for low, _ in bounds.values()) <= total <= sum(high for _, high in bounds.values())
    ]
    places = sorted(holding or possible, key=partial(least_moves, used))
    best = BalancePlan({}, 0)
    for tried, bounds in enumerate(places[:_MAX_PLACES]):
        balanced = balance_counts(used, units, bounds)
        if not tried or (balanced.missed, balanced.moves) < (best.missed, best.moves):
            best = balanced
        if not best.missed:
            break
    return _Plan(best, least_moves(used, places[0]))


def _eligible(landscape: Landscape) -> tuple[dict[str, str], dict[str, int]]:
    """The reasons why seeds take no part, and the capacities of those that do."""
    left_out: dict[str, str] = {}
    capacities: dict[str, int] = {}
    for candidate in landscape.seeds:
        if reason := _ineligible_because(candidate):
            left_out[candidate.name] = reason
        elif candidate.capacity:
            capacities[candidate.name] = candidate.capacity
    return left_out, capacities


def _ineligible_because(candidate: SeedCandidate) -> str:
    if reason := unusable_because(candidate):
        return reason
    if reason := stopped_because(candidate):
        return reason
    if candidate.capacity is None:
        return "it has no limit, so its usage cannot be compared"
    return "" if candidate.capacity else "it accepts no shoots"


class _Alternative(msgspec.Struct, frozen=True, eq=False):
    """A shoot that can move: its request, and the landscape of its choice, with its own seed."""

    request: SchedulingRequest
    landscape: Landscape

    def allowed(self, seeds: Iterable[str], home: str, snapshot: Snapshot) -> Iterable[str]:
        """The seeds where no rule between shoots is broken, once the shoot has left its own."""
        rules, namespace = self.request.rules, self.request.constraints.namespace
        if not rules:
            return seeds
        snapshot.groups.take_away(namespace, rules, home)
        checks = group_checks_of(self.request, snapshot)
        assert checks is not None, "it has rules"
        found = [each for each in seeds if next(checks.problems(each), None) is None]
        snapshot.groups.assume(namespace, rules, home)
        return found


def _movable(
    shoots: Iterable[Document],
    snapshot: Snapshot,
    landscapes: Mapping[str, Landscape],
    capacities: Mapping[str, int],
    forbidden: HostedSeeds,
) -> tuple[dict[UnitGroup, list[ObjectKey]], Mapping[ObjectKey, _Alternative]]:
    """The shoots that can move, by their seed and possible targets, and what decides about each."""
    caches = {name: AlternativesCache(landscape) for name, landscape in landscapes.items()}
    groups = snapshot.groups.copy()
    requests: dict[ObjectKey, _Alternative] = {}
    units: dict[UnitGroup, list[ObjectKey]] = {}
    for document in shoots:
        metadata = section(document, "metadata")
        key = ObjectKey("shoot", str(metadata.get("namespace") or ""), str(metadata.get("name") or ""))
        home = str(section(document, "spec").get("seedName") or "")
        if home not in capacities or key in forbidden:
            continue
        if section(metadata, "annotations").get(PROTECT_FROM_REBALANCING) == "true":
            continue
        try:
            shoot = Shoot.from_document(document)
        except InvalidResource:
            continue
        if immovable_reason(shoot, home, caches.keys()):
            continue
        cache, source = caches[shoot.scheduler_name], snapshot.landscape.seeds_by_name[home]
        alternatives = cache.alternatives(shoot, document, source, frozenset())
        found = _Alternative(alternatives.request, cache.without(alternatives.absent - {home}))
        targets = _no_farther(alternatives, source, cache) & capacities.keys()
        targets = frozenset(found.allowed(targets, home, Snapshot(found.landscape, snapshot.usage, groups)))
        if targets:
            units.setdefault(UnitGroup(home, targets), []).append(key)
            requests[key] = found
    return {kind: sorted(keys) for kind, keys in units.items()}, requests


def _no_farther(alternatives: Alternatives, source: SeedCandidate, cache: AlternativesCache) -> set[str]:
    """The seeds as near as its own, or nearer; the nearest ones where its own is not a candidate."""
    with_source = cache.without(alternatives.absent - {source.name})
    index = with_source.index
    groups = [
        {seed.name for seed in index.seeds_in(group.candidates)}
        for group in feasible_seeds_of(alternatives.request.constraints, with_source).groups
    ]
    feasible = [{seed.name for seed in group} for group in alternatives.groups()]
    near: set[str] = set()
    if not any(source.name in group for group in groups):
        return next((group for group in feasible if group), near)
    for group in groups:
        near |= group
        if source.name in group:
            break
    return near & {seed for group in feasible for seed in group}


def _groups(seeds: Sequence[str], units: Iterable[UnitGroup]) -> list[list[str]]:
    """The seeds that moves connect, however indirectly; seeds that nothing connects are groups of their own."""
    group_of = {seed: [seed] for seed in seeds}
    for kind in units:
        for target in kind.targets:
            here, there = group_of[kind.home], group_of[target]
            if here is not there:
                here += there
                group_of |= dict.fromkeys(there, here)
    groups = {id(group): sorted(group) for group in group_of.values()}
    return sorted(group for group in groups.values() if len(group) > 1)


def _moves_of(balanced: BalancePlan, units: Mapping[UnitGroup, Sequence[ObjectKey]]) -> list[Move]:
    """The moves of single shoots: the first by name of those that are alike."""
    rest = {kind: iter(keys) for kind, keys in units.items()}
    ways = sorted(balanced.moved, key=lambda way: (way[0].home, way[1], sorted(way[0].targets)))
    return [
        Move(key.namespace, key.name, kind.home, target)
        for kind, target in ways
        for key in islice(rest[kind], balanced.moved[kind, target])
    ]


def _in_order(moves: Iterable[Move], working: Snapshot, requests: Mapping[ObjectKey, _Alternative]) -> list[Move]:
    """First the moves whose targets have room, then those for which they make it; they are counted in `working`.

    Bands count shoots: a move to a seed that never has what the shoot requests is left out, and so is one that would
    break a rule between shoots after those before it.
    """
    usage, seeds = working.usage, working.landscape.seeds_by_name
    pending = sorted(moves, key=lambda move: (move.namespace, move.name))
    all_fit = not any(requests[_key_of(move)].request.rules for move in pending)
    ordered: list[Move] = []
    while pending:
        wanted = {move: requests[_key_of(move)].request.requests for move in pending}
        # Seeds never give to each other in a circle, so there is always one that has room, but for what is requested.
        possible = (move for move in pending if has_room(seeds[move.target], usage, wanted[move]))
        following = next((move for move in possible if _keeps_rules(move, working, requests)), None)
        if following is None and all_fit:
            following = next((move for move in pending if not wanted[move]), None)
        if following is None:
            break
        pending.remove(following)
        usage.move(following.source, following.target, wanted[following])
        rules = requests[_key_of(following)].request.rules
        working.groups.take_away(following.namespace, rules, following.source)
        working.groups.assume(following.namespace, rules, following.target)
        ordered.append(following)
    return ordered


def _keeps_rules(move: Move, working: Snapshot, requests: Mapping[ObjectKey, _Alternative]) -> bool:
    """True where a move breaks no rule now."""
    found = requests[_key_of(move)]
    snapshot = Snapshot(found.landscape, working.usage, working.groups)
    return bool([*found.allowed([move.target], move.source, snapshot)])


def _key_of(move: Move) -> ObjectKey:
    return ObjectKey("shoot", move.namespace, move.name)


def _with_outcome(shares: Sequence[SeedShare], moves: Sequence[Move], band: Fraction) -> list[SeedShare]:
    change: Counter[str] = Counter()
    for move in moves:
        change[move.target] += 1
        change[move.source] -= 1
    planned = [msgspec.structs.replace(share, planned=share.used + change[share.seed]) for share in shares]
    groups: dict[str, list[SeedShare]] = {}
    for share in planned:
        groups.setdefault(share.group, []).append(share)
    outcome: list[SeedShare] = []
    for group in groups.values():
        capacities = {share.seed: share.allocatable for share in group}
        before = {share.seed: share.used for share in group}
        after = {share.seed: share.planned for share in group}
        within_before, within_after = _within(capacities, before, band), _within(capacities, after, band)
        outcome += [
            msgspec.structs.replace(
                share, is_within=share.seed in within_before, will_be_within=share.seed in within_after
            )
            for share in group
        ]
    return sorted(outcome, key=lambda share: (share.group, share.seed))


def _within(capacities: Mapping[str, int], counts: Mapping[str, int], band: Fraction) -> set[str]:
    """The seeds that lie in the band, placed so that the least is missing."""

    def missing(bounds: Bounds) -> int:
        return sum(max(low - counts[seed], counts[seed] - high, 0) for seed, (low, high) in bounds.items())

    bounds = min(bands_of(capacities, counts, band), key=missing)
    return {seed for seed, (low, high) in bounds.items() if low <= counts[seed] <= high}
