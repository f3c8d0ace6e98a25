"""Scheduling: pending shoots in the queue, from the first fetch to the last binding announced."""

import time
from collections.abc import Sequence

from gardenbus.cli.bench.bare import SCHEDULING_CONSUMER, SEEDS_VARIABLE, UIDS_VARIABLE
from gardenbus.cli.bench.loading import Landscape, Progress, create_pending, load
from gardenbus.cli.bench.manifests import Mix
from gardenbus.cli.bench.pipes import Span, counting, hold, last_sequence, let_go, until_sequence, write_json
from gardenbus.cli.bench.rig import BenchFailed, Rig
from gardenbus.cli.supervisor.configurations import DEFAULT_SCHEDULER_CONFIGURATION
from gardenbus.common.resources.document import Document, StoredObject

CONFIGURATION = "scheduler.yaml"


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


async def start_scheduler(rig: Rig, replicas: int = 1) -> None:
    """Start schedulers on the rig's configuration."""
    await rig.start("scheduler", "--config", str(rig.directory.config / CONFIGURATION), replicas=replicas)


async def measure_product(
    rig: Rig, prefix: str, shoots: int, mix: Mix, progress: Progress, *, replicas: int = 1
) -> Span:
    """Bind `shoots` new shoots with schedulers."""
    await start_scheduler(rig, replicas)
    await hold(rig, "QUEUES", SCHEDULING_CONSUMER)
    pending = await create_pending(rig, prefix, shoots, mix, progress)
    span = await _released(rig, shoots)
    await rig.stop("scheduler")
    await check_bound(rig, pending)
    return span


async def measure_bare(rig: Rig, prefix: str, shoots: int, seeds: int, mix: Mix, progress: Progress) -> Span:
    """Bind `shoots` new shoots with nothing decided."""
    file = rig.directory.config / "uids.json"
    write_json(file, {})
    await hold(rig, "QUEUES", SCHEDULING_CONSUMER)
    pending = await create_pending(rig, prefix, shoots, mix, progress)
    write_json(file, {stored.key.name: stored.uid for stored in pending})
    environ = {SEEDS_VARIABLE: str(seeds), UIDS_VARIABLE: str(file)}
    await rig.start("bare", "schedule", module="gardenbus.cli.bench.bare", environ=environ)
    span = await _released(rig, shoots)
    await rig.stop("bare")
    await check_bound(rig, pending)
    return span


async def check_bound(rig: Rig, shoots: Sequence[StoredObject]) -> None:
    """Raise BenchFailed unless each shoot has a seed: a figure without its result is none."""
    keys = [stored.key for stored in shoots]
    for start in range(0, len(keys), 1000):
        for key, stored in zip(
            keys[start : start + 1000], await rig.store.get_many(keys[start : start + 1000]), strict=True
        ):
            if stored is None or not stored.parts.seed_name:
                raise BenchFailed(f"{key} was not placed")


async def _released(rig: Rig, shoots: int) -> Span:
    wanted = await last_sequence(rig, "BINDINGS") + shoots
    async with counting(rig) as span:
        began = time.monotonic()
        await let_go(rig, "QUEUES", SCHEDULING_CONSUMER)
        span.seconds = await until_sequence(rig, "BINDINGS", wanted) - began
    return span
