"""Replicas that metrics propose, exactly."""

from fractions import Fraction

import pytest

from gardenbus.autoscaling.seed_set import ReplicaState
from tests.support.autoscaling import AutoscalerDriver, a_built_replica, a_metric, a_set, a_spec, currents, desired


@pytest.mark.parametrize(
    ("built", "shoots", "wanted"),
    [
        (1, 8, 1),  # at the target
        (1, 9, 2),  # 90 %: beyond the tolerance
        (4, 35, 4),  # ratio 1.09
        (4, 36, 5),  # ratio 1.125
        (4, 29, 4),  # ratio 0.906
        (4, 28, 4),  # ratio 0.875: 3.5 seeds
        (4, 24, 3),
        (8, 10, 2),
        (8, 0, 1),  # minReplicas
        (2, 20, 3),  # 2.5
    ],
)
def test_utilization_asks_for_used_by_room_by_target(built: int, shoots: int, wanted: int) -> None:
    assert desired(a_set(built, shoots=shoots)) == wanted


def test_within_a_tenth_of_the_target_nothing_changes_and_at_its_edge_neither() -> None:
    spec = a_spec(metrics=[a_metric(utilization=100)], maxReplicas=50)
    assert [desired(a_set(20, shoots=shoots), spec) for shoots in (180, 179, 200)] == [20, 18, 20]
    half = a_spec(metrics=[a_metric(utilization=50)], maxReplicas=50)
    assert [desired(a_set(10, shoots=shoots), half) for shoots in (45, 55, 56, 44)] == [10, 10, 12, 9]


def test_each_direction_may_have_a_tolerance_of_its_own() -> None:
    spec = a_spec(
        metrics=[a_metric(utilization=50)],
        maxReplicas=50,
        behavior={"scaleUp": {"tolerance": "300m"}, "scaleDown": {"tolerance": 0, "stabilizationWindowSeconds": 0}},
    )
    assert [desired(a_set(10, shoots=shoots), spec) for shoots in (65, 66, 50)] == [10, 14, 10]
    assert desired(a_set(10, shoots=44), spec) == 9
    assert desired(a_set(10, shoots=45), a_spec(metrics=[a_metric(utilization=50)], maxReplicas=50)) == 10
    assert desired(a_set(10, shoots=45), spec) == 9


def test_arithmetic_is_exact_where_floats_are_not() -> None:
    spec = a_spec(metrics=[a_metric(utilization=70)], maxReplicas=100)
    assert desired(a_set(7, places=10, shoots=98), spec) == 14
    assert desired(a_set(49, places=1, shoots=7), a_spec(metrics=[a_metric(utilization=7)], maxReplicas=900)) == 100


@pytest.mark.parametrize(("shoots", "wanted"), [(10, 2), (11, 2), (12, 3), (9, 2), (4, 1), (55, 10), (0, 1)])
def test_average_value_asks_for_used_by_amount(shoots: int, wanted: int) -> None:
    assert desired(a_set(2, shoots=shoots), a_spec(metrics=[a_metric(amount="5")])) == wanted


def test_an_average_value_is_a_quantity() -> None:
    spec = a_spec(metrics=[a_metric("cpu", amount="1500m")])
    replicas = [a_built_replica(usage={"cpu": Fraction(3)}) for _ in range(2)]
    assert desired(a_set(2, replicas=replicas), spec) == 4


def test_of_several_metrics_the_highest_counts() -> None:
    spec = a_spec(metrics=[a_metric(), a_metric("cpu", amount="2")])
    replicas = [a_built_replica(usage={"cpu": Fraction(5)}) for _ in range(2)]
    assert desired(a_set(2, replicas=replicas, shoots=2), spec) == 5
    assert desired(a_set(2, replicas=replicas, shoots=80), spec) == 10


def test_without_metrics_four_fifths_of_the_places_are_aimed_at() -> None:
    assert desired(a_set(2, shoots=20), a_spec(metrics=[])) == 3


def test_replicas_in_the_making_count_with_what_a_new_seed_holds_and_those_that_leave_do_not_count() -> None:
    assert desired(a_set(1, building=2, shoots=24)) == 3
    leaving = [a_built_replica(), a_built_replica(), a_built_replica(is_leaving=True)]
    decision = AutoscalerDriver(a_spec()).reconcile_once(a_set(2, replicas=leaving, shoots=20))
    assert decision.desired == 3
    assert currents(decision)[0]["current"]["averageUtilization"] == 100


def test_a_replica_that_is_ordered_and_not_there_counts_as_one_in_the_making() -> None:
    assert desired(a_set(1, ordered=3, shoots=24)) == 3


def test_a_resource_that_a_seed_does_not_report_keeps_the_set_from_shrinking_but_not_from_growing() -> None:
    spec = a_spec(metrics=[a_metric(), a_metric("cpu", amount="2")])
    replicas = [a_built_replica(name="dumb")] + [a_built_replica(usage={"cpu": Fraction()}) for _ in range(3)]
    idle = AutoscalerDriver(spec).reconcile_once(a_set(4, replicas=replicas, shoots=1))
    assert idle.desired == 4
    assert (idle.active.status, idle.active.reason) == ("False", "FailedGetResourceMetric")
    assert "seed dumb does not report status.usage.cpu" in idle.active.message
    busy = AutoscalerDriver(spec).reconcile_once(a_set(4, replicas=replicas, shoots=50))
    assert busy.desired == 7
    assert busy.active.status == "False"


def test_a_replica_that_is_not_built_has_nothing_to_report() -> None:
    spec = a_spec(metrics=[a_metric("cpu", amount="2")])
    replicas = [a_built_replica(usage={"cpu": Fraction(8)}), ReplicaState(name="new", is_built=False)]
    decision = AutoscalerDriver(spec).reconcile_once(a_set(2, replicas=replicas))
    assert (decision.desired, decision.active.reason) == (4, "ValidMetricFound")


@pytest.mark.parametrize("allocatable", [{}, {"shoots": Fraction()}])
def test_seeds_that_do_not_say_what_they_hold_or_hold_nothing_cannot_be_measured(
    allocatable: dict[str, Fraction],
) -> None:
    replicas = [a_built_replica(allocatable=allocatable)] * 3
    decision = AutoscalerDriver(a_spec()).reconcile_once(a_set(3, replicas=replicas))
    assert (decision.desired, decision.active.reason) == (3, "FailedGetResourceMetric")


def test_a_set_of_none_asks_for_none_by_its_metrics() -> None:
    assert desired(a_set(0), a_spec(minReplicas=0)) == 0


def test_seeds_of_several_sizes_never_shrink_to_where_they_must_grow_again() -> None:
    # 22 shoots on 10 + 100 places at 50 %: the mean says one seed, but it may be the small one that stays
    replicas = [a_built_replica(10), a_built_replica(100)]
    spec = a_spec(metrics=[a_metric(utilization=50)])
    assert desired(a_set(2, replicas=replicas, shoots=8), spec) == 2
    assert desired(a_set(2, replicas=replicas, shoots=5), spec) == 1
    assert desired(a_set(3, replicas=[a_built_replica(100)] * 3, shoots=45), spec) == 1


def test_the_status_shows_what_was_measured() -> None:
    decision = AutoscalerDriver(a_spec(metrics=[a_metric(), a_metric("cpu", amount="2")])).reconcile_once(
        a_set(3, shoots=25, replicas=[a_built_replica(usage={"cpu": Fraction(1, 3)})] * 3)
    )
    shoots, cpu = currents(decision)
    assert shoots == {
        "name": "shoots",
        "current": {"averageValue": "8334m", "averageUtilization": 83, "value": "25"},
    }
    assert cpu == {"name": "cpu", "current": {"averageValue": "334m", "value": "1"}}


def test_a_set_of_any_number_of_replicas_is_decided_like_a_small_one() -> None:
    many = 10**15  # listed one by one they would not fit into any memory
    seeds = a_set(2, shoots=15, ordered=many)
    assert desired(seeds) == 10  # maxReplicas
    assert desired(seeds, a_spec(maxReplicas=many)) == 2
    assert desired(seeds, a_spec(maxReplicas=many, metrics=[a_metric(amount="5")])) == 3
    assert desired(a_set(2, shoots=15, pending=1, ordered=many), a_spec(maxReplicas=many)) == many
