"""For how long a gardenlet says nothing of what it waits for."""

from gardenbus.gardenlet.domain.grace_periods import GRACE_PERIOD_SECONDS, GracePeriods
from tests.support.clocks import FakeClock

APOLLO, ARTEMIS = ("garden-dev", "apollo"), ("garden-dev", "artemis")


def test_others_are_given_a_moment_and_no_more() -> None:
    clock = FakeClock()
    grace_period = GracePeriods(clock)

    assert grace_period.left(APOLLO, "state") == GRACE_PERIOD_SECONDS
    clock.advance(GRACE_PERIOD_SECONDS - 0.1)
    assert 0 < grace_period.left(APOLLO, "state") < GRACE_PERIOD_SECONDS
    assert grace_period.left(ARTEMIS, "state") == GRACE_PERIOD_SECONDS
    clock.advance(0.2)
    assert grace_period.left(APOLLO, "state") < 0


def test_something_else_is_waited_for_anew() -> None:
    clock = FakeClock()
    grace_period = GracePeriods(clock)
    grace_period.left(APOLLO, "state")
    clock.advance(5)

    assert grace_period.left(APOLLO, "readiness") == GRACE_PERIOD_SECONDS
    clock.advance(5)
    grace_period.end(APOLLO)
    assert grace_period.left(APOLLO, "readiness") == GRACE_PERIOD_SECONDS
