"""Scheduling: pending shoots in the queue, from the first fetch to the last binding announced."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from gardenbus.cli.bench.bare import SCHEDULING_CONSUMER, SEEDS_VARIABLE, UIDS_VARIABLE
from gardenbus.cli.bench.checking import check_bound, usage
from gardenbus.cli.bench.figures import Figures
from gardenbus.cli.bench.loading import Landscape, create_pending, load
from gardenbus.cli.bench.manifests import Mix
from gardenbus.cli.bench.pipes import Mark, Span, hold, released, write_json
from gardenbus.cli.bench.results import Pair, Progress, Target, Task, alternated, compared
from gardenbus.cli.bench.rig import Rig, a_rig
from gardenbus.cli.supervisor.configurations import DEFAULT_SCHEDULER_CONFIGURATION
from gardenbus.common.resources.document import Document

CONFIGURATION = "scheduler.yaml"
BARE = "gardenbus.cli.bench.bare"


class Batch(msgspec.Struct, frozen=True):
    """Pending shoots that are to be bound: how many, how they are called, what they are like."""

    prefix: str
    count: int
    mix: Mix = "uniform"


class Tally(NamedTuple):
    """What schedulers counted of themselves."""

    bound: float
    conflicts: float
    woken: float


async def prepare(rig: Rig, landscape: Landscape, progress: Progress) -> None:
    """Start a relay and fill the landscape."""
    strategy = "MinimalDistance" if landscape.mix == "mixed" else "SameRegion"
    configuration: Document = {
        **DEFAULT_SCHEDULER_CONFIGURATION,
        "schedulers": {"shoot": {"candidateDeterminationStrategy": strategy}},
    }
    write_json(rig.directory.config / CONFIGURATION, configuration)
    await rig.start("relay")
    await load(rig, landscape, progress)


async def start_scheduler(rig: Rig, replicas: int = 1, environ: Mapping[str, str] | None = None) -> None:
    """Start schedulers on the rig's configuration."""
    await rig.start(
        "scheduler", "--config", str(rig.directory.config / CONFIGURATION), replicas=replicas, environ=environ
    )


async def tally(rig: Rig) -> Tally:
    """Read the schedulers' counters."""
    attempts = "gardenbus_scheduler_attempts_total"
    return Tally(
        await rig.counter("scheduler", attempts, result="bound"),
        await rig.counter("scheduler", attempts, result="conflict"),
        await rig.counter("scheduler", "gardenbus_scheduler_woken_total"),
    )


async def bind_by_scheduler(rig: Rig, batch: Batch, progress: Progress) -> Span:
    """Have running schedulers bind new shoots, and check what they did."""
    await hold(rig, "QUEUES", SCHEDULING_CONSUMER)
    pending = await create_pending(rig, batch.prefix, batch.count, batch.mix, progress)
    before = await usage(rig)
    mark = await Mark.ahead(rig, "BINDINGS", batch.count)
    span = await released(rig, "QUEUES", SCHEDULING_CONSUMER, mark, batch.count)
    await check_bound(rig, pending, before, mark)
    return span


async def measure_product(rig: Rig, batch: Batch, progress: Progress, *, replicas: int = 1) -> Span:
    """Bind new shoots with schedulers that are started for it and stopped after it."""
    await start_scheduler(rig, replicas)
    span = await bind_by_scheduler(rig, batch, progress)
    await rig.stop("scheduler")
    return span


async def measure_bare(rig: Rig, batch: Batch, seeds: int, progress: Progress) -> Span:
    """Bind new shoots with nothing decided."""
    file = rig.directory.config / "uids.json"
    await hold(rig, "QUEUES", SCHEDULING_CONSUMER)
    pending = await create_pending(rig, batch.prefix, batch.count, batch.mix, progress)
    write_json(file, {known.key.name: known.uid for known in pending})
    await rig.start("bare", "schedule", module=BARE, environ={SEEDS_VARIABLE: str(seeds), UIDS_VARIABLE: str(file)})
    before = await usage(rig)
    mark = await Mark.ahead(rig, "BINDINGS", batch.count)
    span = await released(rig, "QUEUES", SCHEDULING_CONSUMER, mark, batch.count)
    await rig.stop("bare")
    await check_bound(rig, pending, before, mark)
    return span


async def pairs_on(rig: Rig, task: Task, mix: Mix = "uniform") -> list[Pair]:
    """All runs of product and bare pipe on one rig."""
    size = task.size
    return await alternated(
        task,
        lambda run: measure_product(rig, Batch(f"p{run}", size.shoots, mix), task.progress),
        lambda run: measure_bare(rig, Batch(f"b{run}", size.shoots, mix), size.seeds, task.progress),
    )


async def measure(task: Task) -> Figures:
    """Product against bare pipe in a uniform landscape."""
    async with a_rig(task.durability) as rig:
        await prepare(rig, Landscape(task.size.seeds, task.size.placed), task.progress)
        pairs = await pairs_on(rig, task)
    return compared(
        task,
        pairs,
        Target("≥ 0.7 of the bare pipe", 0.7),
        latency_of="from the first fetch to the binding announced, all queued at once",
    )
