"""Two landscapes side by side: a large one beside a small one."""

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import NamedTuple

import msgspec

from gardenbus.bench.comparison import MeasuredPair, Measurement, ScenarioTarget, ScenarioTask, compared, parameters
from gardenbus.bench.harness.loading import BenchLandscape
from gardenbus.bench.harness.rig import Rig, a_rig
from gardenbus.bench.scenarios.scheduling import ShootBatch, measure_bare, measure_product, mix_of, prepare
from gardenbus.bench.stats import ScenarioStats, median_of

SMALL = BenchLandscape(seeds=100, placed=1000)
SMALL_WEIGHTED = BenchLandscape(seeds=1000, placed=1000, mix="weighted")
LATENCY_OF = "from the first fetch to the binding announced, all queued at once"


class _Runs(NamedTuple):
    """The runs in a landscape that others are compared with, and in the one that is compared."""

    reference: Sequence[MeasuredPair]
    subject: Sequence[MeasuredPair]


async def measure_flat(task: ScenarioTask) -> ScenarioStats:
    """Many seeds and shoots, against 100 seeds and 1,000 shoots; with a profile against 1,000 seeds."""
    small, least_ratio = (SMALL, 0.8) if task.profile is None else (SMALL_WEIGHTED, 0.85)
    subject = BenchLandscape(task.size.seeds, task.size.placed, mix_of(task.profile))
    runs = await _both(task, small, subject)
    more = {"reference_seeds": small.seeds, "reference_placed": small.placed}
    words = f"≥ {least_ratio} of the rate with {small.seeds:,} seeds and {small.placed:,} shoots"
    return _beside(task, runs, ScenarioTarget(words, least_ratio), more)


def _beside(task: ScenarioTask, runs: _Runs, target: ScenarioTarget, more: Mapping[str, object] = {}) -> ScenarioStats:
    """Stats of the subject; the ratio is to the product in the reference, run by run."""
    stats = compared(task, runs.subject, ScenarioTarget(target.words), latency_of=LATENCY_OF)
    ratios = _ratios([pair.product for pair in runs.subject], [pair.product for pair in runs.reference])
    ratio = median_of(ratios) or 0.0
    values = {
        "reference_per_s": round(median_of(pair.product.rate for pair in runs.reference) or 0.0, 1),
        "reference_bare_per_s": round(median_of(pair.bare.rate for pair in runs.reference) or 0.0, 1),
        "ratio_to_bare": stats.ratio or 0.0,
        "ratio_of_bare_pipes": round(
            median_of(_ratios([pair.bare for pair in runs.subject], [pair.bare for pair in runs.reference])) or 0.0, 3
        ),
        "cpu_ratio_to_reference": round(median_of(_cpu_ratios(runs)) or 0.0, 3),
    }
    return msgspec.structs.replace(
        stats,
        ratio=round(ratio, 3),
        met=ratio >= (target.least_ratio or 0.0),
        values={**stats.values, **values},
        runs=[
            {**run, "ratio": round(own, 3), "reference_per_s": round(pair.product.rate, 1)}
            for run, own, pair in zip(stats.runs, ratios, runs.reference, strict=True)
        ],
        parameters=parameters(task, more),
    )


def _ratios(ones: Sequence[Measurement], others: Sequence[Measurement]) -> list[float]:
    return [one.rate / other.rate for one, other in zip(ones, others, strict=True)]


def _cpu_ratios(runs: _Runs) -> list[float]:
    """The reference's CPU seconds by the subject's: like the ratio of rates, but hardly moved by others at work."""
    return [
        sum(reference.product.cpu_s.values()) / (sum(subject.product.cpu_s.values()) or 1.0)
        for reference, subject in zip(runs.reference, runs.subject, strict=True)
    ]


async def _both(task: ScenarioTask, reference: BenchLandscape, subject: BenchLandscape) -> _Runs:
    """Load both and measure in them by turns: product and product, bare pipe and bare pipe."""
    runs = _Runs([], [])
    async with AsyncExitStack() as stack:
        rigs: list[tuple[Rig, BenchLandscape]] = []
        for landscape in (reference, subject):
            rig = await stack.enter_async_context(a_rig(task.durability))
            await prepare(rig, landscape, task.progress)
            rigs.append((rig, landscape))
        for run in range(task.size.runs):
            task.progress("runs", run, task.size.runs)
            order = rigs if run % 2 == 0 else rigs[::-1]
            products = {id(rig): await _product(task, rig, landscape, run) for rig, landscape in order}
            bares = {id(rig): await _bare(task, rig, landscape, run) for rig, landscape in order}
            pairs = [MeasuredPair(products[id(rig)], bares[id(rig)]) for rig, _ in rigs]
            runs = _Runs([*runs.reference, pairs[0]], [*runs.subject, pairs[1]])
        task.progress("runs", task.size.runs, task.size.runs)
    return runs


async def _product(task: ScenarioTask, rig: Rig, landscape: BenchLandscape, run: int) -> Measurement:
    return await measure_product(rig, ShootBatch(f"p{run}", task.size.shoots, landscape.mix), task.progress)


async def _bare(task: ScenarioTask, rig: Rig, landscape: BenchLandscape, run: int) -> Measurement:
    return await measure_bare(
        rig, ShootBatch(f"b{run}", task.size.shoots, landscape.mix), landscape.seeds, task.progress
    )
