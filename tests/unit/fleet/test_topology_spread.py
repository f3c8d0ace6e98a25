"""How evenly the chosen clusters spread."""

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.fleet.member_clusters import MemberCluster
from gardenbus.common.api.fleet.placement_parts import ResourceBinding
from gardenbus.fleet.cycle import decide
from gardenbus.fleet.cycle_result import CycleResult, UnexpectedState
from gardenbus.fleet.fleet import Fleet
from gardenbus.fleet.topology_spread import skew_change
from tests.support.fleets import NOW, OBSOLETE, a_binding, a_member, a_placement, a_snapshot, an_agent


@pytest.mark.parametrize(
    ("counts", "target", "max_skew", "violates", "change"),
    [
        ((2, 2, 2), 2, 1, False, 1),
        ((2, 2, 2), 2, 0, True, 1),
        ((1, 2, 2), 1, 1, False, -1),
        ((1, 4, 4), 1, 1, True, -1),
        ((1, 1, 2), 1, 1, False, 0),
        ((1, 1, 3), 1, 1, True, 0),
        ((1, 2, 3), 2, 2, False, 0),
        ((1, 2, 3), 2, 1, True, 0),
        ((1, 2, 5, 3), 3, 5, False, 0),
        ((1, 2, 5, 3), 3, 3, True, 0),
        ((1, 2, 5), 5, 5, False, 1),
        ((1, 2, 5), 5, 2, True, 1),
    ],
)
def test_one_more_in_a_domain_changes_the_skew(
    counts: tuple[int, ...], target: int, max_skew: int, violates: bool, change: int
) -> None:
    smallest, second, *_ = ordered = sorted(counts)
    assert skew_change(target, smallest, second, ordered[-1], max_skew) == (violates, change)


def test_a_count_that_no_domain_can_have_is_an_error() -> None:
    with pytest.raises(UnexpectedState):
        skew_change(0, 1, 1, 1, 1)


def _region(*names: str, region: str | None) -> list[MemberCluster]:
    return [a_member(name, {"region": region} if region else {}) for name in names]


def _policy(number: int, *constraints: Document) -> Document:
    return {"placementType": "PickN", "numberOfClusters": number, "topologySpreadConstraints": list(constraints)}


def _decide(
    clusters: list[MemberCluster], policy: Document, bindings: list[ResourceBinding] | None = None
) -> CycleResult:
    return decide(a_placement(policy), a_snapshot(policy), Fleet.of(clusters, NOW), bindings or [], NOW)


HARD: Document = {"topologyKey": "region"}
SOFT: Document = {"topologyKey": "region", "whenUnsatisfiable": "ScheduleAnyway"}
EU = _region("a", "b", "c", region="eu")
US = _region("d", "e", region="us")


def test_batches_of_one_follow_each_other_within_a_cycle() -> None:
    cycle = _decide(EU + US, _policy(4, HARD))
    assert [pick.cluster for pick in cycle.creations] == ["e", "c", "d", "b"]
    assert (cycle.batches, cycle.fulfilled) == (4, True)
    scores = [pick.decision.cluster_score for pick in cycle.creations]
    assert [score.priority_score for score in scores if score] == [-1, 1, -1, 1]


def test_a_hard_constraint_keeps_off_what_would_spread_too_unevenly() -> None:
    cycle = _decide(EU + US[:1], _policy(4, HARD))
    assert [pick.cluster for pick in cycle.creations] == ["d", "c", "b"]
    assert not cycle.fulfilled
    [rejected] = [one for one in cycle.decisions if not one.selected]
    assert rejected.cluster_name == "a"
    assert "region" in rejected.reason


def test_domains_without_usable_clusters_cap_the_skew() -> None:
    sick = a_member("sick", {"region": "ap"}, agent=an_agent(heartbeat=-1000))
    cycle = _decide([*EU, *US, sick], _policy(4, HARD))
    assert [pick.cluster for pick in cycle.creations] == ["e", "c"]
    assert not cycle.fulfilled


def test_clusters_without_the_label_are_outside() -> None:
    cycle = _decide(EU + _region("x", "y", region=None), _policy(5, HARD))
    assert cycle.fulfilled
    scores = {pick.cluster: pick.decision.cluster_score for pick in cycle.creations}
    assert {name: score.priority_score for name, score in scores.items() if score} == {
        "y": 0,
        "x": 0,
        "c": -1,
        "b": -1,
        "a": -1,
    }


def test_a_key_that_no_cluster_has_constrains_nothing() -> None:
    assert len(_decide(EU, _policy(3, {"topologyKey": "zone"})).creations) == 3


def test_a_soft_constraint_costs_a_thousand_where_it_is_violated() -> None:
    cycle = _decide(EU + US[:1], _policy(4, SOFT))
    scores = [pick.decision.cluster_score for pick in cycle.creations]
    assert [pick.cluster for pick in cycle.creations] == ["d", "c", "b", "a"]
    assert [score.priority_score for score in scores if score] == [-1, 1, -1, -1000]


def test_a_point_of_spread_outweighs_any_affinity() -> None:
    preferred = [{"weight": 100, "preference": {"labelSelector": {"matchLabels": {"region": "eu"}}}}]
    affinity = {"clusterAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    cycle = _decide(EU + US, {**_policy(4, HARD), "affinity": affinity})
    assert [pick.cluster for pick in cycle.creations] == ["c", "e", "b", "d"]


def test_only_bindings_of_the_current_policy_are_counted() -> None:
    bindings = [a_binding("a", "Scheduled"), a_binding("b", "Unscheduled", previous="Bound"), a_binding("gone")]
    cycle = _decide(EU + US, _policy(2, HARD), bindings)
    assert [pick.cluster for pick in cycle.creations] == ["e"]


def test_the_first_violated_constraint_in_the_order_of_the_list_is_the_reason() -> None:
    clusters = [a_member("a", {"region": "eu", "zone": "1"}), a_member("b", {"region": "eu", "zone": "1"})]
    clusters += [a_member("c", {"region": "us", "zone": "2"}, agent=an_agent(heartbeat=-1000))]
    for first, second in (("region", "zone"), ("zone", "region")):
        cycle = _decide(clusters, _policy(2, {"topologyKey": first}, {"topologyKey": second}))
        [reason] = [one.reason for one in cycle.decisions if one.cluster_name == "a"]
        assert first in reason


def test_obsolete_bindings_come_back_although_the_first_batch_gave_them_up() -> None:
    bindings = [a_binding("a", "Bound", OBSOLETE), a_binding("d", "Scheduled", OBSOLETE), a_binding("b", "Bound", "x")]
    cycle = _decide(EU[:2] + US[:1], _policy(3, {"topologyKey": "region", "maxSkew": 2}), bindings)
    assert not cycle.creations
    assert not cycle.unscheduled
    assert [(one.binding, one.state, one.drops_previous_state) for one in cycle.changes] == [
        ("web-d", None, False),
        ("web-b", None, False),
        ("web-a", None, False),
    ]


def test_stickiness_holds_for_the_first_batch_only() -> None:
    bindings = [a_binding("a", "Bound", OBSOLETE), a_binding("b", "Bound", OBSOLETE)]
    cycle = _decide(EU, _policy(2, SOFT), bindings)
    assert [change.binding for change in cycle.changes] == ["web-b"]
    assert [pick.cluster for pick in cycle.creations] == ["c"]
    assert cycle.unscheduled == ("web-a",)


def test_many_domains_are_weighed_as_few_are() -> None:
    clusters = [a_member(f"c{place:02}", {"host": f"h{place}", "region": f"r{place % 3}"}) for place in range(30)]
    cycle = _decide(clusters, _policy(9, {"topologyKey": "host"}, HARD))
    regions = [int(pick.cluster[1:]) % 3 for pick in cycle.creations]
    assert sorted(regions) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
