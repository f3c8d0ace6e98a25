"""From spans to figures: what all comparisons of a product with its bare pipe have in common. Pure."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from gardenbus.cli.bench.figures import Figures, histogram, largest, latencies, middle, middles
from gardenbus.cli.bench.pipes import Span
from gardenbus.cli.supervisor.durability import Durability

Progress = Callable[[str, int, int], None]
"""Told of what is done: its name, how much, of how much."""


class Size(msgspec.Struct, frozen=True):
    """How much is measured."""

    seeds: int
    placed: int
    shoots: int
    runs: int


class Task(NamedTuple):
    """One scenario that is to be measured."""

    scenario: str
    size: Size
    durability: Durability
    progress: Progress


class Pair(NamedTuple):
    """The product and the bare pipe, measured one after the other in one run."""

    product: Span
    bare: Span


class Target(NamedTuple):
    """What is to be reached: in words, and the least ratio if that is what it is about."""

    words: str
    least_ratio: float | None = None


Measure = Callable[[int], Awaitable[Span]]
"""Measures one run; given its number."""


async def alternated(task: Task, product: Measure, bare: Measure) -> list[Pair]:
    """Measure both in every run, the one first in even runs and the other in odd ones."""
    pairs: list[Pair] = []
    for run in range(task.size.runs):
        task.progress("runs", run, task.size.runs)
        if run % 2 == 0:
            first = await product(run)
            pairs.append(Pair(first, await bare(run)))
        else:
            first = await bare(run)
            pairs.append(Pair(await product(run), first))
    task.progress("runs", task.size.runs, task.size.runs)
    return pairs


def compared(task: Task, pairs: Sequence[Pair], target: Target, *, latency_of: str) -> Figures:
    """Figures of product and bare pipe; scenarios add what they alone can say."""
    products, bares = [pair.product for pair in pairs], [pair.bare for pair in pairs]
    ratio = middle(pair.product.rate / pair.bare.rate for pair in pairs)
    moments = [moment for span in products for moment in span.moments]
    return Figures(
        scenario=task.scenario,
        units=products[0].count,
        rate_per_s=_rounded(middle(span.rate for span in products), 1),
        bare_per_s=_rounded(middle(span.rate for span in bares), 1),
        ratio=_rounded(ratio, 3),
        target=target.words,
        met=None if target.least_ratio is None or ratio is None else ratio >= target.least_ratio,
        latency_ms=latencies(moments),
        latency_of=latency_of,
        bare_latency_ms=latencies(moment for span in bares for moment in span.moments),
        histogram=histogram(moments),
        cpu_s=middles([span.cpu_s for span in products]),
        bare_cpu_s=middles([span.cpu_s for span in bares]),
        busy=busy(products),
        rss_mb=largest([span.rss_mb for span in products]),
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


def parameters(task: Task, more: Mapping[str, object] = {}) -> dict[str, object]:
    """What was measured with."""
    return {**msgspec.structs.asdict(task.size), "durability": task.durability.value, **more}


def busy(spans: Sequence[Span]) -> dict[str, float]:
    """The share of a core that each process took, at the median."""
    return middles([{name: cpu / span.seconds for name, cpu in span.cpu_s.items()} for span in spans if span.seconds])


def cpu_ratio(pairs: Sequence[Pair]) -> float:
    """The bare pipe's CPU seconds by the product's: like the ratio of rates, but hardly moved by others at work."""
    ratios = [sum(pair.bare.cpu_s.values()) / (sum(pair.product.cpu_s.values()) or 1.0) for pair in pairs]
    return round(middle(ratios) or 0.0, 3)


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
