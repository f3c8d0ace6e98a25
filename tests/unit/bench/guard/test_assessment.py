"""Comparison with the figures: what is a loss, what is none, and what says nothing."""

from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gardenbus.bench.guard.assessment import (
    MEMORY_ALLOWANCE_MB,
    MOST_OTHERS,
    MOST_VARIATION,
    Held,
    Lost,
    MeasuredNothing,
    NotMeasurable,
    assess,
    changes,
    confirmed,
    is_worse,
)
from gardenbus.bench.guard.readings import ScenarioReading, YardstickName, Yardsticks, pooled
from gardenbus.bench.guard.report import result_text
from tests.unit.bench.guard.readings import CPU_US, YARDSTICKS, a_reading, a_turn, the_baseline

PROCESSES = sorted(CPU_US)


def scaled(factor: float, of: Mapping[str, float] = CPU_US) -> dict[str, float]:
    return {name: factor * value for name, value in of.items()}


def slower(process: str, factor: float) -> ScenarioReading:
    return a_reading(*(a_turn({**CPU_US, process: factor * CPU_US[process]}),) * 3)


def test_the_same_again_is_held() -> None:
    assert assess(a_reading(), the_baseline()) == Held("intake")


@pytest.mark.parametrize("process", PROCESSES)
def test_a_process_that_takes_a_quarter_more_is_lost_by_its_own_name(process: str) -> None:
    result = assess(slower(process, 1.25), the_baseline())
    assert isinstance(result, Lost)
    (loss,) = result.losses
    assert (loss.process, loss.measure) == (process, "cpu")
    assert loss.increase == pytest.approx(0.25)
    assert loss.before == pytest.approx(CPU_US[process], rel=1e-3)


@given(process=st.sampled_from(PROCESSES), factor=st.floats(min_value=0.1, max_value=1.14))
def test_less_than_the_tolerance_is_no_loss(process: str, factor: float) -> None:
    assert assess(slower(process, factor), the_baseline()) == Held("intake")


@given(factor=st.floats(min_value=0.05, max_value=20))
def test_a_machine_that_is_slower_in_everything_has_lost_nothing(factor: float) -> None:
    yardsticks: Yardsticks = {name: factor * each for name, each in YARDSTICKS.items()}
    reading = a_reading(*(a_turn(scaled(factor), before=yardsticks),) * 3)
    assert assess(reading, the_baseline()) == Held("intake")


@given(factors=st.lists(st.floats(min_value=0.9, max_value=1.1), min_size=3, max_size=3))
def test_a_machine_that_changes_its_speed_between_turns_has_lost_nothing(factors: list[float]) -> None:
    turns = [
        a_turn(scaled(factor), before={name: factor * each for name, each in YARDSTICKS.items()}) for factor in factors
    ]
    assert assess(a_reading(*turns), the_baseline()) == Held("intake")


@pytest.mark.parametrize("name", sorted(YARDSTICKS))
def test_a_yardstick_that_varies_too_much_says_so_and_by_how_much(name: YardstickName) -> None:
    other: Yardsticks = {**YARDSTICKS, name: YARDSTICKS[name] * (1 + 2 * MOST_VARIATION)}
    result = assess(a_reading(a_turn(), a_turn(), a_turn(before=other, after=other)), the_baseline())
    assert isinstance(result, NotMeasurable)
    assert result.yardstick == name
    assert MOST_VARIATION < result.varied < 2 * MOST_VARIATION


def test_what_seems_lost_while_others_use_the_cores_is_not_measurable_and_is_named() -> None:
    turns = [msgspec.structs.replace(turn, others=1.1 * MOST_OTHERS) for turn in slower("relay", 1.4).turns]
    result = assess(a_reading(*turns), the_baseline())
    assert isinstance(result, NotMeasurable)
    assert [loss.process for loss in result.suspected] == ["relay"]
    assert "seemed worse: relay +40%" in result_text(result, a_reading(*turns), the_baseline())


def test_what_is_held_while_others_use_the_cores_is_held() -> None:
    turns = [msgspec.structs.replace(turn, others=1.1 * MOST_OTHERS) for turn in a_reading().turns]
    assert assess(a_reading(*turns), the_baseline()) == Held("intake")


def test_one_slow_moment_of_the_machine_leaves_a_scenario_measurable() -> None:
    slow: Yardsticks = {name: 3 * each for name, each in YARDSTICKS.items()}
    assert assess(a_reading(a_turn(), a_turn(), a_turn(after=slow)), the_baseline()) == Held("intake")


def test_a_yardstick_that_varies_within_bounds_is_none() -> None:
    other: Yardsticks = {name: each * (1 + 0.9 * MOST_VARIATION) for name, each in YARDSTICKS.items()}
    assert assess(a_reading(a_turn(), a_turn(), a_turn(after=other)), the_baseline()) == Held("intake")


def test_one_turn_out_of_three_is_no_loss() -> None:
    disturbed = a_turn(scaled(1.5))
    assert assess(a_reading(a_turn(), disturbed, a_turn()), the_baseline()) == Held("intake")


@pytest.mark.parametrize(
    "reading",
    [
        ScenarioReading(scenario="intake", failure="relay ended with 1 (log: relay.log)"),
        ScenarioReading(scenario="intake"),
        a_reading(a_turn(units=0, seconds=1.0)),
        a_reading(a_turn({**CPU_US, "redis": 0.0})),
        a_reading(a_turn({name: us for name, us in CPU_US.items() if name != "relay"})),
        a_reading(a_turn({**CPU_US, "newcomer": 10.0})),
        a_reading(scenario="unknown"),
    ],
    ids=["a process died", "no turn", "no unit", "no CPU", "a process is missing", "an unknown process", "no figures"],
)
def test_what_measured_nothing_is_no_success(reading: ScenarioReading) -> None:
    assert isinstance(assess(reading, the_baseline()), MeasuredNothing)


def test_a_process_that_has_next_to_nothing_to_do_may_have_done_nothing() -> None:
    little = {**CPU_US, "apiserver": 0.004 * sum(CPU_US.values())}
    none = a_reading(*(a_turn({**little, "apiserver": 0.0}),) * 3)
    assert assess(none, the_baseline(a_reading(*(a_turn(little),) * 3))) == Held("intake")


def test_memory_is_lost_beyond_tolerance_and_allowance() -> None:
    good = a_reading(a_turn(memory_mb={"apiserver": 70.0, "redis": 10.0}))
    bigger = a_reading(a_turn(memory_mb={"apiserver": 90.0, "redis": 10.0 + MEMORY_ALLOWANCE_MB - 1}))
    result = assess(bigger, the_baseline(good))
    assert isinstance(result, Lost)
    assert [(loss.process, loss.measure) for loss in result.losses] == [("apiserver", "memory")]


def at_rest(cpu_us: float, wakeups: float = 100.0) -> ScenarioReading:
    turn = a_turn(
        {"lifecycle": cpu_us}, before={"python": 100e-6}, units=30, seconds=30.0, wakeups={"lifecycle": wakeups}
    )
    return a_reading(turn, scenario="at rest", unit="second")


def test_at_rest_a_loss_is_more_than_a_little_of_a_core() -> None:
    baseline = the_baseline(at_rest(5000.0))
    assert isinstance(assess(at_rest(7900.0), baseline), Held)
    assert isinstance(assess(at_rest(8200.0), baseline), Lost)


def test_a_poll_is_seen_by_how_often_its_process_wakes_up() -> None:
    result = assess(at_rest(5500.0, wakeups=100.0 + 30 * 100), the_baseline(at_rest(5000.0)))
    assert isinstance(result, Lost)
    assert [(loss.process, loss.measure) for loss in result.losses] == [("lifecycle", "wakeups")]


def test_a_server_without_a_yardstick_of_its_own_is_measured_by_pythons() -> None:
    reading = a_reading(a_turn({"nats": 3000.0}, before={"python": 100e-6}), scenario="at rest", unit="second")
    assert reading.cpu("nats").ratio == pytest.approx(30.0)


def test_a_loss_comes_with_the_functions_that_grew_most_and_the_last_good_ones() -> None:
    good = a_reading(functions={"apiserver": {"admit": 3.0, "decode": 2.0}})
    bad = a_reading(
        *slower("apiserver", 1.3).turns, functions={"apiserver": {"admit": 3.1, "decode": 2.0, "burn": 1.4}}
    )
    result = assess(bad, the_baseline(good))
    assert isinstance(result, Lost)
    first = result.losses[0].functions[0]
    assert first.name == "burn"
    assert (first.now_us, first.before_us) == (pytest.approx(140.0), 0.0)


def test_changes_name_functions_of_both_sides() -> None:
    assert {each.name for each in changes({"a": 1.0}, {"b": 1.0}, 1e-6)} == {"a", "b"}


def test_a_loss_that_a_second_look_does_not_confirm_is_none() -> None:
    baseline = the_baseline()
    bad, good = slower("relay", 1.4), a_reading()
    both = pooled(bad, good)
    assert confirmed([assess(bad, baseline), assess(good, baseline), assess(both, baseline)]) == Held("intake")


def test_a_loss_that_a_second_look_confirms_is_one() -> None:
    baseline = the_baseline()
    bad, again = slower("relay", 1.4), slower("relay", 1.3)
    both = pooled(bad, again)
    result = confirmed([assess(bad, baseline), assess(again, baseline), assess(both, baseline)])
    assert isinstance(result, Lost)
    assert [loss.process for loss in result.losses] == ["relay"]


def test_two_looks_with_losses_of_different_processes_have_none_in_common() -> None:
    baseline = the_baseline()
    bad, again = slower("relay", 1.6), slower("apiserver", 1.6)
    result = confirmed([assess(bad, baseline), assess(again, baseline), assess(pooled(bad, again), baseline)])
    assert result == Held("intake")


def test_a_second_look_that_fails_is_a_failure() -> None:
    baseline = the_baseline()
    bad, again = slower("relay", 1.6), ScenarioReading(scenario="intake", failure="redis died")
    result = confirmed([assess(bad, baseline), assess(again, baseline), assess(pooled(bad, again), baseline)])
    assert result == MeasuredNothing("intake", "redis died")


@given(before=st.floats(min_value=0, max_value=1e6), allowance=st.floats(min_value=0, max_value=10))
def test_nothing_is_worse_than_itself(before: float, allowance: float) -> None:
    assert not is_worse(before, before, allowance)
