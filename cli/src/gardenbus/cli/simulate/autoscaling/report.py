"""Scenario and summary of a whole simulation."""

from collections.abc import Sequence
from datetime import timedelta
from fractions import Fraction
from itertools import pairwise
from math import ceil
from typing import Any

import msgspec

from gardenbus.cli.simulate.autoscaling.oracle import Costs, oracle_seed_seconds
from gardenbus.cli.simulate.autoscaling.simulator import SeedSetModel, SeedSetSimulator, SimulationTrace
from gardenbus.cli.simulate.autoscaling.workload import ShootWorkload
from gardenbus.common.api.configuration.seed_autoscaler import Pace
from gardenbus.common.api.garden.seed_autoscalers import SeedAutoscalerSpec

HOUR = 3600


class AutoscalerScenario(msgspec.Struct, frozen=True, kw_only=True):
    """Parameters of a simulation. `target` is the utilization aimed at, in percent; windows are seconds."""

    load: ShootWorkload = ShootWorkload()
    seeds: SeedSetModel = SeedSetModel()
    least: int = 1
    most: int = 20
    target: int = 80
    window_up_seconds: int = 0
    window_down_seconds: int = 300
    tolerance: Fraction = Fraction(1, 10)
    sync_seconds: int = 15

    def spec(self) -> SeedAutoscalerSpec:
        """Spec of the simulated SeedAutoscaler."""
        target = {"type": "Utilization", "averageUtilization": self.target}
        manifest: dict[str, Any] = {
            "minReplicas": self.least,
            "maxReplicas": self.most,
            "metrics": [{"type": "Resource", "resource": {"name": "shoots", "target": target}}],
            "behavior": {
                "scaleUp": {"stabilizationWindowSeconds": self.window_up_seconds},
                "scaleDown": {"stabilizationWindowSeconds": self.window_down_seconds},
            },
        }
        return msgspec.convert(manifest, SeedAutoscalerSpec)


class WaitingTimes(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Waiting times of shoots for a seed."""

    p50_seconds: int
    p99_seconds: int
    max_seconds: int
    mean_seconds: float
    share: float
    """Part of the shoots that waited at all."""


class SeedHours(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Seed-hours paid, and the oracle's lower bound for the same shoots at the same times."""

    paid: float
    best: float
    ratio: float


class ScaleEventCounts(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Changes of the set; `reversals` changed direction."""

    up: int
    down: int
    reversals: int


class SimulationSummary(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The result in a few numbers."""

    days: int
    shoots: int
    most_shoots: int
    most_seeds: int
    waiting: WaitingTimes
    seed_hours: SeedHours
    scale_events: ScaleEventCounts


def simulate(scenario: AutoscalerScenario) -> SimulationTrace:
    """Run a scenario; the same one gives the same trace."""
    pace = Pace(tolerance=scenario.tolerance, downscale_stabilization=timedelta(seconds=scenario.window_down_seconds))
    return SeedSetSimulator(scenario.load, scenario.spec(), scenario.seeds, pace, scenario.sync_seconds).run()


def summary_of(scenario: AutoscalerScenario, trace: SimulationTrace) -> SimulationSummary:
    """Summarize a trace."""
    best = oracle_seed_seconds(
        trace.hosted,
        end=trace.end,
        capacity=scenario.seeds.capacity,
        least=scenario.least,
        costs=Costs(scenario.seeds.build_seconds, scenario.seeds.removal_seconds),
    )
    waits = sorted(trace.waits)
    counts = [scenario.least, *(change.number for change in trace.changes)]
    rises = [after > before for before, after in pairwise(counts)]
    return SimulationSummary(
        days=scenario.load.days,
        shoots=len(waits),
        most_shoots=max((instant.wanted for instant in trace.samples), default=0),
        most_seeds=max((instant.paid for instant in trace.samples), default=scenario.least),
        waiting=WaitingTimes(
            p50_seconds=percentile(waits, 50),
            p99_seconds=percentile(waits, 99),
            max_seconds=max(waits, default=0),
            mean_seconds=round(sum(waits) / max(len(waits), 1), 1),
            share=round(sum(wait > 0 for wait in waits) / max(len(waits), 1), 4),
        ),
        seed_hours=SeedHours(
            paid=round(trace.paid_seconds / HOUR, 1),
            best=round(best / HOUR, 1),
            ratio=round(trace.paid_seconds / best, 3) if best else 1.0,
        ),
        scale_events=ScaleEventCounts(
            up=sum(rises),
            down=len(rises) - sum(rises),
            reversals=sum(before != after for before, after in pairwise(rises)),
        ),
    )


def percentile(ordered: Sequence[int], part: int) -> int:
    """The smallest value that at least `part` percent do not exceed; 0 of none."""
    return ordered[max(ceil(len(ordered) * part / 100) - 1, 0)] if ordered else 0
