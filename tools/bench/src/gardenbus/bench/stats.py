"""Stats of a measurement: rates, percentiles, a histogram in a line, the machine. Pure, but for `machine`."""

import os
import platform
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median

import msgspec

BLOCKS = "▁▂▃▄▅▆▇█"
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}


class ScenarioStats(msgspec.Struct, frozen=True, kw_only=True):
    """One scenario's result; rates and ratio are medians of the runs, None where they mean nothing.

    `ratio` is the median of the runs' own ratios: product and bare pipe of one run had the same machine. `cpu_s` and
    `bare_cpu_s` are CPU seconds per process, `rss_mb` the largest resident memory. `busy` is the share of a core
    that each process took while the product was measured. `values` holds what only this scenario has, `runs` all
    numbers of each run. `units` is how many of `unit` were measured in a run.
    """

    scenario: str
    unit: str = "shoot"
    units: int = 0
    rate_per_s: float | None = None
    bare_per_s: float | None = None
    ratio: float | None = None
    target: str = ""
    met: bool | None = None
    latency_ms: Mapping[str, float] = {}
    latency_of: str = ""
    bare_latency_ms: Mapping[str, float] = {}
    histogram: Sequence[int] = ()
    cpu_s: Mapping[str, float] = {}
    bare_cpu_s: Mapping[str, float] = {}
    busy: Mapping[str, float] = {}
    rss_mb: Mapping[str, float] = {}
    values: Mapping[str, float] = {}
    runs: Sequence[Mapping[str, float]] = ()
    parameters: Mapping[str, object] = {}
    machine: Mapping[str, object] = {}


def as_json(stats: ScenarioStats) -> dict[str, object]:
    """A result as programs read it: the fixed members first, all the rest below `details`."""
    return {
        "scenario": stats.scenario,
        "rate_per_s": stats.rate_per_s,
        "bare_per_s": stats.bare_per_s,
        "ratio": stats.ratio,
        "latency_ms": {name: stats.latency_ms[name] for name in ("p50", "p99") if name in stats.latency_ms},
        "cpu_s": dict(stats.cpu_s),
        "rss_mb": dict(stats.rss_mb),
        "parameters": dict(stats.parameters),
        "machine": dict(stats.machine),
        "details": {
            "unit": stats.unit,
            "units": stats.units,
            "target": stats.target,
            "met": stats.met,
            "values": dict(stats.values),
            "latency_of": stats.latency_of,
            "latency_ms": dict(stats.latency_ms),
            "bare_latency_ms": dict(stats.bare_latency_ms),
            "histogram": list(stats.histogram),
            "bare_cpu_s": dict(stats.bare_cpu_s),
            "busy": dict(stats.busy),
            "runs": [dict(run) for run in stats.runs],
        },
    }


def percentile(ordered: Sequence[float], share: float) -> float:
    """The nearest-rank percentile of values in order; 0 for none."""
    if not ordered:
        return 0.0
    rank = -(-int(share * len(ordered) * 1000) // 1000)
    return ordered[min(len(ordered), max(1, rank)) - 1]


def latencies(seconds: Iterable[float]) -> dict[str, float]:
    """p50, p90, p99 and the largest, in milliseconds; nothing of nothing."""
    ordered = sorted(seconds)
    if not ordered:
        return {}
    return {name: round(1000 * percentile(ordered, share), 3) for name, share in PERCENTILES.items()}


def histogram(seconds: Iterable[float], bins: int = 32) -> list[int]:
    """Counts in equal bins from 0 to the 99th percentile; what is slower than that counts in the last one."""
    ordered = sorted(seconds)
    top = percentile(ordered, 0.99)
    if not top:
        return []
    filled = Counter(min(bins - 1, int(value / top * bins)) for value in ordered)
    return [filled[number] for number in range(bins)]


def blocks(counts: Sequence[int]) -> str:
    """Counts as a row of blocks; a space stands for none."""
    most = max(counts, default=0)
    return "".join(BLOCKS[-(-count * len(BLOCKS) // most) - 1] if count else " " for count in counts)


def median_of(values: Iterable[float | None]) -> float | None:
    """The median of the values that are there."""
    there = [value for value in values if value is not None]
    return median(there) if there else None


def medians(maps: Sequence[Mapping[str, float]], digits: int = 3) -> dict[str, float]:
    """The median of each name's values, over the maps that have it; in the order of the names' first appearance."""
    names = dict.fromkeys(name for each in maps for name in each)
    return {name: round(median(each[name] for each in maps if name in each), digits) for name in names}


def largest(maps: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The largest of each name's values."""
    names = dict.fromkeys(name for each in maps for name in each)
    return {name: max(each[name] for each in maps if name in each) for name in names}


def machine() -> dict[str, object]:
    """The machine, described as far as /proc allows. `load_1m` shows whether others were at work on it."""
    model = next(
        (line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), ""
    )
    memory = next((int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    return {
        "cpu": model or platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "memory_gb": round(memory / 1e6, 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_1m": round(os.getloadavg()[0], 2),
    }


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
