"""Pending shoots, placed shoots, and the bounds."""

import pytest

from gardenbus.common.api.garden.seed_autoscalers import Rescale
from tests.support.autoscaling import AutoscalerDriver, a_built_replica, a_metric, a_set, a_spec, desired, with_ordered


@pytest.mark.parametrize(
    ("pending", "building", "wanted"),
    [(1, 0, 2), (10, 0, 2), (11, 0, 3), (50, 0, 6), (1, 1, 2), (20, 1, 3), (21, 1, 4)],
)
def test_waiting_shoots_raise_it_below_the_target_by_what_is_not_being_built(
    pending: int, building: int, wanted: int
) -> None:
    assert desired(a_set(1, building=building, shoots=0, pending=pending)) == wanted


def test_while_shoots_wait_no_seed_goes() -> None:
    assert desired(a_set(2, building=2, pending=3)) == 4


def test_shoots_that_are_being_placed_order_nothing_and_keep_what_they_may_need() -> None:
    assert desired(a_set(3, shoots=1, being_scheduled=15)) == 2
    assert desired(a_set(3, shoots=1, being_scheduled=900)) == 3
    assert desired(a_set(3, shoots=24, being_scheduled=900)) == 3


def test_a_seed_whose_places_are_unknown_is_not_ordered_for_waiting_shoots() -> None:
    assert desired(a_set(1, new_seed={}, shoots=8, pending=30)) == 1


def test_utilization_and_demand_do_not_add_up() -> None:
    assert desired(a_set(1, shoots=10, pending=50)) == 6


def test_it_keeps_what_holds_the_shoots_whichever_seeds_stay() -> None:
    aiming_high = a_spec(metrics=[a_metric(amount="100")])
    assert desired(a_set(6, shoots=41), aiming_high) == 5
    assert (
        desired(
            a_set(3, replicas=[a_built_replica(5), a_built_replica(20), a_built_replica(20)], shoots=21), aiming_high
        )
        == 2
    )
    assert (
        desired(
            a_set(3, replicas=[a_built_replica(5), a_built_replica(5), a_built_replica(20)], shoots=11), aiming_high
        )
        == 3
    )
    assert desired(a_set(3, replicas=[a_built_replica(1.5)] * 3, shoots=4), aiming_high) == 2


def test_a_lowered_maximum_counts_at_once_but_not_below_what_holds_the_shoots() -> None:
    stabilized = a_spec(maxReplicas=3, behavior={})
    decision = AutoscalerDriver(stabilized).reconcile_once(a_set(6, shoots=20))
    assert (decision.desired, decision.limited.reason) == (3, "TooManyReplicas")
    assert AutoscalerDriver(stabilized).reconcile_once(a_set(6, shoots=41)).desired == 5
    assert AutoscalerDriver(stabilized).reconcile_once(a_set(4, shoots=400)).desired == 4


def test_a_raised_minimum_counts_at_once() -> None:
    slow = a_spec(minReplicas=4, behavior={"scaleUp": {"stabilizationWindowSeconds": 600, "selectPolicy": "Disabled"}})
    decision = AutoscalerDriver(slow).reconcile_once(a_set(1))
    assert (decision.desired, decision.limited.reason) == (4, "TooFewReplicas")
    assert decision.rescale == Rescale(1, 4, "less than minReplicas (4)")


def test_more_than_the_maximum_is_never_ordered_and_the_limit_is_told() -> None:
    decision = AutoscalerDriver(a_spec(maxReplicas=4)).reconcile_once(a_set(3, shoots=90, pending=300))
    assert (decision.desired, decision.limited.status, decision.limited.reason) == (4, "True", "TooManyReplicas")
    decision = AutoscalerDriver(a_spec(minReplicas=2)).reconcile_once(a_set(2))
    assert (decision.desired, decision.limited.status, decision.limited.reason) == (2, "True", "TooFewReplicas")
    decision = AutoscalerDriver(a_spec()).reconcile_once(a_set(2, shoots=16))
    assert (decision.limited.status, decision.limited.reason) == ("False", "DesiredWithinRange")


def test_a_set_whose_own_shoot_finds_no_seed_limits_it() -> None:
    decision = AutoscalerDriver(a_spec()).reconcile_once(
        a_set(1, building=1, pending=5, unschedulable="no host seed is left")
    )
    assert (decision.limited.status, decision.limited.reason) == ("True", "ReplicaUnschedulable")
    assert decision.limited.message == "no host seed is left"


def test_replicas_that_cannot_be_removed_count_and_are_ordered_again_when_they_are_needed() -> None:
    # scaled to 3, but 4 are still there and all at the target
    assert desired(a_set(4, ordered=3, shoots=32)) == 4
    assert desired(a_set(4, ordered=3, shoots=26)) == 3, "as good as within the target of the three that stay"
    assert desired(a_set(4, ordered=3, shoots=13), a_spec(metrics=[a_metric(amount="4")])) == 3


def test_after_one_change_the_same_load_changes_nothing() -> None:
    driver = AutoscalerDriver(a_spec())
    load = a_set(1, shoots=10, pending=40)
    first = driver.reconcile_once(load)
    grown = with_ordered(load, first.desired)
    assert (first.desired, driver.reconcile_once(a_set(first.desired, shoots=40), after=15).desired) == (5, 5)
    assert grown.ordered == 5


def test_a_change_is_told_and_timed_once_when_the_set_shows_it() -> None:
    driver = AutoscalerDriver(a_spec())
    ordered = driver.reconcile_once(a_set(1, shoots=20))
    assert ordered.rescale == Rescale(1, 3, "utilization of shoots is 200%, above the target of 80%")
    assert (ordered.completed, ordered.memory.last_scale_time, ordered.able) == (None, None, None)
    lister = driver.reconcile_once(a_set(1, building=2, shoots=20), after=1)
    assert (lister.completed, lister.rescale) == (ordered.rescale, None)
    assert lister.memory.last_scale_time == "2026-01-02T03:04:06Z"
    assert lister.able is not None
    assert lister.able.reason == "SucceededRescale"
    after = driver.reconcile_once(a_set(1, building=2, shoots=20), after=15)
    assert (after.completed, after.memory.last_scale_time) == (None, "2026-01-02T03:04:06Z")
    assert after.able is not None
    assert after.able.reason == "ReadyForNewScale"


def test_a_change_that_was_not_carried_out_is_decided_again() -> None:
    driver = AutoscalerDriver(a_spec())
    assert driver.reconcile_once(a_set(1, shoots=20)).desired == 3
    again = driver.reconcile_once(a_set(1, shoots=30), after=15)
    assert (again.desired, again.completed) == (4, None)


def test_a_change_by_somebody_else_is_no_success_of_ours() -> None:
    driver = AutoscalerDriver(a_spec())
    driver.reconcile_once(a_set(2, shoots=16))
    decision = driver.reconcile_once(a_set(2, building=3, shoots=16), after=15)
    assert decision.completed is None
    assert decision.memory.last_scale_time is None
