from gardenbus.lifecycle.domain.freshness import NEVER
from gardenbus.lifecycle.domain.outage import (
    BreakerState,
    CircuitBreaker,
    ProbeState,
    SilenceCounts,
    advance_breaker,
    is_probe_lost,
    probe_adopted,
    probe_received,
)

PERIOD = 40.0


def step(
    breaker: CircuitBreaker, now: float, newly_silent: int, watched: int = 20, *, quiet: int = 0, believed: int = 0
):
    return advance_breaker(
        breaker, SilenceCounts(newly_silent, quiet, believed, watched), now=now, monitor_period=PERIOD
    )


def test_nothing_is_believed_before_the_canary_was_heard() -> None:
    assert is_probe_lost(ProbeState(), 1000, PERIOD)


def test_the_first_canary_starts_the_period_of_grace() -> None:
    assert probe_received(ProbeState(), 1000, PERIOD) == ProbeState(1000, 1000)


def test_a_canary_without_a_gap_keeps_the_grace_where_it_was() -> None:
    assert probe_received(ProbeState(1000, 900), 1009, PERIOD) == ProbeState(1009, 900)


def test_a_gap_makes_deaf_and_its_end_starts_a_new_grace() -> None:
    probe = ProbeState(1000, 900)
    assert not is_probe_lost(probe, 1010, PERIOD)
    assert is_probe_lost(probe, 1010.5, PERIOD)
    assert probe_received(probe, 1060, PERIOD) == ProbeState(1060, 1060)


def test_a_quick_restart_believes_the_canary_that_it_finds() -> None:
    assert probe_adopted(arrived_at=995, healthy_since=500, now=1000, monitor_period=PERIOD) == ProbeState(995, 500)


def test_a_start_that_finds_an_old_canary_begins_anew() -> None:
    assert probe_adopted(arrived_at=985, healthy_since=500, now=1000, monitor_period=PERIOD) == ProbeState()


def test_a_canary_that_claims_the_future_is_cut_to_its_arrival() -> None:
    assert probe_adopted(arrived_at=995, healthy_since=2000, now=1000, monitor_period=PERIOD) == ProbeState(995, 995)


def test_a_few_silent_seeds_are_believed_at_once() -> None:
    assert step(CircuitBreaker(), 100, 9, watched=9).allows_expiry
    assert step(CircuitBreaker(), 100, 11, watched=20).allows_expiry


def test_most_seeds_silent_together_are_held_for_one_more_period_and_told_once() -> None:
    first = step(CircuitBreaker(), 100, 12)
    assert (first.breaker, first.allows_expiry, first.opened_now) == (
        CircuitBreaker(BreakerState.OPEN, 100),
        False,
        True,
    )
    second = step(first.breaker, 139.9, 12)
    assert (second.breaker, second.allows_expiry, second.opened_now) == (first.breaker, False, False)
    third = step(second.breaker, 140, 12)
    assert (third.breaker, third.allows_expiry, third.opened_now) == (
        CircuitBreaker(BreakerState.OVERRIDDEN, 140),
        True,
        False,
    )


def test_seeds_that_come_back_release_the_brake_when_the_last_one_is_back() -> None:
    held = step(CircuitBreaker(BreakerState.OPEN, 100), 110, 2)
    assert (held.breaker.state, held.allows_expiry) == (BreakerState.OPEN, False), "the last two may come back as well"
    released = step(held.breaker, 112, 0)
    assert (released.breaker.state, released.allows_expiry) == (BreakerState.CLOSED, True)
    believed = step(held.breaker, 140, 2)
    assert (believed.breaker.state, believed.allows_expiry) == (BreakerState.OVERRIDDEN, True)


def test_those_written_off_within_the_period_count_too() -> None:
    assert step(CircuitBreaker(), 100, 6, believed=6).opened_now
    assert not step(CircuitBreaker(), 100, 6, believed=5).opened_now


def test_the_first_to_expire_are_held_when_the_others_are_quiet_already() -> None:
    assert step(CircuitBreaker(), 100, 1, quiet=11).opened_now
    assert step(CircuitBreaker(), 100, 0, quiet=20) == (CircuitBreaker(), True, False), (
        "as long as nobody expired there is no question"
    )


def test_a_believed_catastrophe_ends_when_it_has_passed() -> None:
    assert step(CircuitBreaker(BreakerState.OVERRIDDEN, 140), 150, 12).allows_expiry
    assert step(CircuitBreaker(BreakerState.OVERRIDDEN, 140), 190, 0).breaker.state is BreakerState.CLOSED
    assert NEVER < 0
