"""A certificate is renewed between 70 and 90 % of its life, whatever its life and the draw."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from gardenbus.agent.domain.rotation import renewal_at

LIVES = st.integers(60, 365 * 86_400)
BEGINNINGS = st.integers(0, 4_000_000_000).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))
DRAWS = st.floats(0, 1, exclude_max=True)


@given(BEGINNINGS, LIVES, DRAWS)
def test_the_point_of_renewal_lies_within_70_and_90_percent_of_the_life(
    begins: datetime, life: int, draw: float
) -> None:
    passed = renewal_at(begins, begins + timedelta(seconds=life), draw) - begins
    tolerance = timedelta(microseconds=1)
    assert timedelta(seconds=life * 0.7) - tolerance <= passed <= timedelta(seconds=life * 0.9) + tolerance


@given(BEGINNINGS, LIVES, DRAWS, DRAWS)
def test_a_greater_draw_is_no_earlier(begins: datetime, life: int, one: float, other: float) -> None:
    first, second = sorted((one, other))
    ends = begins + timedelta(seconds=life)
    assert renewal_at(begins, ends, first) <= renewal_at(begins, ends, second)
