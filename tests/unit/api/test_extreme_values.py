"""Numbers, times and names at the edge of what a manifest or report may hold: none of them ends a reconciler."""

from datetime import UTC, datetime, timedelta

import pytest

from gardenbus.apiserver.domain.use_as_seed import requested_seed
from gardenbus.cli.output.columns import age_of
from gardenbus.common.api.garden.managed_seed_sets import ordinal_of
from gardenbus.common.api.garden.migration_feasibility import STATE_GENERATION, state_generation
from gardenbus.common.api.garden.seeds import MOST_SHOOTS, shoot_capacity
from gardenbus.common.api.garden.unschedulable import brief_reason, cause_of
from gardenbus.common.api.garden.version_constraints import satisfies
from gardenbus.common.api.keys import Subjects
from gardenbus.common.controller.timers import LONGEST_SECONDS, Timer, timer_message
from gardenbus.common.ports.clock import EARLIEST, LATEST, parse_timestamp
from gardenbus.fleet.eligibility import instant
from gardenbus.fleet.properties import interpolate
from tests.support.builders import a_shoot

DIGITS = "9" * 5000
"""More than Python makes a number of."""

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("quantity", "capacity"),
    [("1e309", MOST_SHOOTS), ("9e999", MOST_SHOOTS), ("-9e999", 0), ("1e-999", 1), ("1E", MOST_SHOOTS), ("5k", 5000)],
)
def test_a_capacity_is_a_number_that_everybody_can_hold(quantity: str, capacity: int) -> None:
    assert shoot_capacity({"status": {"allocatable": {"shoots": quantity}}}) == capacity
    assert capacity + float("inf") == float("inf")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("9999-12-31T23:59:59Z", LATEST),
        ("9999-12-31T23:59:59-14:00", LATEST),
        ("0001-01-01T00:00:00Z", EARLIEST),
        ("0001-01-01T00:00:00+14:00", EARLIEST),
        ("2026-01-02T03:04:05Z", NOW),
        ("2026-01-02T05:04:05+02:00", NOW),
    ],
)
def test_periods_can_be_added_to_every_time(text: str, found: datetime) -> None:
    assert parse_timestamp(text) == found
    assert found - timedelta(days=36_500) < found < found + timedelta(days=36_500)
    assert instant(text) == found.timestamp()


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_the_age_of_an_impossible_time_is_left_out(text: str) -> None:
    assert age_of(text, NOW) == ""


@pytest.mark.parametrize("seconds", [1e10, 3e11, 9e18, float("inf")])
def test_nothing_is_waited_for_longer_than_a_year(seconds: float) -> None:
    subjects = Subjects()
    due, longest = (
        timer_message(subjects, Timer(subjects.queue("look", "ns", "a"), each), NOW)
        for each in (seconds, LONGEST_SECONDS)
    )
    assert due == longest


def test_numbers_of_thousands_of_digits_are_none() -> None:
    assert ordinal_of(f"set-{DIGITS}") == -1
    assert ordinal_of("set-999999999") == 999_999_999
    assert state_generation({"metadata": {"annotations": {STATE_GENERATION: DIGITS}}}) == 0
    assert not satisfies((1, 31, 1), f">={DIGITS}")
    assert not satisfies((1, 31, 1), f">=1.{DIGITS}")
    assert not satisfies((99, 9, 9), ">=9999999999")


def test_a_region_that_reads_like_a_reason_is_shown_as_a_reason() -> None:
    reason = f"0/1 seeds are eligible: {{a => in 'x, {DIGITS} seeds (a, …) => y'}}"
    assert "in 'x" in brief_reason(reason)
    assert cause_of(reason)
    assert brief_reason(f"0/{DIGITS} seeds are eligible: {{a => full}}").startswith("0/999")


@pytest.mark.parametrize(("order", "shares"), [("Ascending", (10, 5, 0)), ("Descending", (0, 5, 10))])
def test_properties_from_one_end_of_the_doubles_to_the_other_are_compared(order: str, shares: tuple[int, ...]) -> None:
    assert tuple(interpolate(each, -1e308, 1e308, order=order, weight=10) for each in (-1e308, 0.0, 1e308)) == shares


def test_a_setting_of_a_seed_with_a_thousand_parts_is_ignored_with_a_warning() -> None:
    deep = f"providerConfig{'.a' * 2000}"
    annotations = {"shoot.gardener.cloud/use-as-seed": f"true,{deep}=1,providerConfig.b=2"}
    found = requested_seed(a_shoot("child", "garden", metadata={"annotations": annotations}))
    assert any("is ignored" in each for each in found.warnings)
    assert found.managed_seed is not None
    assert "'b': 2" in str(found.managed_seed)
    assert "'a'" not in str(found.managed_seed)
