"""Nobody asks for ever more that is kept."""

import pytest

from gardenbus.apiserver.handlers.request_rate import BURST, EACH_SECONDS, RequestRate
from gardenbus.common.errors import TooManyRequests
from tests.support.clocks import FakeClock


def test_some_go_at_once_then_one_after_the_other_and_others_are_not_held_up() -> None:
    clock = FakeClock()
    rate = RequestRate(clock)
    for _ in range(BURST):
        rate.take("ann")
    with pytest.raises(TooManyRequests, match="asks too often"):
        rate.take("ann")
    rate.take("ben")
    clock.advance(EACH_SECONDS)
    rate.take("ann")
    with pytest.raises(TooManyRequests):
        rate.take("ann")
    clock.advance(BURST * EACH_SECONDS)
    for _ in range(BURST):
        rate.take("ann")


def test_users_that_asked_long_ago_are_forgotten() -> None:
    clock = FakeClock()
    rate = RequestRate(clock)
    for number in range(10_000):
        rate.take(f"user-{number}")
    clock.advance(EACH_SECONDS + 1)
    rate.take("one-more")
    assert list(rate._free_at) == ["one-more"]  # pyright: ignore[reportPrivateUsage]
