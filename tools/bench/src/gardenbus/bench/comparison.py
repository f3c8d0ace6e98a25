"""From spans to results: what comparisons of a product with its bare pipe share. Pure, but for `alternated`."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from gardenbus.bench.options import BenchProfile
from gardenbus.bench.stats import ScenarioStats, histogram, largest, latencies, median_of, medians
from gardenbus.embedded.durability import Durability

MEASURER = "bench"
"""Name of the process that measures, among those whose costs are counted."""

ReportProgress = Callable[[str, int, int], None]
"""Receives progress: the name of a step, how much of it is done, of how much."""


def no_progress(_step: str, _done: int, _of: int) -> None:
    """Receive progress that is not shown."""


class ScenarioSize(msgspec.Struct, frozen=True):
    """Size of a scenario: objects, and runs."""

    seeds: int
    placed: int
    shoots: int
    runs: int


class ScenarioTask(NamedTuple):
    """One scenario that is to be measured."""

    scenario: str
    size: ScenarioSize
    durability: Durability
    progress: ReportProgress
    profile: BenchProfile | None = None


class Measurement:
    """One measurement: `count` units in `seconds`, when each was through (since the beginning), and at what cost."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.seconds = 0.0
        self.began_at = 0.0
        """Instant (monotonic) at which CPU seconds began to be counted."""
        self.ended_at = 0.0
        self.moments: Sequence[float] = ()
        self.cpu_s: Mapping[str, float] = {}
        self.rss_mb: Mapping[str, float] = {}

    @property
    def product_cpu_s(self) -> Mapping[str, float]:
        """CPU seconds of all processes but the one that measures."""
        return {name: cpu for name, cpu in self.cpu_s.items() if name != MEASURER}

    @property
    def rate(self) -> float:
        """Units a second."""
        return self.count / self.seconds if self.seconds else 0.0


class MeasuredPair(NamedTuple):
    """The product and the bare pipe, measured one after the other in one run."""

    product: Measurement
    bare: Measurement


class ScenarioTarget(NamedTuple):
    """A scenario's target: in words, and the least ratio where the target is one."""

    words: str
    least_ratio: float | None = None


Measure = Callable[[int], Awaitable[Measurement]]
"""Measures one run; given its number."""


async def alternated(task: ScenarioTask, product: Measure, bare: Measure) -> list[MeasuredPair]:
    """Measure both in every run, the one first in even runs and the other in odd ones."""
    pairs: list[MeasuredPair] = []
    for run in range(task.size.runs):
        task.progress("runs", run, task.size.runs)
        if run % 2 == 0:
            first = await product(run)
            pairs.append(MeasuredPair(first, await bare(run)))
        else:
            first = await bare(run)
            pairs.append(MeasuredPair(await product(run), first))
    task.progress("runs", task.size.runs, task.size.runs)
    return pairs


def compared(
    task: ScenarioTask, pairs: Sequence[MeasuredPair], target: ScenarioTarget, *, latency_of: str
) -> ScenarioStats:
    """Stats of product and bare pipe; scenarios add their own values."""
    products, bares = [pair.product for pair in pairs], [pair.bare for pair in pairs]
    ratio = median_of(pair.product.rate / pair.bare.rate for pair in pairs)
    moments = [moment for measurement in products for moment in measurement.moments]
    return ScenarioStats(
        scenario=task.scenario,
        units=products[0].count,
        rate_per_s=_rounded(median_of(measurement.rate for measurement in products), 1),
        bare_per_s=_rounded(median_of(measurement.rate for measurement in bares), 1),
        ratio=_rounded(ratio, 3),
        target=target.words,
        met=None if target.least_ratio is None or ratio is None else ratio >= target.least_ratio,
        latency_ms=latencies(moments),
        latency_of=latency_of,
        bare_latency_ms=latencies(moment for measurement in bares for moment in measurement.moments),
        histogram=histogram(moments),
        cpu_s=medians([measurement.cpu_s for measurement in products]),
        bare_cpu_s=medians([measurement.cpu_s for measurement in bares]),
        busy=busy(products),
        rss_mb=largest([measurement.rss_mb for measurement in products]),
        values={"cpu_ratio": cpu_ratio(pairs)},
        runs=[
            {
                "rate_per_s": round(pair.product.rate, 1),
                "bare_per_s": round(pair.bare.rate, 1),
                "ratio": round(pair.product.rate / pair.bare.rate, 3),
            }
            for pair in pairs
        ],
        parameters=parameters(task),
    )


def parameters(task: ScenarioTask, more: Mapping[str, object] = {}) -> dict[str, object]:
    """The parameters of a measurement, for its report."""
    profile = {"profile": task.profile.value} if task.profile is not None else {}
    return {**msgspec.structs.asdict(task.size), "durability": task.durability.value, **profile, **more}


def busy(measurements: Sequence[Measurement]) -> dict[str, float]:
    """The share of a core that each process took, at the median."""
    return medians(
        [
            {name: cpu / measurement.seconds for name, cpu in measurement.cpu_s.items()}
            for measurement in measurements
            if measurement.seconds
        ]
    )


def cpu_ratio(pairs: Sequence[MeasuredPair]) -> float:
    """The bare pipe's CPU seconds by the product's: like the ratio of rates, but hardly moved by others at work.

    Those of the measurer, which does the same for both, do not count.
    """
    ratios = [
        sum(pair.bare.product_cpu_s.values()) / (sum(pair.product.product_cpu_s.values()) or 1.0) for pair in pairs
    ]
    return round(median_of(ratios) or 0.0, 3)


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
