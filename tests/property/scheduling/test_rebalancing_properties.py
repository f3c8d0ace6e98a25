"""Plans of rebalancing against all that moves can bring about, found by trying everything, on small landscapes."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from graphlib import TopologicalSorter
from itertools import combinations_with_replacement, pairwise
from math import ceil, floor

from hypothesis import given, settings
from hypothesis import strategies as st

from gardenbus.cli.migrations.balancing import UnitGroup, balance_counts, least_moves
from gardenbus.cli.migrations.improvements import ImprovementLimits
from gardenbus.cli.migrations.rebalancing import plan_rebalancing
from gardenbus.cli.simulate.profiles import profiles_for
from gardenbus.cli.simulate.scheduling import snapshot_of
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.scheduling_profiles import SchedulingProfile
from gardenbus.common.api.garden.scheduling_requirements import RESOLVED
from tests.support.builders import a_cloudprofile, a_condition, a_project, a_seed, a_shoot, merged, resolved_as
from tests.support.naive_groups import Placed, broken_rule

REGIONS = ("eu-west-1", "eu-central-1")
BACKUP: Document = {
    "spec": {"backup": {"provider": "aws"}},
    "status": {"conditions": [a_condition("GardenletReady"), a_condition("BackupBucketsReady")]},
}


def reachable(used: Mapping[str, int], units: Mapping[UnitGroup, int]) -> Mapping[tuple[int, ...], int]:
    """All counts that moves can bring about, with the fewest moves that do."""
    seeds = sorted(used)
    states = {tuple(used[seed] for seed in seeds): 0}
    for kind, number in units.items():
        following: dict[tuple[int, ...], int] = {}
        for ends in combinations_with_replacement([kind.home, *sorted(kind.targets)], number):
            change = Counter(ends)
            change[kind.home] -= number
            moved = number - ends.count(kind.home)
            for state, moves in states.items():
                after = tuple(count + change[seed] for seed, count in zip(seeds, state, strict=True))
                following[after] = min(following.get(after, moves + moved), moves + moved)
        states = following
    return states


def lies_in_a_band(capacities: Sequence[int], counts: Sequence[int], band: Fraction) -> bool:
    mean = Fraction(sum(counts), sum(capacities))
    start = max(mean - band, Fraction(0))
    marks = {start, mean}
    for capacity in capacities:
        for number in range(capacity + 2):
            marks |= {Fraction(number, capacity), Fraction(number, capacity) - band}
    edges = sorted(mark for mark in marks if start <= mark <= mean)
    edges += [(low + high) / 2 for low, high in pairwise(edges)]
    return any(
        all(count in allowed(capacity, edge, edge + band) for capacity, count in zip(capacities, counts, strict=True))
        for edge in edges
    )


def allowed(capacity: int, low: Fraction, high: Fraction) -> Sequence[int]:
    whole = [number for number in range(capacity + 1) if low <= Fraction(number, capacity) <= high]
    return whole or [floor(capacity * low), ceil(capacity * high)]


@st.composite
def places(draw: st.DrawFn) -> tuple[dict[str, int], dict[UnitGroup, int], dict[str, tuple[int, int]]]:
    seeds = [f"s{number}" for number in range(draw(st.integers(2, 8)))]
    counts = {seed: draw(st.integers(0, 4)) for seed in seeds}
    units: dict[UnitGroup, int] = {}
    left = dict(counts)
    for _ in range(draw(st.integers(0, 5))):
        home = draw(st.sampled_from(seeds))
        targets = frozenset(draw(st.sets(st.sampled_from(seeds), min_size=1, max_size=3))) - {home}
        number = draw(st.integers(0, left[home]))
        if targets and number:
            units[UnitGroup(home, targets)] = units.get(UnitGroup(home, targets), 0) + number
            left[home] -= number
    bounds = {seed: tuple(sorted(draw(st.tuples(st.integers(0, 4), st.integers(0, 4))))) for seed in seeds}
    return counts, units, {seed: (low, high) for seed, (low, high) in bounds.items()}


@settings(max_examples=300, deadline=None)
@given(places())
def test_balancing_misses_the_bounds_least(
    case: tuple[dict[str, int], dict[UnitGroup, int], dict[str, tuple[int, int]]],
):
    counts, units, bounds = case
    seeds = sorted(counts)

    balanced = balance_counts(counts, units, bounds)

    after = dict(counts)
    for (group, target), number in balanced.moved.items():
        assert target in group.targets
        after[group.home] -= number
        after[target] += number
    assert balanced.missed == missing(after, bounds)
    states = reachable(counts, units)
    assert tuple(after[seed] for seed in seeds) in states
    assert balanced.missed == min(missing(dict(zip(seeds, state, strict=True)), bounds) for state in states)
    if not balanced.missed:
        assert least_moves(counts, bounds) <= balanced.moves


def missing(counts: Mapping[str, int], bounds: Mapping[str, tuple[int, int]]) -> int:
    return sum(max(bounds[seed][0] - count, count - bounds[seed][1], 0) for seed, count in counts.items())


@settings(max_examples=300, deadline=None)
@given(places())
def test_no_places_give_units_to_each_other_in_a_circle(
    case: tuple[dict[str, int], dict[UnitGroup, int], dict[str, tuple[int, int]]],
):
    moved = balance_counts(*case).moved
    TopologicalSorter(
        {target: [group.home for group, end in moved if end == target] for _, target in moved}
    ).prepare()  # CycleError where there is one


@st.composite
def landscapes(draw: st.DrawFn) -> Sequence[Document]:
    """Up to 6 seeds in two regions, some labelled; shoots in one region, some wanting the label or to stay."""
    documents: list[Document] = [a_project(), a_cloudprofile()]
    # Few shoots where the seeds are many: all that can become of them is tried.
    number = draw(st.integers(2, 6))
    most = {2: 8, 3: 6, 4: 4}.get(number, 2)
    for seed in range(number):
        name = f"s{seed}"
        region = draw(st.sampled_from(REGIONS)) if number < 5 else REGIONS[0]
        labels = draw(st.sampled_from([{}, {"tier": "gold"}]))
        capacity = draw(st.integers(1, 12))
        changes: Document = {
            "metadata": {"labels": labels},
            "spec": {"provider": {"region": region}, "settings": {"scheduling": {"visible": draw(mostly(True))}}},
        }
        documents.append(merged(a_seed(name, shoots=str(capacity)), merged(BACKUP, changes)))
        shoots = range(draw(st.integers(0, min(capacity, most))))
        documents += [placed(draw, f"{name}-{shoot}", name, region) for shoot in shoots]
    return documents


def mostly(value: bool) -> st.SearchStrategy[bool]:
    return st.sampled_from([value] * 5 + [not value])


def placed(draw: st.DrawFn, name: str, seed: str, region: str) -> Document:
    annotations = {} if draw(mostly(True)) else {"scheduling.gardener.cloud/protect-from-rebalancing": "true"}
    selector = None if draw(mostly(True)) else {"matchLabels": {"tier": "gold"}}
    return a_shoot(
        name,
        metadata={"annotations": annotations},
        spec={"seedName": seed, "region": region, "seedSelector": selector},
        status={"seedName": seed, "lastOperation": {"type": "Reconcile", "state": "Succeeded"}},
    )


def shoots_of(documents: Sequence[Document]) -> list[Document]:
    return [document for document in documents if document["kind"] == "Shoot"]


def groups_and_kinds(
    documents: Sequence[Document],
) -> Iterator[tuple[dict[str, int], dict[str, int], dict[UnitGroup, int]]]:
    """Capacities, counts and movable units of each group, read straight from the manifests."""
    seeds = {
        each["metadata"]["name"]: each
        for each in documents
        if each["kind"] == "Seed" and each["spec"]["settings"]["scheduling"]["visible"]
    }
    units: Counter[UnitGroup] = Counter()
    for shoot in shoots_of(documents):
        home = shoot["spec"]["seedName"]
        if home not in seeds or shoot["metadata"]["annotations"]:
            continue
        wanted = section(shoot, "spec", "seedSelector", "matchLabels")
        targets = frozenset(
            name
            for name, seed in seeds.items()
            if name != home
            and seed["spec"]["provider"]["region"] == shoot["spec"]["region"]
            and wanted.items() <= seed["metadata"]["labels"].items()
        )
        if targets:
            units[UnitGroup(home, targets)] += 1
    group_of = {name: {name} for name in seeds}
    for kind in units:
        joined = set[str]().union(*(group_of[name] for name in {kind.home, *kind.targets}))
        group_of |= dict.fromkeys(joined, joined)
    used = Counter(shoot["spec"]["seedName"] for shoot in shoots_of(documents))
    for group in {frozenset(group) for group in group_of.values() if len(group) > 1}:
        names = sorted(group)
        capacities = {name: int(seeds[name]["status"]["allocatable"]["shoots"]) for name in names}
        yield capacities, {name: used[name] for name in names}, {k: n for k, n in units.items() if k.home in group}


@settings(max_examples=100, deadline=None)
@given(landscapes(), st.sampled_from([Fraction(1, 10), Fraction(1, 5), Fraction(1, 3), Fraction(0)]))
def test_a_plan_is_complete_where_moves_can_reach_a_band(documents: Sequence[Document], band: Fraction):
    plan = plan_rebalancing(shoots_of(documents), snapshot_of(documents), band=band)

    fewest: list[int | None] = []
    for capacities, used, units in groups_and_kinds(documents):
        room = [capacities[name] for name in sorted(capacities)]
        fewest.append(
            min(
                (moves for state, moves in reachable(used, units).items() if lies_in_a_band(room, state, band)),
                default=None,
            )
        )
    assert plan.is_complete == (None not in fewest)
    if plan.is_complete:
        assert plan.lower_bound <= sum(moves or 0 for moves in fewest) <= len(plan.moves)


@settings(max_examples=100, deadline=None)
@given(landscapes(), st.integers(0, 4))
def test_every_move_finds_room_and_is_one_that_the_rules_allow(documents: Sequence[Document], most: int):
    plan = plan_rebalancing(shoots_of(documents), snapshot_of(documents))
    fewer = plan_rebalancing(shoots_of(documents), snapshot_of(documents), max_moves=most)

    assert fewer.moves == plan.moves[:most]
    by_name = {shoot["metadata"]["name"]: shoot for shoot in shoots_of(documents)}
    seeds = {each["metadata"]["name"]: each for each in documents if each["kind"] == "Seed"}
    used = Counter(shoot["spec"]["seedName"] for shoot in by_name.values())
    for move in plan.moves:
        shoot, target = by_name.pop(move.name), seeds[move.target]
        assert shoot["spec"]["seedName"] == move.source
        assert not shoot["metadata"]["annotations"]
        assert target["spec"]["settings"]["scheduling"]["visible"]
        assert target["spec"]["provider"]["region"] == shoot["spec"]["region"]
        assert used[move.target] < int(target["status"]["allocatable"]["shoots"])
        used[move.target] += 1
        used[move.source] -= 1
    assert {share.seed: share.planned for share in plan.seeds} == {share.seed: used[share.seed] for share in plan.seeds}


RULES: Sequence[Document] = (
    {},
    {"groups": ["g"]},
    {"groups": ["g"], "affinity": {"shootAntiAffinity": {"required": [{"group": "g", "topologyKey": "seed"}]}}},
    {"affinity": {"shootAffinity": {"required": [{"group": "g", "topologyKey": "seed"}]}}},
    {"groups": ["g"], "topologySpreadConstraints": [{"group": "g", "topologyKey": "seed", "maxSkew": 1}]},
)
PROFILES = [None, *(profiles_for(each, (), (), "SameRegion").for_all for each in ("spread", "binpack"))]


@st.composite
def landscapes_with_rules(draw: st.DrawFn) -> list[Document]:
    """Up to 4 seeds of one region; shoots that state rules about one group, which they may break by now."""
    documents: list[Document] = [a_project(), a_cloudprofile()]
    for seed in range(draw(st.integers(2, 4))):
        name, capacity = f"s{seed}", draw(st.integers(1, 6))
        documents.append(merged(a_seed(name, shoots=str(capacity)), BACKUP))
        for shoot in range(draw(st.integers(0, min(capacity, 4)))):
            document = placed(draw, f"{name}-{shoot}", name, "eu-west-1")
            rules = draw(st.sampled_from(RULES))
            documents.append(merged(document, {"metadata": resolved_as(rules), "spec": {"seedSelector": None}}))
    return documents


@settings(max_examples=200, deadline=None)
@given(landscapes_with_rules(), st.sampled_from(PROFILES), st.sampled_from([Fraction(0), Fraction(1, 5)]))
def test_no_move_breaks_a_rule_or_overfills_whichever_profile_plans(
    documents: Sequence[Document], profile: SchedulingProfile | None, band: Fraction
):
    snapshot = snapshot_of(documents)
    profiles = [profile] if profile is not None else []
    plan = plan_rebalancing(shoots_of(documents), snapshot, band=band, profiles=profiles, limits=ImprovementLimits(1))

    capacities = {
        each["metadata"]["name"]: int(each["status"]["allocatable"]["shoots"])
        for each in documents
        if each["kind"] == "Seed"
    }
    labels = {name: {"seed": name} for name in capacities}
    seeds = {each["metadata"]["name"]: each["spec"]["seedName"] for each in shoots_of(documents)}
    rules = {each["metadata"]["name"]: _rules_of(each) for each in shoots_of(documents)}
    for move in plan.moves:
        assert seeds.pop(move.name) == move.source
        others = [Placed(rules[name], seed) for name, seed in seeds.items()]
        assert not broken_rule(rules[move.name], move.target, others, labels, list(labels))
        seeds[move.name] = move.target
        assert Counter(seeds.values())[move.target] <= capacities[move.target]
    assert all(each.points >= 1 for each in plan.improvements)
    assert len({move.name for move in plan.moves}) == len(plan.moves)


def _rules_of(shoot: Document) -> Document:
    return json.loads(section(shoot, "metadata", "annotations").get(RESOLVED) or "{}")
