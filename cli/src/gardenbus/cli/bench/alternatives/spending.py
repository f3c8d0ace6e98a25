"""Counts what some work takes, and sets two ways of doing it against each other."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec

from gardenbus.cli.bench.rig import Rig, cost_of

NANOSECONDS = 1e9
_THREE_DIGITS = 100


class Size(NamedTuple):
    """How much is measured: so many rounds, and that share of the usual counts."""

    rounds: int = 5
    share: float = 1.0

    def of(self, count: int) -> int:
        """A usual count, at this size; at least one."""
        return max(1, round(count * self.share))


QUICK = Size(rounds=2, share=0.01)
"""Says that it works, and nothing about speed."""


class Spent(NamedTuple):
    """What so many units took: seconds by the clock, and CPU seconds of the client (this process) and the servers."""

    units: int
    seconds: float
    client_s: float
    server_s: float


Means = Callable[[], Awaitable[Spent]]


class Figure(msgspec.Struct, frozen=True):
    """One way of doing it: its name, units a second (median of the rounds), and microseconds of CPU a unit (mean)."""

    name: str
    per_s: float
    client_us: float
    server_us: float

    def __str__(self) -> str:
        """As a cell of the table."""
        cpu = _short(self.client_us) + (f" + {_short(self.server_us)}" if self.server_us else "")
        return f"{self.name}: {self.per_s:,.0f}/s, {cpu} µs"


class Row(msgspec.Struct, frozen=True):
    """Ours against another way. Ratios above 1 speak for ours: of the rates, and of the other's CPU to ours."""

    what: str
    ours: Figure
    other: Figure
    unit: str
    ratio: float
    cpu_ratio: float
    kept: str


async def spent(rig: Rig, servers: Sequence[str], units: int, work: Callable[[], Awaitable[object]]) -> Spent:
    """Do some work and count what it takes here and in some servers (`nats`, `redis`)."""
    pids = [pid for name in servers if (pid := rig.processes[name].pid) is not None]
    served = sum(map(_cpu_seconds, pids))
    used, began = time.process_time(), time.perf_counter()
    await work()
    seconds = time.perf_counter() - began
    return Spent(units, seconds, time.process_time() - used, sum(map(_cpu_seconds, pids)) - served)


async def alternate(size: Size, means: Mapping[str, Means]) -> Mapping[str, Sequence[Spent]]:
    """Take the means in turn, round after round; every second round in the opposite order. One round more warms up."""
    taken: dict[str, list[Spent]] = {name: [] for name in means}
    for number in range(size.rounds + 1):
        names = list(means) if number % 2 else list(means)[::-1]
        for name in names:
            result = await means[name]()
            if number:
                taken[name].append(result)
            await asyncio.sleep(0)
    return taken


def compared(what: str, taken: Mapping[str, Sequence[Spent]], *, ours: str, other: str, unit: str, kept: str) -> Row:
    """One row: what ours and another way took in the same rounds."""
    pairs = list(zip(taken[ours], taken[other], strict=True))
    return Row(
        what,
        _figure(ours, taken[ours]),
        _figure(other, taken[other]),
        unit,
        median(_per_s(one) / _per_s(another) for one, another in pairs),
        _cpu_us(taken[other]) / max(_cpu_us(taken[ours]), 1e-9),
        kept,
    )


HEAD = (
    "| what | ours | the alternative | units; CPU of client + server | ratio | CPU ratio | kept |\n"
    "|---|---|---|---|---:|---:|---|\n"
)
"""The table's first lines, in Markdown; `as_line` makes the others."""


def as_line(row: Row) -> str:
    """A row in Markdown."""
    ratios = f"{_short(row.ratio)} | {_short(row.cpu_ratio)}"
    return f"| {row.what} | {row.ours} | {row.other} | {row.unit} | {ratios} | {row.kept} |\n"


def _short(number: float) -> str:
    """Three digits, and those before the point."""
    return f"{number:,.0f}" if number >= _THREE_DIGITS else f"{number:.3g}"


def _figure(name: str, taken: Sequence[Spent]) -> Figure:
    units = sum(each.units for each in taken)
    client = sum(each.client_s for each in taken) / units
    server = sum(each.server_s for each in taken) / units
    return Figure(name, median(map(_per_s, taken)), 1e6 * client, 1e6 * server)


def _per_s(each: Spent) -> float:
    return each.units / each.seconds


def _cpu_us(taken: Sequence[Spent]) -> float:
    return 1e6 * sum(each.client_s + each.server_s for each in taken) / sum(each.units for each in taken)


def _cpu_seconds(pid: int) -> float:
    """CPU of all threads to the nanosecond, where the kernel counts that; else to its tick, mostly 10 ms."""
    total = 0
    for statistics in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            total += int(statistics.read_text().split()[0])
        except (OSError, ValueError, IndexError):
            continue  # the thread has ended
    return total / NANOSECONDS if total else cost_of(pid).cpu_seconds
