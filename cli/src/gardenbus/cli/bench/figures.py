"""What a measurement says: figures, percentiles, a histogram in a line, the machine. Pure, but for `machine`."""

import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

import msgspec

BLOCKS = "▁▂▃▄▅▆▇█"


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """One scenario's result. `rate_per_s` and `bare_per_s` are medians of the runs; None where they mean nothing."""

    scenario: str
    rate_per_s: float | None = None
    bare_per_s: float | None = None
    ratio: float | None = None
    target: str = ""
    met: bool | None = None
    latency_ms: Mapping[str, float] = {}
    histogram: str = ""
    cpu_s: Mapping[str, float] = {}
    bare_cpu_s: Mapping[str, float] = {}
    rss_mb: Mapping[str, float] = {}
    values: Mapping[str, float] = {}
    runs: Sequence[Mapping[str, float]] = ()
    parameters: Mapping[str, object] = {}
    machine: Mapping[str, object] = {}


def percentile(ordered: Sequence[float], share: float) -> float:
    """The nearest-rank percentile of values in order; 0 for none."""
    if not ordered:
        return 0.0
    return ordered[min(len(ordered) - 1, max(0, -(-int(share * len(ordered) * 1000) // 1000) - 1))]


def latencies(seconds: Sequence[float]) -> dict[str, float]:
    """p50, p90, p99 and the largest, in milliseconds."""
    ordered = sorted(seconds)
    named = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
    return {name: round(1000 * percentile(ordered, share), 3) for name, share in named.items()}


def histogram(seconds: Sequence[float], bins: int = 24) -> str:
    """Counts from 0 to the 99th percentile as a row of blocks."""
    ordered = sorted(seconds)
    top = percentile(ordered, 0.99)
    if not top:
        return ""
    counts = [0] * bins
    for value in ordered:
        if value <= top:
            counts[min(bins - 1, int(value / top * bins))] += 1
    most = max(counts)
    return "".join(BLOCKS[-(-count * (len(BLOCKS) - 1) // most)] if count else " " for count in counts)


def rate_of(runs: Sequence[Mapping[str, float]], name: str) -> float | None:
    """The median of a value over the runs that have it."""
    values = [run[name] for run in runs if name in run]
    return median(values) if values else None


def machine() -> dict[str, object]:
    """The machine, described as far as /proc tells."""
    model = next(
        (line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), ""
    )
    memory = next((int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    return {
        "cpu": model or platform.processor(),
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
