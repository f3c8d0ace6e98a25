"""Replicas that hold what shoots request, besides the shoots themselves."""

from fractions import Fraction

from gardenbus.autoscaling.replica_calculator import replicas_for_placed
from gardenbus.autoscaling.seed_set import ReplicaState, SeedSetState

SEED = {"shoots": Fraction(20), "cpu": Fraction(8)}


def a_set(*requested: int, stated: dict[str, Fraction] = SEED, shoots: int = 4) -> SeedSetState:
    replicas = [
        ReplicaState(name=f"grove-{number}", allocatable=stated, requested={"cpu": Fraction(cpu)})
        for number, cpu in enumerate(requested)
    ]
    return SeedSetState(ordered=len(replicas), replicas=replicas, new_seed=SEED, shoots=shoots)


def test_no_fewer_replicas_stay_than_hold_what_is_requested() -> None:
    assert replicas_for_placed(a_set(4, 4, 4, 4)) == 2
    assert replicas_for_placed(a_set(4, 4, 4, 5)) == 3


def test_shoots_count_where_their_requests_need_fewer_replicas() -> None:
    assert replicas_for_placed(a_set(1, 1, 1, shoots=41)) == 3


def test_what_no_seed_states_any_more_keeps_all_of_them() -> None:
    assert replicas_for_placed(a_set(4, 4, 4, stated={"shoots": Fraction(20)})) == 3


def test_a_set_without_requests_holds_its_shoots_as_ever() -> None:
    assert replicas_for_placed(a_set(0, 0, 0)) == 1
