"""For how long a gardenlet says nothing of what it waits for."""

from gardenbus.gardenlet.reconcilers.patience import PATIENCE_SECONDS, Patience
from tests.support.clocks import FakeClock

APOLLO, ARTEMIS = ("garden-dev", "apollo"), ("garden-dev", "artemis")


def test_others_are_given_a_moment_and_no_more() -> None:
    clock = FakeClock()
    patience = Patience(clock)

    assert patience.left(APOLLO, "state") == PATIENCE_SECONDS
    clock.advance(PATIENCE_SECONDS - 0.1)
    assert 0 < patience.left(APOLLO, "state") < PATIENCE_SECONDS
    assert patience.left(ARTEMIS, "state") == PATIENCE_SECONDS
    clock.advance(0.2)
    assert patience.left(APOLLO, "state") < 0


def test_something_else_is_waited_for_anew() -> None:
    clock = FakeClock()
    patience = Patience(clock)
    patience.left(APOLLO, "state")
    clock.advance(5)

    assert patience.left(APOLLO, "readiness") == PATIENCE_SECONDS
    clock.advance(5)
    patience.end(APOLLO)
    assert patience.left(APOLLO, "readiness") == PATIENCE_SECONDS
