"""Costs of other processes, as Linux counts them: CPU to the nanosecond, proportional memory, how often one slept."""

import os
import time
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

_SCHEDULED = 2
"""CPUCLOCK_SCHED: what all threads of a process took, those that have ended included."""

_CHILDREN_FIELDS = slice(13, 15)
_BUSY_FIELDS = (0, 1, 2, 5, 6, 7)
"""Of /proc/stat: user, nice, system, irq, softirq, steal."""


class ProcessCost(NamedTuple):
    """CPU seconds so far, children included, and the times that its threads went to sleep by themselves."""

    cpu_s: float
    wakeups: int


def cpu_seconds(pid: int, without: Collection[int] = ()) -> float:
    """CPU seconds of a process, all its threads; its children too once they have ended, and while they live.

    Living children `without` which it is counted (they are counted by themselves) are left out, with theirs.
    Raises ProcessLookupError when it is gone.
    """
    try:
        own = time.clock_gettime(~pid << 3 | _SCHEDULED)
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError as error:
        raise ProcessLookupError(f"process {pid} is gone") from error
    ended = sum(map(int, fields[_CHILDREN_FIELDS])) / os.sysconf("SC_CLK_TCK")
    return own + ended + sum(_cpu_of_child(child, without) for child in children(pid) if child not in without)


class CoreUse(NamedTuple):
    """Use of all cores together until an instant: by everybody, and by some processes with their children."""

    at: float
    busy_s: float
    own_s: float


def core_use(pids: Iterable[int]) -> CoreUse:
    """Use of the cores so far. Raises ProcessLookupError when one of the processes is gone."""
    fields = [int(field) for field in _text(Path("/proc/stat")).partition("\n")[0].split()[1:]]
    busy = sum(fields[index] for index in _BUSY_FIELDS if index < len(fields))
    return CoreUse(time.monotonic(), busy / os.sysconf("SC_CLK_TCK"), sum(cpu_seconds(pid) for pid in pids))


def share_of_others(began: CoreUse, ended: CoreUse) -> float:
    """Share of all cores that others took meanwhile, other virtual machines included."""
    others = (ended.busy_s - began.busy_s) - (ended.own_s - began.own_s)
    return max(0.0, others / ((ended.at - began.at) * (os.cpu_count() or 1)))


def _cpu_of_child(pid: int, without: Collection[int]) -> float:
    try:
        return cpu_seconds(pid, without)
    except ProcessLookupError:  # it ended just now: from now on its parent's number has it
        return 0.0


def children(pid: int) -> list[int]:
    """Children of a process that live."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        found += map(int, _text(task).split())
    return found


def cost_of(pid: int, without: Collection[int] = ()) -> ProcessCost:
    """Cost of a process so far, as `cpu_seconds` counts it. Raises ProcessLookupError when it is gone."""
    slept = 0
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        for line in _text(status).splitlines():
            if line.startswith("voluntary_ctxt_switches:"):
                slept += int(line.partition(":")[2])
    return ProcessCost(cpu_seconds(pid, without), slept)


def memory_mb(pid: int) -> float:
    """Proportional share of memory of a process, in MB. Raises ProcessLookupError when it is gone."""
    for line in _text(Path(f"/proc/{pid}/smaps_rollup")).splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1000
    raise ProcessLookupError(f"process {pid} is gone")


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
