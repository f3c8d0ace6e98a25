"""Scheduling: pending shoots in the queue, from the first fetch to the last binding announced."""

from collections.abc import Sequence

import msgspec

from gardenbus.bench.bare.services import SCHEDULING_CONSUMER, SEEDS_VARIABLE, UIDS_VARIABLE
from gardenbus.bench.comparison import (
    MeasuredPair,
    Measurement,
    ReportProgress,
    ScenarioTarget,
    ScenarioTask,
    alternated,
    compared,
)
from gardenbus.bench.harness.loading import BenchLandscape, StoredShoot, create_pending, load
from gardenbus.bench.harness.measurement import StreamTarget, measure_released, pause_consumer, write_json
from gardenbus.bench.harness.rig import Rig, a_rig
from gardenbus.bench.harness.verification import check_bound, usage
from gardenbus.bench.manifests.shoots import Mix, groups_of
from gardenbus.bench.options import BenchProfile
from gardenbus.bench.stats import ScenarioStats
from gardenbus.common.api.document import Document
from gardenbus.embedded.configurations import DEFAULT_SCHEDULER_CONFIGURATION

CONFIGURATION = "scheduler.yaml"
LEAST_RATIO, LEAST_RATIO_WEIGHTED = 0.7, 0.6
BARE = "gardenbus.bench.bare.services"


WEIGHTED_PROFILE: Document = {
    "candidateDeterminationStrategy": "Weighted",
    "plugins": {
        "score": {
            "enabled": [
                {"name": "MinimalDistance", "weight": 4},
                {"name": "SeedAffinity", "weight": 4},
                {"name": "ShootTopologySpread", "weight": 3},
                {"name": "SeedResourcesFit", "weight": 2},
            ]
        }
    },
}
"""The profile `weighted`: four scores among all seeds, of distance, labels, groups and use."""


class ShootBatch(msgspec.Struct, frozen=True):
    """Pending shoots that are to be bound: how many, how they are called, what they are like."""

    prefix: str
    count: int
    mix: Mix = "uniform"


async def prepare(rig: Rig, landscape: BenchLandscape, progress: ReportProgress) -> None:
    """Start a relay and fill the landscape."""
    strategy = "MinimalDistance" if landscape.mix == "mixed" else "SameRegion"
    configuration: Document = {
        **DEFAULT_SCHEDULER_CONFIGURATION,
        "schedulers": {"shoot": {"candidateDeterminationStrategy": strategy}},
    }
    if landscape.mix == "weighted":
        configuration["profiles"] = [WEIGHTED_PROFILE]
    write_json(rig.directory.config / CONFIGURATION, configuration)
    await rig.start("relay")
    await load(rig, landscape, progress)


async def start_scheduler(rig: Rig) -> None:
    """Start a scheduler on the rig's configuration."""
    await rig.start("scheduler", "--config", str(rig.directory.config / CONFIGURATION))


async def bind_by_scheduler(rig: Rig, batch: ShootBatch, progress: ReportProgress) -> Measurement:
    """Have running schedulers bind new shoots, and check what they did."""
    await pause_consumer(rig, "QUEUES", SCHEDULING_CONSUMER)
    return await bind_queued(rig, await create_pending(rig, batch.prefix, batch.count, batch.mix, progress))


async def bind_queued(rig: Rig, pending: Sequence[StoredShoot]) -> Measurement:
    """Let shoots go that are held back in the queue, and check what running schedulers did."""
    before = await usage(rig)
    target = await StreamTarget.ahead(rig, "BINDINGS", len(pending))
    measurement = await measure_released(rig, "QUEUES", SCHEDULING_CONSUMER, target, len(pending))
    await check_bound(rig, pending, before, target)
    return measurement


async def measure_product(rig: Rig, batch: ShootBatch, progress: ReportProgress) -> Measurement:
    """Bind new shoots with schedulers that are started for it and stopped after it."""
    await start_scheduler(rig)
    measurement = await bind_by_scheduler(rig, batch, progress)
    await rig.stop("scheduler")
    return measurement


async def measure_bare(rig: Rig, batch: ShootBatch, seeds: int, progress: ReportProgress) -> Measurement:
    """Bind new shoots with nothing decided."""
    file = rig.directory.config / "uids.json"
    await pause_consumer(rig, "QUEUES", SCHEDULING_CONSUMER)
    pending = await create_pending(rig, batch.prefix, batch.count, batch.mix, progress)
    described = {
        shoot.key.name: (shoot.uid, groups_of(shoot.key.name, number, batch.mix))
        for number, shoot in enumerate(pending)
    }
    write_json(file, described)
    await rig.start("bare", "schedule", module=BARE, environ={SEEDS_VARIABLE: str(seeds), UIDS_VARIABLE: str(file)})
    before = await usage(rig)
    target = await StreamTarget.ahead(rig, "BINDINGS", batch.count)
    measurement = await measure_released(rig, "QUEUES", SCHEDULING_CONSUMER, target, batch.count)
    await rig.stop("bare")
    await check_bound(rig, pending, before, target)
    return measurement


async def pairs_on(rig: Rig, task: ScenarioTask, mix: Mix = "uniform") -> list[MeasuredPair]:
    """All runs of product and bare pipe on one rig."""
    size = task.size
    return await alternated(
        task,
        lambda run: measure_product(rig, ShootBatch(f"p{run}", size.shoots, mix), task.progress),
        lambda run: measure_bare(rig, ShootBatch(f"b{run}", size.shoots, mix), size.seeds, task.progress),
    )


def mix_of(profile: BenchProfile | None) -> Mix:
    """Mix of the landscape that a profile is measured in."""
    return "uniform" if profile is None else "weighted"


async def measure(task: ScenarioTask) -> ScenarioStats:
    """Product against bare pipe: without a profile in a uniform landscape."""
    mix = mix_of(task.profile)
    async with a_rig(task.durability) as rig:
        await prepare(rig, BenchLandscape(task.size.seeds, task.size.placed, mix), task.progress)
        pairs = await pairs_on(rig, task, mix)
    least_ratio = LEAST_RATIO if task.profile is None else LEAST_RATIO_WEIGHTED
    return compared(
        task,
        pairs,
        ScenarioTarget(f"≥ {least_ratio} of the bare pipe", least_ratio),
        latency_of="from the first fetch to the binding announced, all queued at once",
    )
