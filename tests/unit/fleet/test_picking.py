"""Who is picked, who goes when there are too many, and what is told of it."""

from typing import Any

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.fleet.placement_parts import ResourceBinding
from gardenbus.fleet.binding_classes import BindingRecord
from gardenbus.fleet.cycle import decide
from gardenbus.fleet.cycle_result import CycleResult, UnexpectedState
from gardenbus.fleet.downscaling import downscale, surplus, worst_first
from gardenbus.fleet.fleet import Fleet
from gardenbus.fleet.framework import Score, ScoreGroup
from gardenbus.fleet.picking import ScoredCluster, needs_another_batch, ranked
from tests.support.fleets import (
    NOW,
    OBSOLETE,
    a_binding,
    a_member,
    a_placement,
    a_snapshot,
    an_agent,
    writes_bindings,
)

THREE = Fleet.of([a_member(name) for name in "abc"], NOW)


def _n(number: int | None) -> Document:
    return {"placementType": "PickN", "numberOfClusters": number}


def _decide(
    policy: Document | None, fleet: Fleet = THREE, bindings: list[ResourceBinding] | None = None
) -> CycleResult:
    return decide(a_placement(policy), a_snapshot(policy), fleet, bindings or [], NOW)


def _records(*stated: tuple[str, tuple[int, int] | None]) -> list[BindingRecord]:
    return [BindingRecord(a_binding(cluster, score=score)) for cluster, score in stated]


def _clusters(records: list[BindingRecord]) -> list[str]:
    return [record.cluster for record in records]


def test_pick_all_takes_whom_the_filters_leave_with_scores_of_zero_sorted_by_name() -> None:
    cycle = _decide(None)
    assert [pick.cluster for pick in cycle.creations] == ["a", "b", "c"]
    scores = [pick.decision.cluster_score for pick in cycle.creations]
    assert [(score.affinity_score, score.priority_score) for score in scores if score] == [(0, 0)] * 3
    assert cycle.fulfilled


def test_pick_all_is_fulfilled_by_nobody_too() -> None:
    cycle = _decide(None, Fleet.of([a_member("a", agent=an_agent(heartbeat=-1000))], NOW))
    assert not writes_bindings(cycle)
    assert cycle.fulfilled
    assert "0 cluster(s)" in cycle.message


def test_pick_all_never_takes_anything_of_its_own_policy_away() -> None:
    required = {"clusterSelectorTerms": [{"labelSelector": {"matchLabels": {"no": "where"}}}]}
    affinity = {"clusterAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    cycle = _decide({"placementType": "PickAll", "affinity": affinity}, THREE, [a_binding("a"), a_binding("b")])
    assert not writes_bindings(cycle)
    assert [one.cluster_name for one in cycle.decisions if one.selected] == ["a", "b"]


@pytest.mark.parametrize(
    ("wanted", "present", "obsolete", "expected"),
    [(1, 1, 0, None), (0, 1, 0, 1), (1, 1, 1, 0), (2, 1, 3, None), (1, 3, 2, 2)],
)
def test_there_are_too_many(wanted: int, present: int, obsolete: int, expected: int | None) -> None:
    assert surplus(wanted, present, obsolete) == expected


def test_pick_all_never_downscales() -> None:
    assert not writes_bindings(_decide({"placementType": "PickAll"}, THREE, [a_binding(name) for name in "abc"]))


def test_who_has_no_score_goes_first_then_the_worst_then_the_smaller_name() -> None:
    assert _clusters(worst_first(_records(("c", None), ("a", None), ("b", None)))) == ["a", "b", "c"]
    assert _clusters(worst_first(_records(("a", (0, 0)), ("b", None)))) == ["b", "a"]
    assert _clusters(worst_first(_records(("a", (0, 10)), ("b", (1, 20)), ("c", (0, 5))))) == ["c", "a", "b"]
    assert _clusters(worst_first(_records(("b", (1, 1)), ("a", (1, 1))))) == ["a", "b"]


SCHEDULED = (("c3", (1, 10)), ("c1", (1, 10)), ("c2", (0, 20)))
BOUND = (("c5", (1, 10)), ("c6", (0, 20)), ("c4", (1, 10)))


@pytest.mark.parametrize(
    ("bound", "count", "removed", "scheduled_left", "bound_left"),
    [
        ((("x", (0, 0)),), 2, ["c2", "c1"], ["c3"], ["x"]),
        ((("x", (0, 0)),), 3, ["c3", "c1", "c2"], [], ["x"]),
        (BOUND, 4, ["c3", "c1", "c2", "c6"], [], ["c4", "c5"]),
        (BOUND, 6, ["c3", "c1", "c2", "c6", "c4", "c5"], [], []),
        (BOUND, 0, [], ["c3", "c1", "c2"], ["c5", "c6", "c4"]),
    ],
)
def test_scheduled_ones_go_before_bound_ones(
    bound: Any, count: int, removed: list[str], scheduled_left: list[str], bound_left: list[str]
) -> None:
    gone, scheduled, kept = downscale(_records(*SCHEDULED), _records(*bound), count)
    assert (_clusters(gone), _clusters(scheduled), _clusters(kept)) == (removed, scheduled_left, bound_left)


@pytest.mark.parametrize("count", [7, -1])
def test_more_than_there_are_cannot_go(count: int) -> None:
    with pytest.raises(UnexpectedState):
        downscale(_records(*SCHEDULED), _records(*BOUND), count)


def test_downscaling_gives_up_obsolete_ones_first_and_schedules_nothing() -> None:
    bindings = [a_binding("a"), a_binding("b", "Scheduled"), a_binding("c", "Bound", OBSOLETE)]
    cycle = _decide(_n(1), THREE, bindings)
    assert sorted(cycle.unscheduled) == ["web-b", "web-c"]
    assert [one.cluster_name for one in cycle.decisions] == ["a"]
    assert not cycle.creations
    assert cycle.fulfilled


def test_downscaling_with_the_right_number_only_gives_up_obsolete_ones() -> None:
    cycle = _decide(_n(1), THREE, [a_binding("a"), a_binding("b", "Bound", OBSOLETE)])
    assert cycle.unscheduled == ("web-b",)


def test_obsolete_ones_stand_in_where_more_are_wanted() -> None:
    cycle = _decide(_n(2), THREE, [a_binding("a"), a_binding("b", "Bound", OBSOLETE)])
    assert [change.binding for change in cycle.changes] == ["web-b"]
    assert not cycle.creations


def test_the_best_scores_and_among_equals_the_later_names_go_first() -> None:
    groups = [ScoreGroup(0b010, Score(2, 10, 1)), ScoreGroup(0b101, Score(1, 20))]
    assert list(ranked(groups)) == [
        ScoredCluster(1, Score(2, 10, 1)),
        ScoredCluster(2, Score(1, 20)),
        ScoredCluster(0, Score(1, 20)),
    ]
    assert list(ranked([])) == []
    assert [pick.cluster for pick in _decide(_n(2)).creations] == ["c", "b"]
    assert [pick.cluster for pick in _decide(_n(9)).creations] == ["c", "b", "a"]


def test_none_are_picked_where_none_are_wanted() -> None:
    cycle = _decide(_n(0))
    assert not cycle.creations
    assert cycle.fulfilled


@pytest.mark.parametrize(
    ("desired", "limit", "made", "expected"),
    [(3, 3, 3, False), (3, 3, 2, False), (5, 1, 1, True), (5, 1, 0, False)],
)
def test_another_batch_follows(desired: int, limit: int, made: int, expected: bool) -> None:
    assert needs_another_batch(desired, limit, made) is expected


def test_fewer_than_wanted_are_taken_and_the_policy_stays_unfulfilled() -> None:
    cycle = _decide(_n(5))
    assert len(cycle.creations) == 3
    assert (cycle.fulfilled, cycle.reason) == (False, "SchedulingPolicyUnfulfilled")
    assert "3" in cycle.message


@pytest.mark.parametrize("annotations", [{}, {"kubernetes-fleet.io/number-of-clusters": "many"}])
def test_a_snapshot_that_does_not_say_how_many_ends_the_cycle(annotations: dict[str, str]) -> None:
    snapshot = a_snapshot(_n(None), metadata={"annotations": annotations})
    with pytest.raises(UnexpectedState, match="number-of-clusters"):
        decide(a_placement(_n(1)), snapshot, THREE, [], NOW)


def test_whom_an_earlier_policy_chose_is_preferred_among_equals() -> None:
    cycle = _decide(_n(1), THREE, [a_binding("a", "Bound", OBSOLETE)])
    assert [change.binding for change in cycle.changes] == ["web-a"]
    [decision] = [one for one in cycle.decisions if one.selected]
    assert decision.cluster_score
    assert (decision.cluster_score.priority_score, decision.cluster_score.affinity_score) == (0, 0)


def test_growing_moves_nothing() -> None:
    bindings = [a_binding("a"), a_binding("b", "Scheduled")]
    cycle = _decide(_n(3), THREE, bindings)
    assert [pick.cluster for pick in cycle.creations] == ["c"]
    assert not cycle.changes
    assert not cycle.unscheduled


def test_pick_fixed_sorts_the_named_into_valid_ineligible_and_missing_in_their_order() -> None:
    fleet = Fleet.of([a_member("a"), a_member("b"), a_member("sick", agent=an_agent(joined="False"))], NOW)
    policy: Document = {"placementType": "PickFixed", "clusterNames": ["nowhere", "b", "sick", "a"]}
    cycle = _decide(policy, fleet)
    assert [pick.cluster for pick in cycle.creations] == ["b", "a"]
    assert [(one.cluster_name, one.selected) for one in cycle.decisions] == [
        ("b", True),
        ("a", True),
        ("sick", False),
        ("nowhere", False),
    ]
    assert all(one.cluster_score is None for one in cycle.decisions)
    assert "joined" in cycle.decisions[2].reason
    assert not cycle.fulfilled


def test_pick_fixed_is_fulfilled_when_nothing_is_ineligible_or_missing() -> None:
    assert _decide({"placementType": "PickFixed", "clusterNames": ["a", "b"]}).fulfilled


def test_pick_fixed_looks_at_neither_taints_nor_affinity() -> None:
    fleet = Fleet.of([a_member("a", taints=[{"key": "k", "effect": "NoSchedule"}])], NOW)
    assert _decide({"placementType": "PickFixed", "clusterNames": ["a"]}, fleet).creations


def test_pick_fixed_keeps_takes_over_restores_and_gives_up() -> None:
    fleet = Fleet.of([a_member("sick", agent=an_agent(joined="False")), *(a_member(name) for name in "abcd")], NOW)
    bindings = [
        a_binding("a"),
        a_binding("b", "Bound", OBSOLETE),
        a_binding("c", "Unscheduled", OBSOLETE, previous="Bound"),
        a_binding("d", "Bound", OBSOLETE),
        a_binding("sick", "Bound", OBSOLETE),
    ]
    cycle = _decide({"placementType": "PickFixed", "clusterNames": ["a", "b", "c", "sick"]}, fleet, bindings)
    assert not cycle.creations
    assert [(change.binding, change.state) for change in cycle.changes] == [("web-b", None), ("web-c", "Bound")]
    assert cycle.unscheduled == ("web-d", "web-sick")


def test_pick_fixed_keeps_what_it_placed_on_a_cluster_that_became_ineligible_and_tells_it_is_not_selected() -> None:
    fleet = Fleet.of([a_member("sick", agent=an_agent(joined="False"))], NOW)
    cycle = _decide({"placementType": "PickFixed", "clusterNames": ["sick"]}, fleet, [a_binding("sick")])
    assert not writes_bindings(cycle)
    assert [(one.cluster_name, one.selected) for one in cycle.decisions] == [("sick", False)]


def test_pick_fixed_without_names_does_nothing_and_tells_nothing() -> None:
    policy: Document = {"placementType": "PickFixed", "clusterNames": []}
    cycle = _decide(policy, THREE, [a_binding("a", snapshot=OBSOLETE)])
    assert not writes_bindings(cycle)
    assert not cycle.updates_status


def test_a_thousand_selected_are_told_and_nothing_else() -> None:
    fleet = Fleet.of([a_member(f"c{place:04}") for place in range(1001)], NOW)
    cycle = _decide(_n(1000), fleet)
    assert len(cycle.decisions) == 1000
    everyone = _decide(None, fleet)
    assert len(everyone.creations) == 1001
    assert len(everyone.decisions) == 1000


def test_twenty_of_the_others_are_told_those_with_scores_first() -> None:
    well = [a_member(f"w{place:02}") for place in range(16)]
    sick = [a_member(f"s{place:02}", agent=an_agent(joined="False")) for place in range(15)]
    cycle = _decide(_n(1), Fleet.of(well + sick, NOW))
    others = [one for one in cycle.decisions if not one.selected]
    assert [one.cluster_name for one in others] == [f"w{place:02}" for place in range(14, -1, -1)] + [
        f"s{place:02}" for place in range(5)
    ]
    assert all(one.cluster_score for one in others[:15])
    assert not any(one.cluster_score for one in others[15:])


def test_a_selected_cluster_that_is_refused_by_now_is_hidden_and_takes_its_place_among_the_refused() -> None:
    sick = [a_member(f"s{place:02}", agent=an_agent(joined="False")) for place in range(25)]
    cycle = _decide(_n(2), Fleet.of(sick, NOW), [a_binding("s00")])
    assert [one.cluster_name for one in cycle.decisions if one.selected] == ["s00"]
    assert [one.cluster_name for one in cycle.decisions if not one.selected] == [
        f"s{place:02}" for place in range(1, 20)
    ]


def test_who_is_chosen_is_told_in_the_order_created_taken_over_scheduled_bound() -> None:
    fleet = Fleet.of([a_member(name) for name in "abcdef"], NOW)
    bindings = [a_binding("a"), a_binding("b", "Scheduled"), a_binding("c", "Bound", OBSOLETE)]
    cycle = _decide(_n(5), fleet, bindings)
    assert [one.cluster_name for one in cycle.decisions if one.selected] == ["f", "e", "c", "b", "a"]
