"""Several schedulers on one queue: as right as one, as fast as one, and how often they get into each other's way."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from gardenbus.cli.bench.figures import Figures, middle
from gardenbus.cli.bench.loading import Landscape
from gardenbus.cli.bench.pipes import Span
from gardenbus.cli.bench.results import Pair, Target, Task, compared, parameters
from gardenbus.cli.bench.rig import Rig, a_rig
from gardenbus.cli.bench.scheduling import Batch, bind_by_scheduler, measure_bare, prepare, start_scheduler, tally

COUNTS = (1, 2, 4)
MOST_WALL_TIME = 1.15
MOST_CONFLICTS = 0.05
SPARE_PLACES = 1.1
"""Places on the seeds by what is bound in all: little room, so that replicas can get into each other's way."""


class Attempt(NamedTuple):
    """What a number of replicas did in a run."""

    span: Span
    conflicts: float
    """The share of attempts that had to be decided again."""


async def measure(task: Task) -> Figures:
    """One, two and four replicas by turns, and the bare pipe."""
    size = task.size
    attempts: dict[int, list[Attempt]] = {count: [] for count in COUNTS}
    bares: list[Span] = []
    bound_in_all = size.placed + size.shoots * size.runs * (len(COUNTS) + 1)
    capacity = int(bound_in_all * SPARE_PLACES / size.seeds) + 1
    async with a_rig(task.durability) as rig:
        await prepare(rig, Landscape(size.seeds, size.placed, capacity=capacity), task.progress)
        for run in range(size.runs):
            task.progress("runs", run, size.runs)
            for count in COUNTS if run % 2 == 0 else COUNTS[::-1]:
                attempts[count].append(await _attempt(task, rig, count, run))
            bares.append(await measure_bare(rig, Batch(f"b{run}", size.shoots), size.seeds, task.progress))
        task.progress("runs", size.runs, size.runs)
    return _figures(task, attempts, bares, capacity)


async def _attempt(task: Task, rig: Rig, replicas: int, run: int) -> Attempt:
    await start_scheduler(rig, replicas)
    span = await bind_by_scheduler(rig, Batch(f"p{replicas}-{run}", task.size.shoots), task.progress)
    counted = await tally(rig)
    await rig.stop("scheduler")
    return Attempt(span, counted.conflicts / (counted.bound + counted.conflicts))


def _figures(task: Task, attempts: dict[int, list[Attempt]], bares: Sequence[Span], capacity: int) -> Figures:
    spans = {count: [attempt.span for attempt in of_count] for count, of_count in attempts.items()}
    wall = {
        count: middle(one.rate / many.rate for one, many in zip(spans[1], spans[count], strict=True)) or 0.0
        for count in COUNTS[1:]
    }
    conflicts = {count: middle(attempt.conflicts for attempt in attempts[count]) or 0.0 for count in COUNTS[1:]}
    pairs = [Pair(span, bare) for span, bare in zip(spans[COUNTS[-1]], bares, strict=True)]
    figures = compared(
        task,
        pairs,
        Target("< 5 % of attempts decided twice, wall time ≤ 1.15 of one's"),
        latency_of=f"{COUNTS[-1]} replicas: from the first fetch to the binding announced, all queued at once",
    )
    return msgspec.structs.replace(
        figures,
        met=max(wall.values()) <= MOST_WALL_TIME and max(conflicts.values()) < MOST_CONFLICTS,
        values={
            **figures.values,
            **{f"per_s_by_{count}": round(middle(span.rate for span in spans[count]) or 0.0, 1) for count in COUNTS},
            **{f"wall_time_of_{count}": round(value, 3) for count, value in wall.items()},
            **{f"conflicts_of_{count}": round(value, 4) for count, value in conflicts.items()},
        },
        parameters=parameters(task, {"replicas": COUNTS[-1], "places_on_a_seed": capacity}),
    )
