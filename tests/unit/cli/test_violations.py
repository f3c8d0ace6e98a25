"""Placed shoots that break a rule between shoots: found where they are, moved where they would be placed."""

from typing import Any

from gardenbus.cli.migrations.violations import BrokenRule, plan_violations
from gardenbus.cli.simulate.scheduling import snapshot_of
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.scheduling_profiles import SchedulingProfile
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot, merged, resolved_as

BASE = (a_cloudprofile(), a_project())
APART = {
    "groups": ["pair"],
    "affinity": {"shootAntiAffinity": {"required": [{"group": "pair", "topologyKey": "seed"}]}},
}


def placed(name: str, seed: str, rules: Document, **changes: Any) -> Document:
    status = {"lastOperation": {"type": "Create", "state": "Succeeded"}, "seedName": seed}
    shoot = merged(a_shoot(name), {"spec": {"seedName": seed}, "status": status, "metadata": resolved_as(rules)})
    return merged(shoot, changes)


def plan(*documents: Document, max_moves: int | None = None) -> list[BrokenRule]:
    shoots = [each for each in documents if each["kind"] == "Shoot"]
    return list(plan_violations(shoots, snapshot_of([*BASE, *documents]), max_moves=max_moves))


def test_the_first_of_a_pair_moves_and_the_other_breaks_nothing_then() -> None:
    pair = [placed(name, "a", APART) for name in ("one", "two")]
    (broken,) = plan(a_seed("a"), a_seed("b"), *pair)
    assert (broken.name, broken.seed, broken.rule, broken.target) == ("one", "a", "shoot-anti-affinity", "b")


def test_where_no_other_seed_is_possible_both_stay_and_say_why() -> None:
    pair = [placed(name, "a", APART) for name in ("one", "two")]
    found = plan(a_seed("a"), *pair)
    assert [(each.name, each.target) for each in found] == [("one", None), ("two", None)]
    assert all(each.stays_because for each in found)


def test_moves_are_as_many_as_are_requested() -> None:
    pair = [placed(name, "a", APART) for name in ("one", "two", "three")]
    found = plan(a_seed("a"), a_seed("b"), a_seed("c"), *pair, max_moves=1)
    assert [(each.name, each.target) for each in found] == [("one", "b"), ("three", None), ("two", None)]


def test_shoots_that_keep_their_rules_or_have_none_are_not_named() -> None:
    apart = [placed("one", "a", APART), placed("two", "b", APART), placed("plain", "a", {"requests": {}})]
    assert plan(a_seed("a"), a_seed("b"), *apart) == []


def test_who_follows_a_neighbour_that_moved_is_moved_after_it() -> None:
    near = {"affinity": {"shootAffinity": {"required": [{"group": "db", "topologyKey": "seed"}]}}}
    found = plan(a_seed("a"), a_seed("b"), placed("app", "a", near), placed("store", "b", {"groups": ["db"]}))
    assert [(each.name, each.rule, each.target) for each in found] == [("app", "shoot-affinity", "b")]


def test_shoots_of_a_scheduler_of_its_own_move_by_its_profile_alone() -> None:
    pair = [placed(name, "a", APART, spec={"schedulerName": "mine"}) for name in ("one", "two")]
    documents = [a_seed("a"), a_seed("b"), *pair]
    snapshot = snapshot_of([*BASE, *documents])
    without = plan_violations(pair, snapshot)
    assert [each.target for each in without] == [None, None]
    assert "whose rules are not known here" in without[0].stays_because
    (broken,) = plan_violations(pair, snapshot, profiles=[SchedulingProfile(scheduler_name="mine")])
    assert (broken.name, broken.target) == ("one", "b")
