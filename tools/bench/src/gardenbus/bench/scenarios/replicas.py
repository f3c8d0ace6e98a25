"""Several schedulers on one queue: as right as one, as fast as one, and how often they get into each other's way."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from gardenbus.bench.comparison import MeasuredPair, Measurement, ScenarioTarget, ScenarioTask, compared, parameters
from gardenbus.bench.harness.loading import BenchLandscape
from gardenbus.bench.harness.rig import Rig, a_rig
from gardenbus.bench.scenarios.scheduling import (
    ShootBatch,
    bind_by_scheduler,
    measure_bare,
    prepare,
    scheduler_counts,
    start_scheduler,
)
from gardenbus.bench.stats import ScenarioStats, median_of

COUNTS = (1, 2, 4)
MOST_WALL_TIME = 1.15
MOST_CONFLICTS = 0.05
SPARE_PLACES = 1.1
"""Places on the seeds by what is bound in all: little room, so that replicas can get into each other's way."""


class Attempt(NamedTuple):
    """One run with a number of replicas."""

    measurement: Measurement
    conflicts: float
    """The share of attempts that had to be decided again."""


async def measure(task: ScenarioTask) -> ScenarioStats:
    """One, two and four replicas by turns, and the bare pipe."""
    size = task.size
    attempts: dict[int, list[Attempt]] = {count: [] for count in COUNTS}
    bares: list[Measurement] = []
    bound_in_all = size.placed + size.shoots * size.runs * (len(COUNTS) + 1)
    capacity = int(bound_in_all * SPARE_PLACES / size.seeds) + 1
    async with a_rig(task.durability) as rig:
        await prepare(rig, BenchLandscape(size.seeds, size.placed, capacity=capacity), task.progress)
        for run in range(size.runs):
            task.progress("runs", run, size.runs)
            for count in COUNTS if run % 2 == 0 else COUNTS[::-1]:
                attempts[count].append(await _attempt(task, rig, count, run))
            bares.append(await measure_bare(rig, ShootBatch(f"b{run}", size.shoots), size.seeds, task.progress))
        task.progress("runs", size.runs, size.runs)
    return _stats(task, attempts, bares, capacity)


async def _attempt(task: ScenarioTask, rig: Rig, replicas: int, run: int) -> Attempt:
    await start_scheduler(rig, replicas)
    measurement = await bind_by_scheduler(rig, ShootBatch(f"p{replicas}-{run}", task.size.shoots), task.progress)
    counted = await scheduler_counts(rig)
    await rig.stop("scheduler")
    return Attempt(measurement, counted.conflicts / (counted.bound + counted.conflicts))


def _stats(
    task: ScenarioTask, attempts: dict[int, list[Attempt]], bares: Sequence[Measurement], capacity: int
) -> ScenarioStats:
    measurements = {count: [attempt.measurement for attempt in of_count] for count, of_count in attempts.items()}
    wall = {
        count: median_of(one.rate / many.rate for one, many in zip(measurements[1], measurements[count], strict=True))
        or 0.0
        for count in COUNTS[1:]
    }
    conflicts = {count: median_of(attempt.conflicts for attempt in attempts[count]) or 0.0 for count in COUNTS[1:]}
    pairs = [MeasuredPair(measurement, bare) for measurement, bare in zip(measurements[COUNTS[-1]], bares, strict=True)]
    stats = compared(
        task,
        pairs,
        ScenarioTarget("< 5 % of attempts decided twice, wall time ≤ 1.15 of one's"),
        latency_of=f"{COUNTS[-1]} replicas: from the first fetch to the binding announced, all queued at once",
    )
    return msgspec.structs.replace(
        stats,
        met=max(wall.values()) <= MOST_WALL_TIME and max(conflicts.values()) < MOST_CONFLICTS,
        values={
            **stats.values,
            **{
                f"per_s_by_{count}": round(median_of(measurement.rate for measurement in measurements[count]) or 0.0, 1)
                for count in COUNTS
            },
            **{f"wall_time_of_{count}": round(value, 3) for count, value in wall.items()},
            **{f"conflicts_of_{count}": round(value, 4) for count, value in conflicts.items()},
        },
        parameters=parameters(task, {"replicas": COUNTS[-1], "places_on_a_seed": capacity}),
    )
