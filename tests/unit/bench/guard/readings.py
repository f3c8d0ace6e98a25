"""Readings and figures of a small landscape for the guard's tests."""

from collections.abc import Mapping, Sequence

from gardenbus.bench.guard.baseline import Baseline, measured
from gardenbus.bench.guard.readings import Functions, ScenarioReading, TurnReading, Yardsticks

YARDSTICKS: Yardsticks = {"python": 100e-6, "redis": 50e-6, "nats": 20e-6}
CPU_US: Mapping[str, float] = {"apiserver": 500.0, "relay": 90.0, "redis": 180.0, "nats": 80.0}
"""Microseconds of each process for one shoot."""
UNITS = 1000


def a_turn(
    cpu_us: Mapping[str, float] = CPU_US,
    *,
    before: Yardsticks = YARDSTICKS,
    after: Yardsticks | None = None,
    memory_mb: Mapping[str, float] = {},
    wakeups: Mapping[str, float] = {},
    units: int = UNITS,
    seconds: float = 2.0,
) -> TurnReading:
    cpu_s = {name: units * us / 1e6 for name, us in cpu_us.items()}
    return TurnReading(units, seconds, cpu_s, before, after or before, memory_mb, wakeups)


def a_reading(
    *turns: TurnReading, scenario: str = "intake", unit: str = "shoot", functions: Mapping[str, Functions] = {}
) -> ScenarioReading:
    return ScenarioReading(scenario=scenario, unit=unit, turns=turns or (a_turn(),) * 3, functions=functions)


def the_baseline(*readings: ScenarioReading) -> Baseline:
    found: Sequence[ScenarioReading] = readings or (a_reading(),)
    return Baseline(
        commit="0123456789abcdef",
        measured_at="2026-11-28 23:00 UTC",
        machine={"cores": 2},
        yardsticks_us={"python": 100.0},
        yardsticks_varied={"intake": {"python": 0.02}},
        scenarios={each.scenario: measured(each) for each in found},
    )
