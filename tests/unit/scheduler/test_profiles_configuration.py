"""Profiles of a SchedulerConfiguration: how they are merged, and what keeps a scheduler from starting."""

from typing import Any

import pytest
import yaml

from gardenbus.common.api.configuration.scheduler import parse_configuration
from gardenbus.common.api.garden.scheduling_profiles import (
    BUILT_IN_FILTERS,
    AddedAffinity,
    AnnotationScore,
    RegionDistance,
    ResourcesFit,
    SchedulingProfile,
    SeedAffinity,
    ShapePoint,
    WeightedResource,
    ZoneFit,
    limits_of,
)
from gardenbus.common.errors import SettingsInvalid
from gardenbus.scheduling.filters.table import CHECKS, FILTERS, RULES, STRATEGY

HEAD = {"apiVersion": "scheduler.config.gardener.cloud/v1alpha1", "kind": "SchedulerConfiguration"}
FIT = {"name": "SeedResourcesFit"}
COST = {"annotation": "seed.gardenbus.io/cost-per-hour", "min": "0.10", "max": 2.1, "reverse": True}


def parsed(*profiles: Any, own: tuple[str, ...] = (), **fields: Any) -> tuple[SchedulingProfile, ...]:
    text = yaml.safe_dump({**HEAD, "profiles": list(profiles), **fields})
    return parse_configuration(text, lambda: own).served


def problems_of(*profiles: Any, own: tuple[str, ...] = (), **fields: Any) -> list[str]:
    with pytest.raises(SettingsInvalid) as raised:
        parsed(*profiles, own=own, **fields)
    return list(raised.value.problems)


def weights(profile: SchedulingProfile) -> dict[str, int]:
    return {each.name: each.weight for each in profile.scores}


def enabled(*plugins: Any, point: str = "score", **more: Any) -> dict[str, Any]:
    return {"plugins": {point: {"enabled": list(plugins)}}, **more}


def test_without_profiles_there_is_one_without_plug_ins() -> None:
    text = yaml.safe_dump({**HEAD, "schedulers": {"shoot": {"schedulerName": "mine"}}})
    assert parse_configuration(text).served == (SchedulingProfile(scheduler_name="mine"),)
    assert not parse_configuration(yaml.safe_dump(HEAD)).profiles


def test_profiles_have_the_strategy_of_the_file_or_their_own() -> None:
    found = parsed(
        {"schedulerName": "one"},
        {"schedulerName": "two", "candidateDeterminationStrategy": "SameRegion"},
        schedulers={"shoot": {"candidateDeterminationStrategy": "MinimalDistance"}},
    )
    assert [(each.scheduler_name, each.strategy) for each in found] == [
        ("one", "MinimalDistance"),
        ("two", "SameRegion"),
    ]


def test_presets_have_the_weights_and_arguments_of_their_table() -> None:
    spread, binpack = parsed({"schedulerName": "s", "preset": "spread"}, {"schedulerName": "b", "preset": "binpack"})
    explicit = {"SeedAffinity": 4, "InterShootAffinity": 4, "ShootTopologySpread": 3, "SeedZoneFit": 2}
    assert weights(spread) == {**explicit, "SeedResourcesFit": 1, "SeedResourcesBalancedAllocation": 1}
    assert weights(binpack) == {**explicit, "SeedResourcesFit": 2}
    fit = binpack.scores[-1].args
    assert isinstance(fit, ResourcesFit)
    assert fit.shape == (ShapePoint(0, 0), ShapePoint(90, 10), ShapePoint(100, 5))
    assert [each.name for each in fit.resources] == ["shoots", "cpu", "memory"]


def test_a_plug_in_named_again_has_its_new_weight_at_its_old_place_and_multi_point_comes_first() -> None:
    plugins = {
        "score": {"enabled": [{"name": "SeedZoneFit", "weight": 7}]},
        "multiPoint": {"enabled": [{"name": "SeedZoneFit", "weight": 3}, {"name": "MinimalDistance", "weight": 5}]},
    }
    (found,) = parsed({"preset": "binpack", "plugins": plugins})
    assert list(weights(found).items())[3:] == [("SeedZoneFit", 7), ("SeedResourcesFit", 2), ("MinimalDistance", 5)]


@pytest.mark.parametrize("point", ["score", "multiPoint"])
def test_a_star_clears_what_the_preset_brought(point: str) -> None:
    lists = {"disabled": [{"name": "*"}], "enabled": [{"name": "SeedZoneFit"}]}
    (found,) = parsed({"preset": "spread", "plugins": {point: lists}})
    assert [(each.name, each.weight, each.args) for each in found.scores] == [("SeedZoneFit", 1, ZoneFit())]


def test_one_plug_in_of_a_preset_can_be_disabled() -> None:
    (found,) = parsed({"preset": "binpack", "plugins": {"score": {"disabled": [{"name": "InterShootAffinity"}]}}})
    assert "InterShootAffinity" not in weights(found)


def test_plugin_config_replaces_the_arguments_of_a_preset() -> None:
    strategy = {"type": "MostAllocated", "resources": [{"name": "shoots", "weight": 3}]}
    (found,) = parsed({"preset": "binpack", "pluginConfig": [{**FIT, "args": {"scoringStrategy": strategy}}]})
    assert found.scores[-1].args == ResourcesFit(type="MostAllocated", resources=(WeightedResource("shoots", 3),))


def test_a_plug_in_scores_twice_by_its_instances() -> None:
    load = {**COST, "annotation": "load", "reverse": False}
    (found,) = parsed(
        enabled(
            {"name": "SeedAnnotation/cost", "weight": 5},
            {"name": "SeedAnnotation/load"},
            pluginConfig=[{"name": "SeedAnnotation/load", "args": load}, {"name": "SeedAnnotation/cost", "args": COST}],
        )
    )
    cost = AnnotationScore(annotation="seed.gardenbus.io/cost-per-hour", least=100, most=2100, reverse=True)
    assert [each.args for each in found.scores] == [cost, AnnotationScore(annotation="load", least=100, most=2100)]


def test_added_affinity_is_read_with_purposes_and_terms() -> None:
    added = {
        "purposes": ["production", "production"],
        "required": [{"matchLabels": {"tier": "gold"}}],
        "preferred": [{"weight": 80, "preference": {"matchExpressions": [{"key": "rack", "operator": "Exists"}]}}],
    }
    (found,) = parsed(
        enabled({"name": "SeedAffinity"}, pluginConfig=[{"name": "SeedAffinity", "args": {"addedAffinity": [added]}}])
    )
    (args,) = (each.args for each in found.scores)
    assert isinstance(args, SeedAffinity)
    (entry,) = args.added
    assert isinstance(entry, AddedAffinity)
    assert (entry.purposes, str(entry.required[0]), entry.preferred[0].weight) == (("production",), "tier=gold", 80)
    assert entry.concerns("production")
    assert not entry.concerns("testing")
    assert found.reads_purpose


def test_users_own_filters_are_disabled_and_enabled_by_name() -> None:
    def profile(**lists: Any) -> SchedulingProfile:
        (found,) = parsed({"plugins": {"filter": lists}}, own=("mine", "yours"))
        return found

    assert profile().runs_filter("mine")
    assert not profile(disabled=[{"name": "mine"}]).runs_filter("mine")
    assert profile(disabled=[{"name": "mine"}]).runs_filter("yours")
    both = profile(disabled=[{"name": "*"}], enabled=[{"name": "yours"}])
    assert [both.runs_filter(each) for each in ("mine", "yours")] == [False, True]


def test_distance_beside_weighted_or_the_permission_for_any_region() -> None:
    weighted = {"candidateDeterminationStrategy": "Weighted"}
    (near,) = parsed({**weighted, **enabled({"name": "MinimalDistance"})})
    assert (near.strategy, near.scores[0].args) == ("Weighted", RegionDistance())
    (anywhere,) = parsed({**weighted, "allowAnyRegion": True, **enabled(FIT)})
    assert weights(anywhere) == {"SeedResourcesFit": 1}


SHAPE = [{"utilization": 50, "score": 0}, {"utilization": 50, "score": 10}]
RATIO = {"type": "RequestedToCapacityRatio", "shape": SHAPE}

BAD: list[tuple[dict[str, Any], str]] = [
    ({"scheduler": "x"}, "profiles[0].scheduler: no such field"),
    ({"schedulerName": "A"}, "profiles[0].schedulerName: must be a lower-case RFC 1123 label"),
    ({"preset": "pack"}, "profiles[0].preset: must be one of spread, binpack"),
    (
        enabled({"name": "SeedResourceFit"}),
        "score.enabled[0].name: there is no such plug-in: SeedResourceFit; did you mean SeedResourcesFit?",
    ),
    (enabled({**FIT, "weight": 0}), "score.enabled[0].weight: must be a whole number from 1 to 100, is 0"),
    (enabled({**FIT, "weight": 101}), "score.enabled[0].weight: must be a whole number from 1 to 100, is 101"),
    (enabled({**FIT, "weight": True}), "score.enabled[0].weight: must be a whole number from 1 to 100, is True"),
    (enabled({**FIT, "weight": 1.5}), "score.enabled[0].weight: must be a whole number"),
    (enabled(FIT, FIT), "score.enabled[1].name: SeedResourcesFit is named twice"),
    (enabled({"name": "*"}), "score.enabled[0].name: * stands only in a list of disabled plug-ins"),
    (enabled({}), "score.enabled[0].name: must be a text"),
    (enabled(FIT, point="filter"), "filter.enabled[0].name: SeedResourcesFit has no extension point filter"),
    (
        enabled({"name": "Remote/carbon"}, point="filter"),
        "filter.enabled[0].name: Remote has no extension point filter: enable it under score; its args.points",
    ),
    (enabled({"name": "zones"}), "score.enabled[0].name: zones has no extension point score"),
    (enabled({"name": "zones"}, point="filter"), "filter.enabled[0].name: zones takes part in every profile"),
    (enabled({"name": "other"}, point="filter"), "filter.enabled[0].name: there is no such plug-in: other"),
    (enabled({"name": "other", "weight": 2}, point="filter"), "filter.enabled[0].weight: no such field"),
    (enabled(FIT, point="bind"), "profiles[0].plugins.bind: no such field"),
    (
        enabled({"name": "SeedZoneFit/A b"}),
        "score.enabled[0].name: the instance 'A b' must be a lower-case RFC 1123 label",
    ),
    ({"plugins": {"filter": {"disabled": [{"name": "taints"}]}}}, "filter.disabled[0].name: taints cannot be disabled"),
    (
        {"plugins": {"multiPoint": {"disabled": [{"name": "usable"}]}}},
        "multiPoint.disabled[0].name: usable cannot be disabled",
    ),
    ({"plugins": {"score": {"disabled": [FIT]}}}, "score.disabled[0].name: SeedResourcesFit is not enabled"),
    (
        {"preset": "spread", "pluginConfig": [{"name": "ShootTopologySpread", "args": {}}]},
        "pluginConfig[0].args: ShootTopologySpread has none",
    ),
    ({"pluginConfig": [FIT]}, "pluginConfig[0].name: SeedResourcesFit is not enabled in this profile"),
    ({"preset": "binpack", "pluginConfig": [FIT, FIT]}, "pluginConfig[1].name: SeedResourcesFit is named twice"),
    (
        {"preset": "binpack", "pluginConfig": [{"name": "SeedZoneFit", "args": {"zones": 3}}]},
        "pluginConfig[0].args: SeedZoneFit has none",
    ),
    (
        {"preset": "binpack", "pluginConfig": [{"name": "Nothing"}]},
        "pluginConfig[0].name: there is no such plug-in: Nothing",
    ),
    (
        enabled({"name": "SeedAnnotation/cost"}),
        "pluginConfig: SeedAnnotation/cost needs args with annotation, min and max",
    ),
    (
        {"candidateDeterminationStrategy": "Weighted", **enabled(FIT)},
        "candidateDeterminationStrategy: Weighted without the score MinimalDistance",
    ),
    ({"allowAnyRegion": True}, "allowAnyRegion: has an effect only with the strategy Weighted"),
    ({"allowAnyRegion": "yes"}, "allowAnyRegion: must be true or false"),
]


@pytest.mark.parametrize(("profile", "problem"), BAD, ids=[problem[:60] for _, problem in BAD])
def test_a_profile_that_cannot_be_meant_keeps_the_scheduler_from_starting(profile: Any, problem: str) -> None:
    assert any(problem in found for found in problems_of(profile)), problems_of(profile)


def args(plugin: str, **given: Any) -> dict[str, Any]:
    return enabled({"name": plugin}, pluginConfig=[{"name": plugin, "args": given}])


def fit(**strategy: Any) -> dict[str, Any]:
    return args("SeedResourcesFit", scoringStrategy=strategy)


def added(**entry: Any) -> dict[str, Any]:
    return args("SeedAffinity", addedAffinity=[entry])


GOLD = {"matchLabels": {"tier": "gold"}}
BAD_ARGS: list[tuple[dict[str, Any], str]] = [
    (fit(type="Least"), "scoringStrategy.type: must be one of LeastAllocated, MostAllocated, RequestedToCapacityRatio"),
    (fit(kind="MostAllocated"), "scoringStrategy.kind: no such field"),
    (fit(resources=[]), "scoringStrategy.resources: must be a list of resources"),
    (
        fit(resources=[{"name": "shoots"}, {"name": "shoots"}]),
        "scoringStrategy.resources[1].name: shoots is named twice",
    ),
    (
        fit(resources=[{"name": "shoots", "weight": 0}]),
        "scoringStrategy.resources[0].weight: must be a whole number from 1",
    ),
    (fit(resources=[{}]), "scoringStrategy.resources[0].name: must be a text"),
    (
        fit(type="RequestedToCapacityRatio"),
        "scoringStrategy.shape: belongs to the type RequestedToCapacityRatio, which needs it",
    ),
    (fit(shape=SHAPE[:1]), "scoringStrategy.shape: belongs to the type RequestedToCapacityRatio"),
    (fit(**RATIO), "scoringStrategy.shape[1].utilization: must be above that of the point before"),
    (
        fit(type="RequestedToCapacityRatio", shape=[{"utilization": 101, "score": 11}]),
        "shape[0].score: must be a whole number from 0 to 10",
    ),
    (args("SeedResourcesFit", reserved=[{"name": "shoots"}]), "pluginConfig[0].args.reserved: no such field"),
    (
        args("SeedResourcesBalancedAllocation", resources=[{"name": "shoots", "weight": 2}]),
        "resources[0].weight: must be 1",
    ),
    (args("MinimalDistance", farthest=0), "args.farthest: must be a whole number above 0"),
    (args("SeedAnnotation", **{**COST, "min": "2.10"}), "args.min: must be below max"),
    (args("SeedAnnotation", **{**COST, "min": "0.1234"}), "args.min: must be a decimal of at most three places"),
    (args("SeedAnnotation", **{**COST, "max": True}), "args.max: must be a decimal"),
    (args("SeedAnnotation", **{**COST, "missing": 101}), "args.missing: must be a whole number from 0 to 100"),
    (args("SeedAnnotation", min="1", max="2"), "args.annotation: must be a text"),
    (args("SeedAffinity", addedAffinity=[]), "args.addedAffinity: must be a list of affinities"),
    (added(), "addedAffinity[0]: needs required or preferred terms"),
    (added(purposes=["prod"], required=[GOLD]), "addedAffinity[0].purposes: must be a list of purposes"),
    (added(required=[{}]), "addedAffinity[0].required[0]: must be a label selector that is not empty"),
    (added(required=["gold"]), "addedAffinity[0].required[0]: must be a label selector"),
    (added(required=[{"matchLabel": {"a": "b"}}]), "addedAffinity[0].required[0].matchLabel: no such field"),
    (
        added(required=[{"matchExpressions": [{"key": "a", "operator": "Is"}]}]),
        "required[0]: matchExpressions[0].operator",
    ),
    (
        added(preferred=[{"preference": GOLD}]),
        "addedAffinity[0].preferred[0].weight: must be a whole number from 1 to 100",
    ),
    (added(preferred=[{"weight": 5}]), "addedAffinity[0].preferred[0].preference: must be a mapping"),
    (
        added(preferred=[{"weight": 5, "preference": GOLD}] * 9),
        "addedAffinity[0].preferred: must not have more than 8 terms",
    ),
]


@pytest.mark.parametrize(("profile", "problem"), BAD_ARGS, ids=[problem[:60] for _, problem in BAD_ARGS])
def test_an_argument_that_does_not_fit_is_named_with_its_path(profile: Any, problem: str) -> None:
    assert any(problem in found for found in problems_of(profile)), problems_of(profile)


def test_all_problems_of_all_profiles_are_found_at_once() -> None:
    found = problems_of(
        {"schedulerName": "one", "preset": "none"},
        {"schedulerName": "one", **fit(type="None", resources=[{"name": "cpu"}, {"name": "cpu"}])},
        enabled({"name": "Other", "weight": 1000}),
        schedulers={"shoot": {"schedulerName": "mine", "candidateDeterminationStrategy": "Near"}},
        logLevel="loud",
    )
    assert {each.partition(": ")[0] for each in found} == {
        "logLevel",
        "profiles[0].preset",
        "profiles[1].schedulerName",
        "profiles[1].pluginConfig[0].args.scoringStrategy.type",
        "profiles[1].pluginConfig[0].args.scoringStrategy.resources[1].name",
        "profiles[2].plugins.score.enabled[0].name",
        "profiles[2].plugins.score.enabled[0].weight",
        "schedulers.shoot.schedulerName",
        "schedulers.shoot.candidateDeterminationStrategy",
    }


def test_weighted_needs_profiles_and_profiles_have_no_second_name() -> None:
    with pytest.raises(SettingsInvalid, match=r"candidateDeterminationStrategy: Weighted needs profiles"):
        parse_configuration(
            yaml.safe_dump({**HEAD, "schedulers": {"shoot": {"candidateDeterminationStrategy": "Weighted"}}})
        )
    assert problems_of("spread") == ["profiles[0]: must be a mapping, is 'spread'"]
    with pytest.raises(SettingsInvalid, match="profiles: must be a list of profiles"):
        parse_configuration(yaml.safe_dump({**HEAD, "profiles": []}))


def test_limits_of_a_profile_are_said_where_less_depends_on_it_than_it_says() -> None:
    spread, binpack, plain, near, empty = parsed(
        {"schedulerName": "spread", "preset": "spread"},
        {"schedulerName": "binpack", "preset": "binpack"},
        {"schedulerName": "plain", **enabled(FIT)},
        {"schedulerName": "near", **enabled({"name": "MinimalDistance"})},
        {"schedulerName": "empty"},
    )
    named = [[limit.partition(" ")[0] for limit in limits_of(each)] for each in (spread, binpack, plain, near, empty)]
    assert named == [[], [], [], ["no", "MinimalDistance"], []]


def test_the_filters_that_no_profile_disables_are_those_of_the_table() -> None:
    rows = {row.name for row in (*FILTERS, *CHECKS, STRATEGY)}
    assert set(BUILT_IN_FILTERS) == rows | {"cloudprofile", "project", "seed-affinity", "plugin"} == RULES
