"""Resource usage of processes on Linux: processor, memory, uptime."""

import os
import time
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_UTIME, _STIME, _START, _RSS = 11, 12, 19, 21
"""Places in /proc/PID/stat, counted behind the name, which may hold anything."""


class ProcessUsage(NamedTuple):
    """One sample of a process: seconds of processor so far, bytes in memory, seconds since its start, and its time."""

    cpu_seconds: float
    rss_bytes: int
    age_seconds: float
    at: float


def process_usage(pid: int) -> ProcessUsage | None:
    """Sample a process; None when there is none, or where there is no /proc."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
        up_seconds = float((_PROC / "uptime").read_text().split()[0])
    except (OSError, ValueError):
        return None
    fields = text.rpartition(")")[2].split()
    try:
        ticks = int(fields[_UTIME]) + int(fields[_STIME])
        age = up_seconds - int(fields[_START]) / _TICKS
        return ProcessUsage(ticks / _TICKS, int(fields[_RSS]) * _PAGE, max(0.0, age), time.monotonic())
    except (IndexError, ValueError):
        return None


def cpu_share(before: ProcessUsage | None, now: ProcessUsage | None) -> float | None:
    """Processors used between two samples (1.0 is one of them); over its whole life for one sample."""
    if now is None:
        return None
    if before is None or now.at <= before.at or now.cpu_seconds < before.cpu_seconds:
        return now.cpu_seconds / now.age_seconds if now.age_seconds > 0 else None
    return (now.cpu_seconds - before.cpu_seconds) / (now.at - before.at)
