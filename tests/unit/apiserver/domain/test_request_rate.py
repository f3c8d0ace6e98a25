"""Nobody asks for ever more that is kept."""

import pytest

from gardenbus.apiserver.domain.request_rate import BURST, EACH_SECONDS, RequestRate
from gardenbus.common.errors import TooManyRequests
from tests.support.clocks import FakeClock


def test_some_go_at_once_then_one_after_the_other_and_others_are_not_held_up() -> None:
    clock = FakeClock()
    rate = RequestRate()
    for _ in range(BURST):
        rate.take("ann", clock.monotonic())
    with pytest.raises(TooManyRequests, match="sends too many requests"):
        rate.take("ann", clock.monotonic())
    rate.take("ben", clock.monotonic())
    clock.advance(EACH_SECONDS)
    rate.take("ann", clock.monotonic())
    with pytest.raises(TooManyRequests):
        rate.take("ann", clock.monotonic())
    clock.advance(BURST * EACH_SECONDS)
    for _ in range(BURST):
        rate.take("ann", clock.monotonic())


def test_users_that_asked_long_ago_are_forgotten() -> None:
    clock = FakeClock()
    rate = RequestRate()
    for number in range(10_000):
        rate.take(f"user-{number}", clock.monotonic())
    clock.advance(EACH_SECONDS + 1)
    rate.take("one-more", clock.monotonic())
    assert list(rate._free_at) == ["one-more"]  # pyright: ignore[reportPrivateUsage]
