"""Worked cases of scores: the public formulas, and a naive scorer, give their numbers and choose their seeds."""

import json
from collections.abc import Collection, Mapping
from typing import Any

import pytest

from gardenbus.common.api.configuration.score_args import SCORES, ReadArgs
from gardenbus.common.api.garden.scheduling_profiles import (
    AnnotationScore,
    BalancedAllocation,
    PreferredSeeds,
    RegionDistance,
    ResourcesFit,
    ScoreArgs,
    SeedAffinity,
    ShapePoint,
    ShootAffinity,
    TopologySpread,
    WeightedResource,
    ZoneFit,
)
from gardenbus.common.api.garden.scheduling_requirements import RESOLVED, resolve, resolved_requirements
from gardenbus.common.api.garden.seeds import Seed, SeedProvider, SeedSpec
from gardenbus.common.api.garden.shoot_groups import (
    GroupChecks,
    GroupCounts,
    GroupRules,
    domain_of,
    without_shoot,
)
from gardenbus.common.api.selectors import parse_selector
from gardenbus.common.api.views import Metadata
from gardenbus.scheduling.group_domains import GroupDomains
from gardenbus.scheduling.scores.formulas import (
    Amount,
    affinity_score,
    annotation_score,
    balance_score,
    distance_score,
    fit_score,
    shape_score,
    zone_score,
)
from gardenbus.scheduling.seed_candidates import SeedCandidate
from gardenbus.scheduling.seed_index import Grades, SeedIndex
from gardenbus.scheduling.snapshot import Landscape
from tests.support import naive_scores
from tests.support.naive_scores import NaiveSeed
from tests.support.shared_files import SHARED, required_shared

CASES = "spec/profile-cases.json"
BINPACK = (ShapePoint(0, 0), ShapePoint(90, 10), ShapePoint(100, 5))


def cases() -> list[dict[str, Any]]:
    path = SHARED / CASES
    return [*map(_with_named_groups, json.loads(path.read_text())["cases"])] if path.exists() else []


def _with_named_groups(case: dict[str, Any]) -> dict[str, Any]:
    """A case whose project is a group by its name, and whose constraints are the shoot's, as a Project's defaults are.

    `*` is no group here, and ShootTopologySpread has no constraints of its own.
    """
    named = json.loads(json.dumps(case).replace('"*"', '"project"'))
    for plugin in named["given"].get("plugins", []):
        if constraints := plugin.get("args", {}).pop("defaultConstraints", None):
            named["given"]["shoot"]["spread"] = constraints
    return named


def is_applicable(case: Mapping[str, Any]) -> bool:
    """Scores, and required rules between shoots; test_order, test_scheduling_order and the store's have the others."""
    return case["kind"] == "score"


def stated_by(shoot: Mapping[str, Any]) -> dict[str, Any]:
    """The requirements of a case's shoot as admission resolves them."""
    affinity: dict[str, Any] = {}
    for each in shoot.get("requiredShoots", []):
        term = {"group": each["group"], "topologyKey": each["topologyKey"]}
        kind = "shootAffinity" if each["kind"] == "affinity" else "shootAntiAffinity"
        affinity.setdefault(kind, {}).setdefault("required", []).append(term)
    for each in shoot.get("preferredShoots", []):
        term = {name: each[name] for name in ("weight", "group", "topologyKey")}
        kind = "shootAffinity" if each["kind"] == "affinity" else "shootAntiAffinity"
        affinity.setdefault(kind, {}).setdefault("preferred", []).append(term)
    return {
        "groups": shoot.get("groups", []),
        "affinity": affinity,
        "topologySpreadConstraints": shoot.get("spread", []),
    }


def rules_of(given: Mapping[str, Any]) -> GroupRules:
    """The rules of a case's shoot."""
    text = resolve(json.dumps(stated_by(given["shoot"])), None)
    return resolved_requirements({RESOLVED: text}).group_rules


def views_of(given: Mapping[str, Any]) -> dict[str, Seed]:
    """The seeds of a case by name."""
    return {
        name: Seed(
            Metadata(name=name, labels=each.get("labels", {})),
            SeedSpec(provider=SeedProvider(each["provider"], each["region"])),
        )
        for name, each in given["seeds"].items()
    }


def counts_of(given: Mapping[str, Any]) -> dict[str, GroupCounts]:
    """The groups of a case, without its shoot."""
    rules = rules_of(given)
    repel = given.get("repel", {})
    counts = {
        group: GroupCounts(1, given["groups"].get(group, {}), repel.get(group, {}))
        for group in {*given["groups"], *repel}
    }
    if on := given["shoot"].get("on"):
        counts = dict(without_shoot(counts, rules, [on]))
    return counts


def rejected_by(given: Mapping[str, Any], open_seeds: Collection[str]) -> dict[str, str]:
    """The rule that keeps the shoot off each seed that has one."""
    rules, views, counts = rules_of(given), views_of(given), counts_of(given)
    checks = GroupChecks(
        rules, counts, lambda seed, key: domain_of(views[seed], key), eligible=sorted(views), open_seeds=open_seeds
    )
    return {name: problem.rule for name in views for problem in list(checks.problems(name))[:1]}


def args_of(plugin: Mapping[str, Any], given: Mapping[str, Any]) -> ScoreArgs:
    """The arguments as a configuration would have them; resources other than `shoots` are of shoots to come."""
    args = plugin.get("args", {})
    kind = plugin["name"].partition("/")[0]
    if kind == "SeedResourcesFit":
        strategy = args["scoringStrategy"]
        return ResourcesFit(
            type=strategy["type"],
            resources=tuple(WeightedResource(each["name"], each["weight"]) for each in strategy["resources"]),
            shape=tuple(ShapePoint(each["utilization"], each["score"]) for each in strategy.get("shape", [])),
        )
    if kind == "SeedResourcesBalancedAllocation":
        return BalancedAllocation(resources=tuple(WeightedResource(each["name"]) for each in args["resources"]))
    if kind == "SeedAffinity":
        return SeedAffinity()
    problems: list[str] = []
    read = SCORES[kind].read
    found = SCORES[kind].default if read is None else read(ReadArgs(args, "args", problems))
    assert problems == []
    assert found is not None
    return found


def score_of(
    args: ScoreArgs, seed: NaiveSeed, given: Mapping[str, Any], requests: Mapping[str, int], open_seeds: Collection[str]
) -> int:
    views = views_of(given)
    landscape = Landscape(seeds=[SeedCandidate.of(document_of(name, view)) for name, view in views.items()])
    index, groups = landscape.index, GroupDomains(rules_of(given), counts_of(given), landscape)
    has_room = index.bits_of(landscape.seeds_by_name[name] for name in open_seeds)
    amounts = {
        name: Amount(seed.allocatable[name], seed.used.get(name, 0), amount)
        for name, amount in requests.items()
        if seed.allocatable.get(name, 0) > 0
    }
    match args:
        case ResourcesFit():
            return fit_score(args, amounts)
        case BalancedAllocation():
            return balance_score(args.resources, amounts)
        case RegionDistance():
            assert args.farthest is not None
            return distance_score(seed.distance, args.farthest)
        case SeedAffinity():
            terms = given["shoot"].get("preferredSeeds", [])
            preferred = [PreferredSeeds(each["weight"], parse_selector(each["preference"])) for each in terms]
            return affinity_score(preferred, seed.labels)
        case ZoneFit():
            return zone_score(seed.zones, is_zonal=bool(given["shoot"].get("zonal")))
        case AnnotationScore():
            return annotation_score(args, seed.annotations)
        case TopologySpread():
            return points_of(seed.name, groups.spread_grades(index.present, has_room), index)
        case ShootAffinity():
            return points_of(seed.name, groups.affinity_grades(index.present), index)
        case _:
            raise AssertionError(args)


def document_of(name: str, view: Seed) -> dict[str, Any]:
    """The manifest of a seed of a case."""
    provider = {"type": view.spec.provider.type, "region": view.spec.provider.region}
    metadata = {"name": name, "labels": view.metadata.labels}
    return {"kind": "Seed", "metadata": metadata, "spec": {"provider": provider}}


def points_of(seed: str, grades: Grades, index: SeedIndex) -> int:
    """The score of a seed, of which each has one."""
    (points,) = (points for points, seeds in grades.items() if seeds >> index.slots[seed] & 1)
    return points


def domains_of(given: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Of each seed its domain by topology key."""
    return {
        name: {"seed": name, "region": f"{each['provider']}/{each['region']}", "provider": each["provider"]}
        | each.get("labels", {})
        for name, each in given["seeds"].items()
    }


def naive_score(
    plugin: Mapping[str, Any],
    seed: NaiveSeed,
    given: Mapping[str, Any],
    requests: Mapping[str, int],
    open_seeds: Collection[str],
) -> int:
    args = plugin.get("args", {})
    match plugin["name"].partition("/")[0]:
        case "SeedResourcesFit":
            return naive_scores.fit(args, seed, requests)
        case "SeedResourcesBalancedAllocation":
            return naive_scores.balance(args, seed, requests)
        case "MinimalDistance":
            return naive_scores.distance(args["farthest"], seed)
        case "SeedAffinity":
            return naive_scores.affinity(given["shoot"].get("preferredSeeds", []), seed)
        case "SeedZoneFit":
            return naive_scores.zone_fit(seed, is_zonal=bool(given["shoot"].get("zonal")))
        case "ShootTopologySpread" | "InterShootAffinity":
            stated = stated_by(given["shoot"])
            domains = domains_of(given)
            return naive_scores.of_groups(plugin["name"], stated, domains, seed.name, open_seeds, given["groups"])
        case _:
            return naive_scores.annotation(args, seed)


@pytest.mark.parametrize("case", [each for each in cases() if is_applicable(each)], ids=lambda case: case["name"])
def test_a_worked_case_has_its_scores_sums_and_seed(case: dict[str, Any]) -> None:
    given, expected = case["given"], case["expect"]
    requests = {"shoots": 1, **given["shoot"].get("requests", {})}
    seeds = {name: NaiveSeed(name, each) for name, each in given["seeds"].items()}
    with_room = {name: seed for name, seed in seeds.items() if seed.has_room(requests)}
    rejected = {name: "capacity" for name in seeds if name not in with_room} | rejected_by(given, with_room)
    open_seeds = {name: seed for name, seed in with_room.items() if name not in rejected}
    plugins = [(each, args_of(each, given)) for each in given["plugins"]]
    scores = {
        name: {each["name"]: score_of(args, seed, given, requests, open_seeds) for each, args in plugins}
        for name, seed in open_seeds.items()
    }
    sums = {name: sum(each["weight"] * scores[name][each["name"]] for each, _ in plugins) for name in open_seeds}
    assert scores == expected["scores"]
    assert sums == expected["totals"]
    assert naive_scores.choose(sums, open_seeds, requests) == expected["chosen"]
    assert rejected == expected["rejected"]
    assert {
        name: {each["name"]: naive_score(each, seed, given, requests, open_seeds) for each, _ in plugins}
        for name, seed in open_seeds.items()
    } == expected["scores"]


def test_the_worked_cases_are_at_hand() -> None:
    required_shared(CASES)
    assert sum(map(is_applicable, cases())) == 21


@pytest.mark.parametrize(
    ("utilization", "score"), [(0, 0), (1, 1), (45, 50), (89, 98), (90, 100), (91, 95), (95, 75), (99, 55), (100, 50)]
)
def test_a_shape_is_linear_between_its_points_and_cut_towards_zero(utilization: int, score: int) -> None:
    assert shape_score(BINPACK, utilization) == score


def test_a_shape_is_flat_outside_of_its_points() -> None:
    points = (ShapePoint(20, 3), ShapePoint(60, 9))
    assert [shape_score(points, each) for each in (0, 20, 60, 100)] == [30, 30, 90, 90]


@pytest.mark.parametrize(
    ("amount", "least", "most"),
    [
        (Amount(10, 0, 1), 90, 10),
        (Amount(10, 9, 1), 0, 100),
        (Amount(3, 0, 1), 66, 33),
        (Amount(1, 3, 1), 0, 100),
        (Amount(2**53, 2**53 - 2, 1), 0, 99),
    ],
)
def test_least_and_most_allocated_round_down(amount: Amount, least: int, most: int) -> None:
    resources = (WeightedResource("shoots"),)
    for kind, score in (("LeastAllocated", least), ("MostAllocated", most)):
        assert fit_score(ResourcesFit(type=kind, resources=resources), {"shoots": amount}) == score  # pyright: ignore[reportArgumentType]


def test_without_a_resource_that_counts_both_usage_scores_are_0() -> None:
    resources = (WeightedResource("cpu"), WeightedResource("memory"))
    assert fit_score(ResourcesFit(resources=resources), {"shoots": Amount(10, 0, 1)}) == 0
    assert balance_score(resources, {"shoots": Amount(10, 0, 1)}) == 0


def test_the_balance_of_one_resource_is_never_better_or_worse() -> None:
    resources = (WeightedResource("shoots"), WeightedResource("cpu"))
    assert {balance_score(resources, {"shoots": Amount(9, used, 1)}) for used in range(9)} == {75}


@pytest.mark.parametrize(
    ("distance", "farthest", "score"),
    [(0, 0, 100), (5, 0, 100), (-7, 10, 100), (1, 3, 67), (2, 3, 34), (3, 3, 0), (None, 0, 0), (None, 9, 0)],
)
def test_distance_falls_to_0_at_the_farthest(distance: int | None, farthest: int, score: int) -> None:
    assert distance_score(distance, farthest) == score


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("1", 50), ("0", 0), ("2", 100), ("-3", 0), ("7.5", 100), ("0.999", 49), ("1.0001", 7), ("1e0", 7), (" 1", 7),
        ("", 7), ("one", 7), ("\u0661", 7), ("9" * 16, 7), ("+1", 7), (".5", 7), ("1.", 7),
    ],
)  # fmt: skip
def test_an_annotation_is_a_decimal_of_three_places_or_missing(text: str, score: int) -> None:
    args = AnnotationScore(annotation="load", least=0, most=2000, missing=7)
    assert annotation_score(args, {"load": text}) == score
    assert annotation_score(args, {}) == 7


@pytest.mark.parametrize(
    ("zones", "is_zonal", "score"), [(1, False, 100), (2, False, 100), (3, False, 0), (3, True, 100)]
)
def test_seeds_of_three_zones_are_left_to_zonal_shoots(zones: int, score: int, *, is_zonal: bool) -> None:
    assert zone_score(zones, is_zonal=is_zonal) == score
