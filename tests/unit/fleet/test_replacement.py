"""What a policy requires always: a cluster that stops matching is replaced, and serves until another does."""

from collections.abc import Sequence

from gardenbus.common.api.document import Document
from gardenbus.common.api.fleet.member_clusters import MemberCluster
from gardenbus.common.api.fleet.placement_parts import ResourceBinding
from gardenbus.fleet.cycle import decide
from gardenbus.fleet.cycle_result import CycleResult
from gardenbus.fleet.fleet import Fleet
from tests.support.fleets import (
    AVAILABLE,
    NOW,
    a_binding,
    a_member,
    a_placement,
    a_snapshot,
    applied,
    at,
    writes_bindings,
)

READY = [AVAILABLE]
TERMS = {"clusterSelectorTerms": [{"labelSelector": {"matchLabels": {"env": "prod"}}}]}
ALWAYS = {"clusterAffinity": {"requiredDuringSchedulingRequiredDuringExecution": TERMS}}


def _policy(number: int | None) -> Document:
    if number is None:
        return {"placementType": "PickAll", "affinity": ALWAYS}
    return {"placementType": "PickN", "numberOfClusters": number, "affinity": ALWAYS}


def _fleet(prod: str, other: str = "") -> Fleet:
    clusters: list[MemberCluster] = [a_member(name, {"env": "prod"}) for name in prod]
    return Fleet.of(clusters + [a_member(name, {"env": "dev"}) for name in other], NOW)


def _decide(
    number: int | None, fleet: Fleet, bindings: Sequence[ResourceBinding], surge: int | str = "25%", now: float = NOW
) -> CycleResult:
    policy = _policy(number)
    placement = a_placement(policy, spec={"strategy": {"rollingUpdate": {"maxSurge": surge}}})
    return decide(placement, a_snapshot(policy), fleet, bindings, now)


def test_it_filters_as_any_requirement_does() -> None:
    assert [pick.cluster for pick in _decide(3, _fleet("ab", "c"), []).creations] == ["b", "a"]


def test_both_requirements_must_hold() -> None:
    gold = {"clusterSelectorTerms": [{"labelSelector": {"matchLabels": {"tier": "gold"}}}]}
    affinity = {**ALWAYS["clusterAffinity"], "requiredDuringSchedulingIgnoredDuringExecution": gold}
    policy = {"placementType": "PickAll", "affinity": {"clusterAffinity": affinity}}
    fleet = Fleet.of(
        [
            a_member("a", {"env": "prod"}),
            a_member("b", {"tier": "gold"}),
            a_member("c", {"env": "prod", "tier": "gold"}),
        ],
        NOW,
    )
    assert [pick.cluster for pick in decide(a_placement(policy), a_snapshot(policy), fleet, [], NOW).creations] == ["c"]


def test_a_cluster_that_stops_matching_gets_a_replacement_and_stays() -> None:
    cycle = _decide(2, _fleet("bc", "a"), [a_binding("a", conditions=READY), a_binding("b", conditions=READY)])
    assert [pick.cluster for pick in cycle.creations] == ["c"]
    assert not cycle.unscheduled
    assert cycle.replacing == ("web-a",)
    assert cycle.fulfilled
    assert [one.cluster_name for one in cycle.decisions if one.selected] == ["c", "b", "a"]


def test_it_goes_once_its_replacement_is_available() -> None:
    bindings = [a_binding("a", conditions=READY), a_binding("b", conditions=READY), a_binding("c")]
    assert not writes_bindings(_decide(2, _fleet("bc", "a"), bindings))
    cycle = _decide(2, _fleet("bc", "a"), [*bindings[:2], a_binding("c", conditions=READY)])
    assert cycle.unscheduled == ("web-a",)
    assert not cycle.replacing


def test_it_stays_while_nothing_can_replace_it() -> None:
    cycle = _decide(2, _fleet("b", "a"), [a_binding("a", conditions=READY), a_binding("b", conditions=READY)])
    assert not writes_bindings(cycle)
    assert cycle.replacing == ("web-a",)
    assert not cycle.fulfilled


def test_what_never_reached_its_cluster_goes_at_once() -> None:
    cycle = _decide(1, _fleet("b", "a"), [a_binding("a", "Scheduled")])
    assert cycle.unscheduled == ("web-a",)
    assert [pick.cluster for pick in cycle.creations] == ["b"]


def test_those_that_do_not_serve_go_first() -> None:
    bindings = [a_binding("a", conditions=READY), a_binding("b"), a_binding("c", conditions=READY), a_binding("d")]
    cycle = _decide(2, _fleet("cd", "ab"), bindings)
    assert cycle.unscheduled == ("web-b",)
    assert cycle.replacing == ("web-a",)


def test_a_cluster_that_matches_again_stays_and_what_should_replace_it_goes() -> None:
    bindings = [a_binding("a", conditions=READY), a_binding("b", "Scheduled")]
    cycle = _decide(1, _fleet("ab"), bindings)
    assert cycle.unscheduled == ("web-b",)


def test_without_surge_it_goes_when_its_replacement_is_chosen() -> None:
    cycle = _decide(1, _fleet("b", "a"), [a_binding("a", conditions=READY)], surge=0)
    assert [pick.cluster for pick in cycle.creations] == ["b"]
    assert cycle.unscheduled == ("web-a",)


def test_pick_all_gives_it_up_at_once() -> None:
    cycle = _decide(None, _fleet("b", "a"), [a_binding("a", conditions=READY), a_binding("b", conditions=READY)])
    assert cycle.unscheduled == ("web-a",)


def test_a_replacement_that_cannot_be_observed_is_waited_for() -> None:
    untracked = {**AVAILABLE, "reason": "NotAllWorkAreAvailabilityTrackable", "lastTransitionTime": at(-20)}
    bindings = [a_binding("a", conditions=READY), a_binding("b", conditions=[untracked])]
    cycle = _decide(1, _fleet("b", "a"), bindings)
    assert (cycle.replacing, cycle.recheck_after) == (("web-a",), 40.0)
    assert _decide(1, _fleet("b", "a"), bindings, now=NOW + 40).unscheduled == ("web-a",)


def test_the_leaving_one_does_not_count_in_the_spread() -> None:
    policy = {**_policy(1), "topologySpreadConstraints": [{"topologyKey": "region"}]}
    clusters = [
        a_member("a", {"env": "dev", "region": "eu"}),
        a_member("b", {"env": "prod", "region": "eu"}),
        a_member("c", {"env": "dev", "region": "us"}),
    ]
    cycle = decide(a_placement(policy), a_snapshot(policy), Fleet.of(clusters, NOW), [a_binding("a")], NOW)
    assert [pick.cluster for pick in cycle.creations] == ["b"]


def test_deciding_again_changes_nothing_while_nothing_happens() -> None:
    bindings = [a_binding("a", conditions=READY), a_binding("b", conditions=READY)]
    fleet = _fleet("bc", "a")
    bindings = applied(bindings, _decide(2, fleet, bindings))
    assert not writes_bindings(_decide(2, fleet, bindings))
