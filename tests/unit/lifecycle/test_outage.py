from gardenbus.lifecycle.decide.freshness import NEVER
from gardenbus.lifecycle.decide.outage import Brake, Hearing, Phase, Silence, adopted, cut, heard, is_deaf, step_brake

PERIOD = 40.0


def step(brake: Brake, now: float, unbelieved: int, watched: int = 20, *, quiet: int = 0, believed: int = 0):
    return step_brake(brake, Silence(unbelieved, quiet, believed, watched), now=now, monitor_period=PERIOD)


def test_nothing_is_believed_before_the_canary_was_heard() -> None:
    assert is_deaf(cut(), 1000, PERIOD)


def test_the_first_canary_starts_the_period_of_grace() -> None:
    assert heard(cut(), 1000, PERIOD) == Hearing(1000, 1000)


def test_a_canary_without_a_gap_keeps_the_grace_where_it_was() -> None:
    assert heard(Hearing(1000, 900), 1009, PERIOD) == Hearing(1009, 900)


def test_a_gap_makes_deaf_and_its_end_starts_a_new_grace() -> None:
    hearing = Hearing(1000, 900)
    assert not is_deaf(hearing, 1010, PERIOD)
    assert is_deaf(hearing, 1010.5, PERIOD)
    assert heard(hearing, 1060, PERIOD) == Hearing(1060, 1060)


def test_a_quick_restart_believes_the_canary_that_it_finds() -> None:
    assert adopted(arrived_at=995, well_since=500, now=1000, monitor_period=PERIOD) == Hearing(995, 500)


def test_a_start_that_finds_an_old_canary_begins_anew() -> None:
    assert adopted(arrived_at=985, well_since=500, now=1000, monitor_period=PERIOD) == cut()


def test_a_canary_that_claims_the_future_is_cut_to_its_arrival() -> None:
    assert adopted(arrived_at=995, well_since=2000, now=1000, monitor_period=PERIOD) == Hearing(995, 995)


def test_a_few_silent_seeds_are_believed_at_once() -> None:
    assert step(Brake(), 100, 9, watched=9).believes
    assert step(Brake(), 100, 11, watched=20).believes


def test_most_seeds_silent_together_are_held_for_one_more_period_and_told_once() -> None:
    first = step(Brake(), 100, 12)
    assert (first.brake, first.believes, first.engaged_now) == (Brake(Phase.HOLDING, 100), False, True)
    second = step(first.brake, 139.9, 12)
    assert (second.brake, second.believes, second.engaged_now) == (first.brake, False, False)
    third = step(second.brake, 140, 12)
    assert (third.brake, third.believes, third.engaged_now) == (Brake(Phase.BELIEVING, 140), True, False)


def test_seeds_that_come_back_release_the_brake_when_the_last_one_is_back() -> None:
    held = step(Brake(Phase.HOLDING, 100), 110, 2)
    assert (held.brake.phase, held.believes) == (Phase.HOLDING, False), "the last two may come back as well"
    released = step(held.brake, 112, 0)
    assert (released.brake.phase, released.believes) == (Phase.RELEASED, True)
    believed = step(held.brake, 140, 2)
    assert (believed.brake.phase, believed.believes) == (Phase.BELIEVING, True)


def test_those_written_off_within_the_period_count_too() -> None:
    assert step(Brake(), 100, 6, believed=6).engaged_now
    assert not step(Brake(), 100, 6, believed=5).engaged_now


def test_the_first_to_expire_are_held_when_the_others_are_quiet_already() -> None:
    assert step(Brake(), 100, 1, quiet=11).engaged_now
    assert step(Brake(), 100, 0, quiet=20) == (Brake(), True, False), "as long as nobody expired there is no question"


def test_a_believed_catastrophe_ends_when_it_has_passed() -> None:
    assert step(Brake(Phase.BELIEVING, 140), 150, 12).believes
    assert step(Brake(Phase.BELIEVING, 140), 190, 0).brake.phase is Phase.RELEASED
    assert NEVER < 0
