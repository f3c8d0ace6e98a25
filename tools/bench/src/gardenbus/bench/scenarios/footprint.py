"""Footprint of a scheduler: memory, also as shoots are placed, and the time to be ready."""

import asyncio
import time

from gardenbus.bench.comparison import ReportProgress, ScenarioSize, ScenarioTask, parameters
from gardenbus.bench.harness.loading import BenchLandscape, put_in_bulk
from gardenbus.bench.harness.rig import Rig, a_rig
from gardenbus.bench.manifests.shoots import names, placed, seed_name
from gardenbus.bench.scenarios.scheduling import ShootBatch, bind_by_scheduler, prepare, start_scheduler
from gardenbus.bench.stats import ScenarioStats, largest, latencies, median_of, medians

IDLE = "gardenbus.bench.bare.idle"
MOST_MB = 300.0
MOST_GROWTH_BYTES = 16.0
"""Bytes a placed shoot that count as none."""

LEAST_GROWTH_MB = 2.0
"""Growth below this means nothing: memory comes in arenas."""

MOST_SECONDS = 10.0
REST_SECONDS = 1.0


async def measure_memory(task: ScenarioTask) -> ScenarioStats:
    """The scheduler's resident memory with many seeds, before and after shoots were placed behind its back."""
    size = task.size
    readings: list[float] = []
    async with a_rig(task.durability) as rig:
        await prepare(rig, BenchLandscape(size.seeds, 0), task.progress)
        await rig.start("bare", module=IDLE)
        await start_scheduler(rig)
        at_start = rig.costs()["scheduler"].rss_mb
        await bind_by_scheduler(rig, ShootBatch("warm", size.shoots), task.progress)
        for run in range(size.runs):
            readings.append(await _rested(rig))
            await _place(rig, f"placed-{run}", size, task.progress)
            await bind_by_scheduler(rig, ShootBatch(f"p{run}", size.shoots), task.progress)
        readings.append(await _rested(rig))
        costs = rig.costs()
    grown = readings[-1] - readings[0]
    growth = grown * 1e6 / (size.runs * size.placed)
    return ScenarioStats(
        scenario=task.scenario,
        target=f"≤ {MOST_MB:g} MB, no growth (< {MOST_GROWTH_BYTES:g} bytes) a placed shoot",
        met=max(readings) <= MOST_MB and (growth < MOST_GROWTH_BYTES or grown < LEAST_GROWTH_MB),
        rss_mb={name: round(cost.rss_mb, 1) for name, cost in costs.items()},
        values={
            "mb_at_start": round(at_start, 1),
            "mb_after_a_first_batch": round(readings[0], 1),
            "mb_at_the_end": round(readings[-1], 1),
            "bytes_a_placed_shoot": round(growth, 1),
        },
        runs=[{"rss_mb": round(reading, 1)} for reading in readings],
        parameters=parameters(task),
    )


async def _rested(rig: Rig) -> float:
    await asyncio.sleep(REST_SECONDS)
    return rig.costs()["scheduler"].rss_mb


async def _place(rig: Rig, prefix: str, size: ScenarioSize, progress: ReportProgress) -> None:
    """Put shoots on seeds without this scheduler's doing."""
    shoots = (
        placed(name, number, seed_name(number % size.seeds), "uniform")
        for number, name in enumerate(names(prefix, size.placed))
    )
    await put_in_bulk(rig, shoots, lambda done: progress(prefix, done, size.placed))


async def _started(rig: Rig, role: str) -> tuple[float, dict[str, float], dict[str, float]]:
    """Start one; the seconds until it is ready, what each process spent of the processor, and its memory in MB."""
    before, began = rig.costs(), time.monotonic()
    await (start_scheduler(rig) if role == "scheduler" else rig.start("bare", module=IDLE))
    took, after = time.monotonic() - began, rig.costs()
    spent = {
        name: round(cost.cpu_seconds - (before[name].cpu_seconds if name in before else 0.0), 2)
        for name, cost in after.items()
    }
    return took, spent, {name: round(cost.rss_mb, 1) for name, cost in after.items()}


async def measure_start(task: ScenarioTask) -> ScenarioStats:
    """From the start of the process to `/readyz`, servers up; the bare pipe only connects."""
    seconds: dict[str, list[float]] = {"scheduler": [], "bare": []}
    cpu: dict[str, list[dict[str, float]]] = {"scheduler": [], "bare": []}
    rss: list[dict[str, float]] = []
    async with a_rig(task.durability) as rig:
        await prepare(rig, BenchLandscape(task.size.seeds, task.size.placed), task.progress)
        for run in range(task.size.runs):
            task.progress("runs", run, task.size.runs)
            for role in ("scheduler", "bare"):
                took, spent, sizes = await _started(rig, role)
                seconds[role].append(took)
                cpu[role].append(spent)
                if role == "scheduler":
                    rss.append(sizes)
                await rig.stop(role)
        task.progress("runs", task.size.runs, task.size.runs)
    ratio = median_of(bare / own for bare, own in zip(seconds["bare"], seconds["scheduler"], strict=True))
    return ScenarioStats(
        scenario=task.scenario,
        unit="start",
        units=1,
        ratio=None if ratio is None else round(ratio, 3),
        target=f"ready within {MOST_SECONDS:g} s",
        met=max(seconds["scheduler"]) <= MOST_SECONDS,
        latency_ms=latencies(seconds["scheduler"]),
        latency_of="from the start of the process to being ready",
        bare_latency_ms=latencies(seconds["bare"]),
        cpu_s=medians(cpu["scheduler"]),
        bare_cpu_s=medians(cpu["bare"]),
        rss_mb=largest(rss),
        runs=[
            {"seconds": round(own, 2), "bare_seconds": round(bare, 2)}
            for own, bare in zip(seconds["scheduler"], seconds["bare"], strict=True)
        ],
        parameters=parameters(task),
    )
