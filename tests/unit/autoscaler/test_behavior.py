"""Stabilization windows and policies, as a HorizontalPodAutoscaler's."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from gardenbus.common.api.configuration.seed_autoscaler import Pace
from gardenbus.common.api.garden.seed_autoscalers import SeedAutoscalerStatus, persisted_status
from tests.support.autoscaling import START, AutoscalerDriver, a_set, a_spec


def stabilized(**rules: Any) -> AutoscalerDriver:
    return AutoscalerDriver(a_spec(behavior=rules, maxReplicas=100))


def test_it_grows_at_once_and_shrinks_after_five_minutes() -> None:
    driver = stabilized()
    assert driver.reconcile_once(a_set(1, shoots=40)).desired == 5
    assert driver.reconcile_once(a_set(5, shoots=40), after=15).desired == 5
    held = driver.reconcile_once(a_set(5, shoots=8), after=15)
    assert held.desired == 5
    assert held.able is not None
    assert held.able.reason == "ScaleDownStabilized"
    assert held.recheck_at == driver.now + timedelta(minutes=5)
    assert driver.reconcile_once(a_set(5, shoots=8), after=299).desired == 5
    assert driver.reconcile_once(a_set(5, shoots=8), after=1).desired == 1


def test_it_shrinks_to_the_highest_that_was_right_within_the_window() -> None:
    driver = stabilized()
    driver.reconcile_once(a_set(5, shoots=40))
    assert driver.reconcile_once(a_set(5, shoots=8), after=60).desired == 5
    assert driver.reconcile_once(a_set(5, shoots=24), after=60).desired == 5  # three are right for a minute
    assert driver.reconcile_once(a_set(5, shoots=8), after=60).desired == 5
    assert driver.reconcile_once(a_set(5, shoots=8), after=180).desired == 3
    assert driver.reconcile_once(a_set(3, shoots=8), after=119).desired == 3
    assert driver.reconcile_once(a_set(3, shoots=8), after=1).desired == 1


def test_an_outage_counts_as_if_the_last_recommendation_had_held() -> None:
    driver = stabilized()
    driver.reconcile_once(a_set(5, shoots=40))
    assert driver.reconcile_once(a_set(5, shoots=0), after=86_400).desired == 5
    assert driver.reconcile_once(a_set(5, shoots=0), after=300).desired == 1


def test_memory_survives_in_the_status_to_the_microsecond() -> None:
    driver = stabilized(scaleUp={"policies": [{"type": "Replicas", "value": 2, "periodSeconds": 60}]})
    driver.reconcile_once(a_set(5, shoots=40), after=0.000001)
    driver.reconcile_once(a_set(5, shoots=8), after=0.25)
    driver.reconcile_once(a_set(6, shoots=80), after=0.5)
    read = msgspec.convert(persisted_status(driver.memory), SeedAutoscalerStatus)
    assert persisted_status(read) == persisted_status(driver.memory)
    assert (read.recommendations, read.scale_events) == (driver.memory.recommendations, driver.memory.scale_events)
    assert read.scale_events[0].change == 1


def test_a_new_autoscaler_waits_the_whole_window_before_it_takes_anything_away() -> None:
    driver = stabilized()
    assert driver.reconcile_once(a_set(5)).desired == 5
    assert driver.reconcile_once(a_set(5), after=299).desired == 5
    assert driver.reconcile_once(a_set(5), after=1).desired == 1


def test_a_window_up_waits_for_the_lowest_within_it() -> None:
    driver = stabilized(scaleUp={"stabilizationWindowSeconds": 60})
    first = driver.reconcile_once(a_set(1, shoots=40))
    assert first.desired == 1
    assert first.able is not None
    assert first.able.reason == "ScaleUpStabilized"
    assert driver.reconcile_once(a_set(1, shoots=8), after=30).desired == 1
    assert driver.reconcile_once(a_set(1, shoots=40), after=29).desired == 1
    assert driver.reconcile_once(a_set(1, shoots=40), after=59).desired == 1
    assert driver.reconcile_once(a_set(1, shoots=40), after=1).desired == 5


def test_no_window_means_at_once() -> None:
    driver = AutoscalerDriver(a_spec(behavior={"scaleDown": {"stabilizationWindowSeconds": 0}}))
    assert driver.reconcile_once(a_set(5, shoots=8)).desired == 1


def test_the_default_window_down_is_a_setting() -> None:
    driver = AutoscalerDriver(a_spec(behavior={}), Pace(downscale_stabilization=timedelta(seconds=10)))
    assert driver.reconcile_once(a_set(5, shoots=8)).desired == 5
    assert driver.reconcile_once(a_set(5, shoots=8), after=10).desired == 1


@pytest.mark.parametrize("word", ["Pods", "Replicas"])
def test_a_policy_limits_how_many_come_within_its_period(word: str) -> None:
    driver = stabilized(scaleUp={"policies": [{"type": word, "value": 2, "periodSeconds": 60}]})
    limited = driver.reconcile_once(a_set(1, shoots=80))
    assert (limited.desired, limited.limited.reason) == (3, "ScaleUpLimit")
    still = driver.reconcile_once(a_set(3, shoots=80), after=1)
    assert (still.desired, still.recheck_at) == (3, driver.now + timedelta(seconds=60))
    assert driver.reconcile_once(a_set(3, shoots=80), after=59).desired == 3
    assert driver.reconcile_once(a_set(3, shoots=80), after=1).desired == 5


def test_percent_is_of_what_the_period_began_with_rounded_for_more_change() -> None:
    up = stabilized(scaleUp={"policies": [{"type": "Percent", "value": 50, "periodSeconds": 60}]})
    assert up.reconcile_once(a_set(5, shoots=400)).desired == 8
    assert up.reconcile_once(a_set(8, shoots=400), after=30).desired == 8
    from_none = a_spec(
        minReplicas=0, behavior={"scaleUp": {"policies": [{"type": "Percent", "value": 50, "periodSeconds": 60}]}}
    )
    assert AutoscalerDriver(from_none).reconcile_once(a_set(0, pending=40)).desired == 1
    at_once = {"stabilizationWindowSeconds": 0}
    down = stabilized(scaleDown={**at_once, "policies": [{"type": "Percent", "value": 10, "periodSeconds": 60}]})
    decision = down.reconcile_once(a_set(15))
    assert (decision.desired, decision.limited.reason) == (13, "ScaleDownLimit")
    assert down.reconcile_once(a_set(13), after=30).desired == 13


def test_of_several_policies_the_one_that_changes_most_counts_or_least_if_so_chosen() -> None:
    policies = [
        {"type": "Replicas", "value": 4, "periodSeconds": 60},
        {"type": "Percent", "value": 50, "periodSeconds": 60},
    ]
    assert stabilized(scaleUp={"policies": policies}).reconcile_once(a_set(4, shoots=400)).desired == 8
    assert (
        stabilized(scaleUp={"policies": policies, "selectPolicy": "Min"}).reconcile_once(a_set(4, shoots=400)).desired
        == 6
    )
    down = {"stabilizationWindowSeconds": 0, "policies": policies}
    assert stabilized(scaleDown=down).reconcile_once(a_set(4)).desired == 1
    assert stabilized(scaleDown={**down, "selectPolicy": "Min"}).reconcile_once(a_set(4)).desired == 2


@pytest.mark.parametrize(("direction", "load"), [("scaleUp", 400), ("scaleDown", 0)])
def test_a_direction_can_be_switched_off(direction: str, load: int) -> None:
    off = {"selectPolicy": "Disabled", "stabilizationWindowSeconds": 0}
    decision = stabilized(**{direction: off}).reconcile_once(a_set(4, shoots=load))
    assert decision.desired == 4
    assert decision.limited.reason == ("ScaleUpLimit" if load else "ScaleDownLimit")


def test_changes_by_hand_count_for_the_policies_too() -> None:
    driver = stabilized(scaleUp={"policies": [{"type": "Replicas", "value": 2, "periodSeconds": 60}]})
    driver.reconcile_once(a_set(1, shoots=8))
    assert driver.reconcile_once(a_set(3, shoots=80), after=15).desired == 3
    assert driver.reconcile_once(a_set(3, shoots=80), after=60).desired == 5


def test_only_what_still_matters_is_remembered() -> None:
    driver = stabilized()
    for step, shoots in enumerate([80, 8, 40, 16, 16, 80, 24]):
        driver.reconcile_once(a_set(10, shoots=shoots), after=10 * (step > 0))
    assert [each.replicas for each in driver.memory.recommendations] == [10]
    driver.reconcile_once(a_set(10, shoots=24), after=300)
    assert driver.memory.recommendations == ()
    assert driver.now > START
