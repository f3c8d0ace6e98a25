"""Into which class a binding falls, and what cross-referencing makes of it."""

import pytest

from gardenbus.common.api.fleet.placement_parts import ResourceBinding
from gardenbus.fleet.binding_classes import classify
from gardenbus.fleet.cycle import decide
from gardenbus.fleet.cycle_result import CycleResult, UnexpectedState
from gardenbus.fleet.fleet import Fleet
from tests.support.fleets import (
    CURRENT,
    NOW,
    OBSOLETE,
    a_binding,
    a_member,
    a_placement,
    a_snapshot,
    at,
    leaving,
    writes_bindings,
)

FLEET = Fleet.of([a_member("a"), a_member("b"), leaving(a_member("gone"))], NOW)


@pytest.mark.parametrize(
    ("binding", "expected"),
    [
        pytest.param(a_binding("nowhere", "Unscheduled", OBSOLETE, deletionTimestamp=at()), "deleting", id="deleting"),
        pytest.param(a_binding("a", deletionTimestamp=at()), "deleting", id="bound and deleting"),
        pytest.param(a_binding("nowhere", "Unscheduled"), "unscheduled", id="unscheduled, cluster missing"),
        pytest.param(a_binding("gone", "Unscheduled"), "unscheduled", id="unscheduled, cluster leaving"),
        pytest.param(a_binding("gone"), "dangling", id="bound, cluster leaving"),
        pytest.param(a_binding("nowhere", "Scheduled", OBSOLETE), "dangling", id="obsolete, cluster missing"),
        pytest.param(a_binding("a", snapshot=OBSOLETE), "obsolete", id="bound by an earlier policy"),
        pytest.param(a_binding("a", "Scheduled", OBSOLETE), "obsolete", id="scheduled by an earlier policy"),
        pytest.param(a_binding("a", "Scheduled"), "scheduled", id="scheduled"),
        pytest.param(a_binding("a"), "bound", id="bound"),
    ],
)
def test_a_binding_falls_into_the_first_class_that_fits(binding: ResourceBinding, expected: str) -> None:
    classes = classify([binding], CURRENT, FLEET)
    names = ("deleting", "unscheduled", "dangling", "obsolete", "scheduled", "bound")
    assert [name for name in names if getattr(classes, name)] == [expected]


def test_an_unhealthy_tainted_or_relabelled_cluster_keeps_its_binding() -> None:
    fleet = Fleet.of([a_member("a", taints=[{"key": "k", "effect": "NoSchedule"}], agent={"type": "MemberAgent"})], NOW)
    policy = _requiring("a", "b")
    cycle = decide(a_placement(policy), a_snapshot(policy), fleet, [a_binding("a")], NOW)
    assert not writes_bindings(cycle)
    assert [(one.cluster_name, one.selected) for one in cycle.decisions] == [("a", True)]


def test_a_picked_cluster_without_binding_gets_a_scheduled_one() -> None:
    cycle = _picked("a")
    assert [pick.cluster for pick in cycle.creations] == ["a"]
    assert cycle.creations[0].decision.selected
    assert not cycle.changes
    assert not cycle.unscheduled


def test_obsolete_bindings_of_picked_clusters_are_taken_over_in_their_state() -> None:
    cycle = _picked("a", "b", bindings=[a_binding("a", "Bound", OBSOLETE), a_binding("b", "Scheduled", OBSOLETE)])
    assert not cycle.creations
    assert not cycle.unscheduled
    assert [(change.binding, change.snapshot, change.state) for change in cycle.changes] == [
        ("web-a", CURRENT, None),
        ("web-b", CURRENT, None),
    ]


def test_an_obsolete_binding_of_a_cluster_that_is_not_picked_is_given_up() -> None:
    cycle = _picked("a", bindings=[a_binding("a", "Bound", OBSOLETE), a_binding("b", "Bound", OBSOLETE)])
    assert [change.binding for change in cycle.changes] == ["web-a"]
    assert cycle.unscheduled == ("web-b",)


def test_an_unscheduled_binding_of_a_cluster_that_is_not_picked_stays_as_it_is() -> None:
    cycle = _picked("a", bindings=[a_binding("b", "Unscheduled", previous="Bound")])
    assert [pick.cluster for pick in cycle.creations] == ["a"]
    assert not cycle.changes
    assert not cycle.unscheduled


@pytest.mark.parametrize("before", ["Bound", "Scheduled"])
def test_an_unscheduled_binding_of_a_picked_cluster_becomes_what_it_was(before: str) -> None:
    cycle = _picked("a", bindings=[a_binding("a", "Unscheduled", OBSOLETE, previous=before)])
    assert not cycle.creations
    [change] = cycle.changes
    assert (change.state, change.snapshot, change.drops_previous_state) == (before, CURRENT, True)


@pytest.mark.parametrize("before", [None, "Unscheduled", "Nonsense"])
def test_an_unscheduled_binding_that_does_not_say_what_it_was_ends_the_cycle(before: str | None) -> None:
    with pytest.raises(UnexpectedState, match="web-a"):
        _picked("a", bindings=[a_binding("a", "Unscheduled", previous=before)])


def test_bindings_on_clusters_that_left_are_given_up_in_every_flow() -> None:
    for policy in (None, _pick_n(1), {"placementType": "PickFixed", "clusterNames": ["a"]}):
        cycle = decide(a_placement(policy), a_snapshot(policy), FLEET, [a_binding("gone"), a_binding("a")], NOW)
        assert cycle.dangling == ("web-gone",)
        assert not cycle.unscheduled


def test_the_scheduler_lets_go_of_deleting_bindings_that_carry_its_finalizer() -> None:
    held = a_binding("a", deletionTimestamp=at())
    free = a_binding("b", deletionTimestamp=at(), finalizers=["kubernetes-fleet.io/work-cleanup"])
    assert decide(a_placement(), a_snapshot(), FLEET, [held, free], NOW).finalized == ("web-a",)


def test_a_cluster_whose_binding_is_being_deleted_gets_another_one() -> None:
    cycle = _picked("a", bindings=[a_binding("a", deletionTimestamp=at())])
    assert [pick.cluster for pick in cycle.creations] == ["a"]


def test_of_two_bindings_of_one_cluster_one_is_taken_over() -> None:
    twice = [a_binding("a", snapshot=OBSOLETE, name="web-a-1"), a_binding("a", snapshot=OBSOLETE, name="web-a-2")]
    cycle = _picked("a", bindings=twice)
    assert [change.binding for change in cycle.changes] == ["web-a-2"]
    assert cycle.unscheduled == ("web-a-1",)


def _requiring(*names: str) -> dict[str, object]:
    terms = [{"labelSelector": {"matchLabels": {"only": name}}} for name in names]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"clusterSelectorTerms": terms}}
    return {"placementType": "PickAll", "affinity": {"clusterAffinity": required}}


def _pick_n(number: int) -> dict[str, object]:
    return {"placementType": "PickN", "numberOfClusters": number}


def _picked(*names: str, bindings: list[ResourceBinding] | None = None) -> CycleResult:
    policy = _requiring(*names)
    fleet = Fleet.of([a_member("a", {"only": "a"}), a_member("b", {"only": "b"})], NOW)
    return decide(a_placement(policy), a_snapshot(policy), fleet, bindings or [], NOW)
