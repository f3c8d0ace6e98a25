"""A month of virtual time on the service's own decisions."""

from itertools import pairwise

import msgspec
import pytest

from gardenbus.cli.simulate.autoscaling.oracle import Costs, CountChange, oracle_seed_seconds
from gardenbus.cli.simulate.autoscaling.report import AutoscalerScenario, percentile, simulate, summary_of
from gardenbus.cli.simulate.autoscaling.simulator import SeedSetModel, SeedSetSimulator
from gardenbus.cli.simulate.autoscaling.workload import DAY, ShootWorkload, generate_lifetimes
from gardenbus.common.api.configuration.seed_autoscaler import Pace

NONE = Costs(0, 0)


def test_thirty_days_wait_little_cost_little_more_than_hindsight_and_never_flap() -> None:
    scenario = AutoscalerScenario(sync_seconds=30)
    trace = simulate(scenario)
    summary = summary_of(scenario, trace)
    assert summary.days == 30
    assert summary.shoots > 7000
    assert summary.waiting.p50_seconds == 0
    # a burst of 80 needs four seeds more, one after the other, and who comes last in it waits for all of them
    assert summary.waiting.p99_seconds <= 2.5 * scenario.seeds.build_seconds
    assert summary.waiting.max_seconds <= 4 * scenario.seeds.build_seconds
    assert summary.waiting.share < 0.05
    assert 1 <= summary.seed_hours.ratio < 1.3
    # up and down with the daily wave, once more for each burst and each mass deletion
    assert summary.scale_events.reversals <= 2 * 30 + 2 * (4 + 3)
    assert summary.most_seeds <= scenario.most + 1


def test_what_it_orders_and_pays_keeps_its_bounds() -> None:
    scenario = AutoscalerScenario(load=ShootWorkload(days=5), least=2, most=6, sync_seconds=60)
    trace = simulate(scenario)
    assert all(2 <= change.number <= 6 for change in trace.changes)
    assert all(before.number != after.number for before, after in pairwise(trace.changes))
    assert all(instant.ready <= 6 for instant in trace.samples)
    assert all(instant.waiting >= 0 and instant.paid >= instant.ready for instant in trace.samples)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("drain", [True, False])
def test_nobody_pays_less_than_hindsight(seed: int, drain: bool) -> None:
    scenario = AutoscalerScenario(
        load=ShootWorkload(days=3, seed=seed, shoots_per_day=100 + 80 * seed, lifetime_hours=2 + 3 * seed),
        seeds=SeedSetModel(capacity=3 + 7 * seed, drain=drain, build_seconds=60 * seed, removal_seconds=30 * seed),
        least=seed % 3,
        sync_seconds=60,
        window_down_seconds=60 * seed,
    )
    assert summary_of(scenario, simulate(scenario)).seed_hours.ratio >= 1


def test_constant_load_needs_no_change_after_the_first_ones() -> None:
    """All shoots stay."""
    load = ShootWorkload(days=10, shoots_per_day=0, bursts=1, burst_shoots=90, mass_deletions=0, lifetime_hours=1e9)
    trace = simulate(AutoscalerScenario(load=load))
    assert [change.number for change in trace.changes] == [2, 3, 4, 5, 6], "the burst takes a minute"
    assert trace.samples[-1].ready == 6


def test_the_same_seed_gives_the_same_course() -> None:
    scenario = AutoscalerScenario(load=ShootWorkload(days=2), sync_seconds=60)
    assert simulate(scenario) == simulate(scenario)
    assert simulate(msgspec.structs.replace(scenario, load=ShootWorkload(days=2, seed=2))) != simulate(scenario)


class EverySyncSimulator(SeedSetSimulator):
    """A simulator that leaves no sync out."""

    def _sync_due(self, due: int) -> None:
        super()._sync_due(due)
        self._schedule_sync(due + 1)


@pytest.mark.parametrize("drain", [True, False])
def test_the_looks_that_are_left_out_would_have_changed_nothing(drain: bool) -> None:
    load = ShootWorkload(days=3, shoots_per_day=60, lifetime_hours=4, bursts=2, burst_shoots=40, mass_deletions=2)
    scenario = AutoscalerScenario(
        load=load, seeds=SeedSetModel(capacity=5, drain=drain), sync_seconds=60, window_up_seconds=120
    )
    every_sync = EverySyncSimulator(load, scenario.spec(), scenario.seeds, Pace(), scenario.sync_seconds).run()
    assert every_sync == simulate(scenario)
    assert len(every_sync.changes) > 10


def test_the_load_has_a_wave_bursts_and_mass_deletions() -> None:
    load = ShootWorkload(days=20, bursts=2, burst_shoots=200, mass_deletions=1)
    lifetimes = generate_lifetimes(load)
    assert lifetimes == sorted(lifetimes, key=lambda lifetime: lifetime.arrives_at)
    hours = [lifetime.arrives_at % DAY // 3600 for lifetime in lifetimes]
    assert sum(12 <= hour < 16 for hour in hours) > 3 * sum(hour < 4 for hour in hours)
    minutes = [lifetime.arrives_at // 60 for lifetime in lifetimes]
    assert max(minutes.count(minute) + minutes.count(minute + 1) for minute in set(minutes)) >= 200
    leaving = [lifetime.leaves_at for lifetime in lifetimes]
    assert max(leaving.count(instant) for instant in set(leaving)) > 30


@pytest.mark.parametrize(
    ("hosted", "costs", "least", "seconds"),
    [
        ([(0, 5)], NONE, 0, 100),
        ([(0, 5)], NONE, 3, 300),
        ([(0, 11)], NONE, 0, 200),
        ([(20, 1), (60, 0)], NONE, 0, 40),
        ([(20, 1), (60, 0)], Costs(10, 5), 0, 50),  # built beforehand, and removed for nothing at the end
        ([(5, 1), (60, 0)], Costs(10, 5), 0, 60),  # there is no time before the beginning
        ([(0, 1), (40, 0), (50, 1)], Costs(10, 5), 0, 100),  # kept over the short gap
        ([(0, 1), (40, 0), (80, 1)], Costs(10, 5), 0, 75),  # removed and built again in the long one
        ([(0, 1), (40, 0), (80, 1)], Costs(10, 5), 1, 100),
        ([(0, 1), (40, 11), (60, 1)], NONE, 1, 120),
        ([], NONE, 2, 200),
    ],
)
def test_hindsight_by_hand(hosted: list[tuple[int, int]], costs: Costs, least: int, seconds: int) -> None:
    steps = [CountChange(*step) for step in hosted]
    assert oracle_seed_seconds(steps, end=100, capacity=10, least=least, costs=costs) == seconds


def test_percentiles_are_of_the_nearest_rank() -> None:
    assert [percentile(list(range(1, 101)), part) for part in (0, 50, 99, 100)] == [1, 50, 99, 100]
    assert percentile([], 99) == 0
