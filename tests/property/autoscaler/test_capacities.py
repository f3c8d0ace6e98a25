"""Seeds counted by their capacity, against each of them by itself."""

from collections import Counter
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from gardenbus.autoscaling.resource_metrics import fewest_to_hold
from gardenbus.autoscaling.seed_set import ReplicaState, SeedSetState

amounts = st.fractions(-3, 30, max_denominator=4)
capacities = st.lists(st.none() | st.sampled_from([Fraction(n, 2) for n in range(-2, 12)]), max_size=12)


def one_by_one(amount: Fraction, seeds: list[Fraction | None]) -> int:
    """The smallest seeds first, then one without a limit."""
    held, limits = Fraction(), sorted(each for each in seeds if each is not None)
    for number, capacity in enumerate(limits):
        if held >= amount:
            return number
        held += capacity
    return len(limits) if held >= amount else min(len(limits) + 1, len(seeds))


@given(amounts, capacities)
def test_as_many_stay_as_when_each_is_counted(amount: Fraction, seeds: list[Fraction | None]) -> None:
    assert fewest_to_hold(amount, Counter(seeds)) == one_by_one(amount, seeds)


@given(st.lists(st.none() | st.integers(0, 3), max_size=6), st.integers(0, 9), st.none() | st.integers(0, 3))
def test_every_replica_of_a_set_counts_once(of_seeds: list[int | None], ordered: int, new: int | None) -> None:
    def of(places: int | None) -> dict[str, Fraction]:
        return {} if places is None else {"shoots": Fraction(places)}

    seeds = SeedSetState(
        ordered=ordered, replicas=[ReplicaState(allocatable=of(each)) for each in of_seeds], new_seed=of(new)
    )
    missing = max(ordered - len(of_seeds), 0)
    assert seeds.capacities("shoots") == Counter([*of_seeds, *[new] * missing])
