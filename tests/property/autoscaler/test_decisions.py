"""Invariants of every set of seeds, every autoscaler and every history."""

import itertools
from datetime import timedelta
from fractions import Fraction
from math import ceil
from random import Random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from gardenbus.autoscaling.decision import ScalingDecision, decide
from gardenbus.autoscaling.replica_calculator import propose_replicas, replicas_for_placed
from gardenbus.autoscaling.resource_metrics import Tolerance
from gardenbus.autoscaling.seed_set import ReplicaState, SeedSetState
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.seed_autoscalers import SeedAutoscalerSpec
from tests.support.autoscaling import START, AutoscalerDriver, a_metric, a_set, a_spec

TOLERANCE = Fraction(1, 10)
EITHER_WAY = Tolerance(TOLERANCE, TOLERANCE)
sizes = st.integers(1, 40).map(Fraction) | st.sampled_from([Fraction(3, 2), Fraction(250)])
metrics = st.lists(
    st.builds(a_metric, utilization=st.integers(1, 100))
    | st.builds(a_metric, amount=st.sampled_from(["1", "7", "500m"])),
    min_size=1,
    max_size=2,
)
policies = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(["Pods", "Replicas", "Percent"]),
            "value": st.integers(1, 100),
            "periodSeconds": st.integers(1, 1800),
        }
    ),
    max_size=2,
)
rules = st.fixed_dictionaries(
    {
        "stabilizationWindowSeconds": st.sampled_from([0, 15, 60, 300, 3600]),
        "selectPolicy": st.sampled_from(["Max", "Min"]),
        "policies": policies,
    }
)
behaviors = st.fixed_dictionaries({}, optional={"scaleUp": rules, "scaleDown": rules})


@st.composite
def specs(draw: st.DrawFn, behavior: st.SearchStrategy[Document] = behaviors) -> SeedAutoscalerSpec:
    least = draw(st.integers(0, 6))
    most = draw(st.integers(max(least, 1), 30))
    return a_spec(minReplicas=least, maxReplicas=most, metrics=draw(metrics), behavior=draw(behavior))


def _replica(name: str, is_built: bool, leaving: int, size: Fraction | None) -> ReplicaState:
    allocatable = None if size is None else {"shoots": size}
    return ReplicaState(name=name, is_built=is_built, is_leaving=leaving == 0, allocatable=allocatable)


def _set(
    replicas: list[ReplicaState], ordered: int, size: Fraction, shoots: int, pending: int, being_scheduled: int
) -> SeedSetState:
    return SeedSetState(
        ordered=ordered,
        replicas=replicas,
        new_seed={"shoots": size},
        shoots=shoots,
        pending=pending,
        being_scheduled=being_scheduled,
    )


replicas = st.builds(_replica, st.sampled_from("abc"), st.booleans(), st.integers(0, 5), st.none() | sizes)
_sets = st.builds(
    _set,
    st.lists(replicas, max_size=12),
    st.integers(0, 15),
    sizes,
    st.integers(0, 300),
    st.integers(0, 300),
    st.sampled_from([0, 0, 3, 50]),
)


def sets() -> st.SearchStrategy[SeedSetState]:
    return _sets


def reconciles(
    driver: AutoscalerDriver, loads: list[SeedSetState], steps: list[int]
) -> list[tuple[SeedSetState, ScalingDecision]]:
    return [(seeds, driver.reconcile_once(seeds, after=step)) for seeds, step in zip(loads, steps, strict=False)]


@given(specs(), st.lists(sets(), min_size=1, max_size=8), st.lists(st.integers(1, 900), min_size=8, max_size=8))
def test_the_bounds_are_kept_and_no_shoot_loses_its_seed(
    spec: SeedAutoscalerSpec, loads: list[SeedSetState], steps: list[int]
) -> None:
    for seeds, decision in reconciles(AutoscalerDriver(spec), loads, steps):
        held = min(replicas_for_placed(seeds), seeds.ordered)
        assert decision.desired >= held
        assert decision.desired >= spec.min_replicas
        assert decision.desired <= max(spec.max_replicas, held)
        assert (decision.rescale is None) == (decision.desired == seeds.ordered)


@given(specs(), sets(), st.integers(0, 50), st.integers(0, 50), st.integers(0, 50))
def test_more_load_never_asks_for_fewer_seeds(
    spec: SeedAutoscalerSpec, seeds: SeedSetState, more_shoots: int, more_pending: int, more_coming: int
) -> None:
    heavier = msgspec.structs.replace(
        seeds,
        shoots=seeds.shoots + more_shoots,
        pending=seeds.pending + more_pending,
        being_scheduled=seeds.being_scheduled + more_coming,
    )
    assert propose_replicas(spec, heavier, EITHER_WAY).replicas >= propose_replicas(spec, seeds, EITHER_WAY).replicas
    assert (
        AutoscalerDriver(spec).reconcile_once(heavier).desired >= AutoscalerDriver(spec).reconcile_once(seeds).desired
    )


@given(specs(), st.lists(sets(), min_size=1, max_size=6), st.lists(st.integers(1, 5000), min_size=6, max_size=6))
def test_while_a_metric_is_missing_nothing_shrinks(
    spec: SeedAutoscalerSpec, loads: list[SeedSetState], steps: list[int]
) -> None:
    blind = a_spec(
        minReplicas=spec.min_replicas,
        maxReplicas=30,
        metrics=[a_metric(), a_metric("cpu", amount="1")],
        behavior={"scaleDown": {"stabilizationWindowSeconds": 0}},
    )
    silent = ReplicaState(name="silent", allocatable={"shoots": Fraction(10)})
    loads = [
        SeedSetState(
            ordered=seeds.ordered, replicas=[*seeds.replicas, silent], new_seed=seeds.new_seed, shoots=seeds.shoots
        )
        for seeds in loads
    ]
    for seeds, decision in reconciles(AutoscalerDriver(blind), loads, steps):
        assert decision.desired >= seeds.ordered
        assert decision.active.status == "False"


@settings(deadline=None)
@given(
    st.integers(10, 100),
    st.integers(1, 12),
    st.integers(1, 40),
    st.integers(0, 100),
    st.integers(0, 100),
    st.sampled_from([0, 300]),
)
def test_under_constant_load_each_direction_is_taken_at_most_once_and_then_it_stands(
    target: int, built: int, size: int, shoots: int, pending: int, window: int
) -> None:
    """The waiting shoots are placed as soon as there are seeds for them."""
    behavior = {"scaleDown": {"stabilizationWindowSeconds": window}}
    driver = AutoscalerDriver(a_spec(metrics=[a_metric(utilization=target)], maxReplicas=2000, behavior=behavior))
    shoots = min(shoots, built * size)
    pending = pending if shoots == built * size else 0
    changes_made: list[int] = []
    count = built
    for _ in range(20):
        decision = driver.reconcile_once(a_set(count, places=size, shoots=shoots, pending=pending), after=60)
        changes_made.append(decision.desired - count)
        count = decision.desired
        placed = min(pending, count * size - shoots)
        shoots, pending = shoots + placed, pending - placed
    directions = [change > 0 for change in changes_made if change]
    assert len(list(itertools.groupby(directions))) <= 1
    assert changes_made.count(0) >= 20 - 2, "once for those who wait, once for what they then use"
    assert changes_made[-10:] == [0] * 10
    assert (
        abs(Fraction(shoots * 100, count * size * target) - 1) <= TOLERANCE
        or count == ceil(Fraction(shoots * 100, size * target))
        or count == 1
    )


@given(
    st.lists(sizes, min_size=1, max_size=10),
    st.integers(1, 100),
    st.integers(0, 300),
    st.randoms(use_true_random=False),
)
def test_seeds_of_many_sizes_never_make_it_go_to_and_fro(
    capacities: list[Fraction], target: int, shoots: int, chance: Random
) -> None:
    """Whichever seeds a shrinking set lets go, and however large the new ones of a growing set are."""
    spec = a_spec(metrics=[a_metric(utilization=target)], maxReplicas=100_000)
    driver = AutoscalerDriver(spec)
    shoots = min(shoots, int(sum(capacities)))
    directions: list[bool] = []
    for _ in range(30):
        there = [ReplicaState(allocatable={"shoots": room}) for room in capacities]
        seeds = SeedSetState(ordered=len(capacities), replicas=there, new_seed={"shoots": Fraction(10)}, shoots=shoots)
        decision = driver.reconcile_once(seeds, after=15)
        if decision.desired == len(capacities):
            break
        directions.append(decision.desired > len(capacities))
        if directions[-1]:
            capacities = capacities + [Fraction(10)] * (decision.desired - len(capacities))
        else:
            chance.shuffle(capacities)
            capacities = capacities[: decision.desired]
    else:
        raise AssertionError("it never came to rest")
    changes = [direction for direction, _ in itertools.groupby(directions)]
    assert changes in ([], [True], [False], [True, False]), changes


@given(specs(), st.lists(sets(), min_size=2, max_size=6), st.lists(st.integers(1, 400), min_size=6, max_size=6))
def test_the_moment_told_is_never_too_late(
    spec: SeedAutoscalerSpec, loads: list[SeedSetState], steps: list[int]
) -> None:
    """Until then, the same set gives the same decision: the simulation and the service rely on it."""
    driver = AutoscalerDriver(spec)
    for seeds, step in zip(loads, steps, strict=False):
        decision, now = driver.reconcile_once(seeds, after=step), driver.now
        until = decision.recheck_at or now + timedelta(days=2)
        for part in (1, 50, 99):
            between = now + (until - now) * part / 100
            if between < until and decision.rescale is None:
                assert decide(spec, decision.memory, seeds, between).desired == decision.desired


@given(
    st.lists(st.tuples(st.integers(1, 400), st.integers(0, 100), st.booleans()), max_size=20),
    st.sampled_from([60, 300, 900]),
)
def test_a_restart_never_shrinks_a_set_before_its_window_is_over(
    story: list[tuple[int, int, bool]], window: int
) -> None:
    """Nothing below a recommendation is ordered until a window has passed since then."""
    spec = a_spec(maxReplicas=20, behavior={"scaleDown": {"stabilizationWindowSeconds": window}})
    driver = AutoscalerDriver(spec)
    reported: list[tuple[float, int]] = []
    count, moment = 3, 0.0
    for seconds, shoots, is_missed in story:
        moment += seconds
        driver.now = START + timedelta(seconds=moment)
        if is_missed:
            continue
        seeds = a_set(count, shoots=shoots)
        decision = driver.reconcile_once(seeds)
        recommended = decision.memory.recommended_replicas
        assert recommended is not None
        if decision.desired < count:
            assert decision.desired >= max([each for at, each in reported if moment - at < window], default=0)
        reported.append((moment, recommended))
        count = decision.desired
