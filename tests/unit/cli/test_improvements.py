"""Rebalancing by scores: shoots of a scored profile move where their sum rises, one after the other."""

from datetime import UTC, datetime, timedelta
from typing import Any

from gardenbus.cli.migrations.improvements import MOVED_AT, PROTECT_FROM_REBALANCING, ImprovementLimits
from gardenbus.cli.migrations.rebalancing import RebalancingPlan, plan_rebalancing
from gardenbus.cli.simulate.profiles import profiles_for
from gardenbus.cli.simulate.scheduling import snapshot_of
from gardenbus.common.api.configuration.scheduler import parse_configuration
from gardenbus.common.api.document import Document
from tests.support.builders import a_cloudprofile, a_condition, a_project, a_seed, a_shoot, merged, resolved_as

BACKUP: Document = {
    "spec": {"backup": {"provider": "aws"}},
    "status": {"conditions": [a_condition("GardenletReady"), a_condition("BackupBucketsReady")]},
}
NOW = datetime(2026, 1, 2, tzinfo=UTC)
SPREAD = profiles_for("spread", (), (), "SameRegion").for_all
CHEAP = """
apiVersion: scheduler.config.gardener.cloud/v1alpha1
kind: SchedulerConfiguration
profiles:
- schedulerName: cheap
  plugins: {score: {enabled: [{name: SeedAnnotation/cost}]}}
  pluginConfig:
  - {name: SeedAnnotation/cost, args: {annotation: cost, min: "0", max: "100", reverse: true}}
"""


def seed(name: str, shoots: int = 10, **changes: Any) -> Document:
    return merged(a_seed(name, shoots=shoots), merged(BACKUP, changes))


def placed(name: str, place: str, **changes: Any) -> Document:
    status = {"seedName": place, "lastOperation": {"type": "Reconcile", "state": "Succeeded"}}
    return a_shoot(name, **merged({"spec": {"seedName": place}, "status": status}, changes))


def planned(*documents: Document, improvement: int = 10, max_moves: int | None = None) -> RebalancingPlan:
    assert SPREAD is not None
    profiles = [SPREAD, *parse_configuration(CHEAP).served]
    shoots = [each for each in documents if each["kind"] == "Shoot"]
    snapshot = snapshot_of([a_project(), a_cloudprofile(), *documents])
    return plan_rebalancing(
        shoots,
        snapshot,
        profiles=profiles,
        limits=ImprovementLimits(improvement, timedelta(hours=24), NOW),
        max_moves=max_moves,
    )


def targets(plan: RebalancingPlan) -> list[tuple[str, str]]:
    return [(move.name, move.target) for move in plan.moves]


def test_shoots_move_as_long_as_each_gains_and_no_further() -> None:
    plan = planned(seed("a"), seed("b"), *(placed(f"s{number}", "a") for number in range(4)))

    assert targets(plan) == [("s0", "b"), ("s1", "b")], "with two on each seed nobody is better off by moving"
    assert [each.points for each in plan.improvements] == [30, 10]


def test_the_greatest_gain_comes_first_and_the_first_by_name_among_equals() -> None:
    costs = {"dear": "90", "middle": "50", "cheap": "10"}
    seeds = [seed(name, 1, metadata={"annotations": {"cost": cost}}) for name, cost in costs.items()]
    mine = {"spec": {"schedulerName": "cheap"}}
    plan = planned(*seeds, placed("s1", "middle", **mine), placed("s0", "dear", **mine))

    assert targets(plan) == [("s0", "cheap")]
    assert (plan.improvements[0].before, plan.improvements[0].after) == (10, 90)


def test_a_gain_below_the_least_is_none() -> None:
    seeds = [seed(name, metadata={"annotations": {"cost": cost}}) for name, cost in (("a", "50"), ("b", "41"))]
    shoot = placed("s", "a", spec={"schedulerName": "cheap"})

    assert targets(planned(*seeds, shoot)) == []
    assert targets(planned(*seeds, shoot, improvement=9)) == [("s", "b")]


def test_protected_shoots_and_those_that_moved_lately_stay() -> None:
    costs = [seed(name, metadata={"annotations": {"cost": cost}}) for name, cost in (("a", "90"), ("b", "0"))]
    mine = {"spec": {"schedulerName": "cheap"}}
    plan = planned(
        *costs,
        placed("protected", "a", metadata={"annotations": {PROTECT_FROM_REBALANCING: "true"}}, **mine),
        placed("lately", "a", metadata={"annotations": {MOVED_AT: "2026-01-01T12:00:00Z"}}, **mine),
        placed("long-ago", "a", metadata={"annotations": {MOVED_AT: "2025-12-31T12:00:00Z"}}, **mine),
    )

    assert targets(plan) == [("long-ago", "b")]


def test_no_move_breaks_a_rule_or_overfills() -> None:
    apart = {"groups": ["p"], "affinity": {"shootAntiAffinity": {"required": [{"group": "p", "topologyKey": "seed"}]}}}
    seeds = [seed(name, room, metadata={"annotations": {"cost": cost}}) for name, room, cost in _SEEDS]
    pair = [
        merged(placed(name, place, spec={"schedulerName": "cheap"}), {"metadata": resolved_as(apart)})
        for name, place in (("one", "dear"), ("two", "middle"))
    ]
    plain = placed("plain", "dear", spec={"schedulerName": "cheap"})

    assert targets(planned(*seeds, *pair, plain)) == [("one", "cheap"), ("plain", "middle")]


_SEEDS = (("dear", 10, "90"), ("middle", 2, "50"), ("cheap", 1, "10"))


def test_shoots_of_a_scored_profile_are_not_balanced_by_their_number() -> None:
    other = {"spec": {"schedulerName": "cheap"}}
    plan = planned(seed("a"), seed("b"), *(placed(f"s{number}", "a", **other) for number in range(9)))

    assert targets(plan) == [], "all seeds cost the same, and their number counts for nothing"


def test_no_more_moves_are_planned_than_wanted() -> None:
    shoots = [placed(f"s{number}", "a") for number in range(9)]
    assert len(planned(seed("a"), seed("b"), *shoots, max_moves=2).moves) == 2


def test_a_seed_that_is_farther_away_is_no_gain_whatever_its_sum() -> None:
    seeds = [
        seed("near", metadata={"annotations": {"cost": "90"}}),
        seed("far", metadata={"annotations": {"cost": "0"}}, spec={"provider": {"region": "eu-central-1"}}),
    ]
    assert targets(planned(*seeds, placed("s", "near", spec={"schedulerName": "cheap"}))) == []
