"""A whole simulation, and what of it people want to know."""

from collections.abc import Sequence
from datetime import timedelta
from fractions import Fraction
from itertools import pairwise
from math import ceil
from typing import Any

import msgspec

from gardenbus.autoscaler.decide.autoscaling import Pace
from gardenbus.autoscaler.simulation.hindsight import Costs, fewest_seed_seconds
from gardenbus.autoscaler.simulation.load import Load
from gardenbus.autoscaler.simulation.world import Course, Set, World
from gardenbus.common.resources.seed_autoscalers import SeedAutoscalerSpec

HOUR = 3600


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """What is simulated. `target` is the utilization aimed at, in percent; windows are seconds."""

    load: Load = Load()
    seeds: Set = Set()
    least: int = 1
    most: int = 20
    target: int = 80
    window_up_seconds: int = 0
    window_down_seconds: int = 300
    tolerance: Fraction = Fraction(1, 10)
    sync_seconds: int = 15

    def spec(self) -> SeedAutoscalerSpec:
        """The autoscaler's."""
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


class Waiting(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How long shoots waited for a seed."""

    p50_seconds: int
    p99_seconds: int
    max_seconds: int
    mean_seconds: float
    share: float
    """Part of the shoots that waited at all."""


class SeedHours(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What was paid, and the least that anybody could have paid who served the same shoots at the same times."""

    paid: float
    best: float
    ratio: float


class ScaleEvents(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Changes of the set; `reversals` are those that took the other direction than the one before."""

    up: int
    down: int
    reversals: int


class Summary(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The outcome in a few numbers."""

    days: int
    shoots: int
    most_shoots: int
    most_seeds: int
    waiting: Waiting
    seed_hours: SeedHours
    scale_events: ScaleEvents


def simulate(scenario: Scenario) -> Course:
    """Run a scenario; the same one gives the same course."""
    pace = Pace(tolerance=scenario.tolerance, downscale_stabilization=timedelta(seconds=scenario.window_down_seconds))
    return World(scenario.load, scenario.spec(), scenario.seeds, pace, scenario.sync_seconds).run()


def summary_of(scenario: Scenario, course: Course) -> Summary:
    """Work out what people want to know."""
    best = fewest_seed_seconds(
        course.hosted,
        end=course.end,
        capacity=scenario.seeds.capacity,
        least=scenario.least,
        costs=Costs(scenario.seeds.build_seconds, scenario.seeds.removal_seconds),
    )
    waits = sorted(course.waits)
    counts = [scenario.least, *(change.number for change in course.changes)]
    rises = [after > before for before, after in pairwise(counts)]
    return Summary(
        days=scenario.load.days,
        shoots=len(waits),
        most_shoots=max((moment.wanted for moment in course.moments), default=0),
        most_seeds=max((moment.paid for moment in course.moments), default=scenario.least),
        waiting=Waiting(
            p50_seconds=percentile(waits, 50),
            p99_seconds=percentile(waits, 99),
            max_seconds=max(waits, default=0),
            mean_seconds=round(sum(waits) / max(len(waits), 1), 1),
            share=round(sum(wait > 0 for wait in waits) / max(len(waits), 1), 4),
        ),
        seed_hours=SeedHours(
            paid=round(course.paid_seconds / HOUR, 1),
            best=round(best / HOUR, 1),
            ratio=round(course.paid_seconds / best, 3) if best else 1.0,
        ),
        scale_events=ScaleEvents(
            up=sum(rises),
            down=len(rises) - sum(rises),
            reversals=sum(before != after for before, after in pairwise(rises)),
        ),
    )


def percentile(ordered: Sequence[int], part: int) -> int:
    """The smallest value that at least `part` percent do not exceed; 0 of none."""
    return ordered[max(ceil(len(ordered) * part / 100) - 1, 0)] if ordered else 0
