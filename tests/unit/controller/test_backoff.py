"""The arithmetic of waiting."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gardenbus.common.controller.backoff import Backoff


def a_backoff(base: float, times: float) -> Backoff:
    return Backoff(base, base * times)


backoffs = st.builds(a_backoff, st.floats(1e-3, 1e3), st.floats(1, 1e6))
fractions = st.floats(0, 1, exclude_max=True)
attempts = st.integers(-5, 10**9)


def test_the_wait_doubles_until_the_cap():
    backoff = Backoff(base_seconds=1, cap_seconds=300)

    assert [backoff.longest_seconds(attempt) for attempt in range(1, 11)] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]


def test_half_of_the_wait_is_fixed_and_half_is_spread():
    backoff = Backoff(base_seconds=10, cap_seconds=300)

    assert backoff.delay_seconds(1, 0) == 5
    assert backoff.delay_seconds(1, 0.5) == 7.5
    assert backoff.delay_seconds(2, 0.999) == pytest.approx(20, rel=1e-3)


@given(backoffs, attempts, fractions)
def test_a_wait_is_never_shorter_than_half_nor_longer_than_the_whole(backoff: Backoff, attempt: int, fraction: float):
    longest = backoff.longest_seconds(attempt)
    assert longest / 2 <= backoff.delay_seconds(attempt, fraction) <= longest <= backoff.cap_seconds


@given(backoffs, attempts, fractions)
def test_one_more_failure_never_shortens_the_wait(backoff: Backoff, attempt: int, fraction: float):
    assert backoff.delay_seconds(attempt, fraction) <= backoff.delay_seconds(attempt + 1, fraction)


@given(backoffs, fractions)
def test_no_wait_is_hot(backoff: Backoff, fraction: float):
    assert backoff.delay_seconds(0, fraction) >= backoff.base_seconds / 2 > 0


def test_any_number_of_failures_is_taken():
    assert Backoff().delay_seconds(10**18, 0.999_999) < 300


@pytest.mark.parametrize(("base", "cap"), [(0, 1), (-1, 1), (2, 1)])
def test_settings_that_make_a_hot_loop_are_refused(base: float, cap: float):
    with pytest.raises(ValueError, match="backoff needs"):
        Backoff(base, cap)


def test_the_pauses_of_a_loop_double_until_the_cap_and_stay_there():
    pauses = Backoff(base_seconds=0.2, cap_seconds=1).pauses()

    assert [next(pauses) for _ in range(5)] == [0.2, 0.4, 0.8, 1, 1]
