"""Readings of a run of the guard: turns of a scenario, and the yardsticks beside them. Pure."""

from collections.abc import Mapping, Sequence
from itertools import chain
from statistics import median, quantiles
from typing import Literal, NamedTuple, TypeVar

import msgspec

YardstickName = Literal["python", "redis", "nats"]

SERVERS: Mapping[str, YardstickName] = {"redis": "redis", "nats": "nats"}

Yardsticks = Mapping[YardstickName, float]
"""CPU seconds that one unit of each yardstick took."""

Functions = Mapping[str, float]
"""Functions of a process: CPU for one unit of work, in units of the process' yardstick."""


def yardstick_of(process: str) -> YardstickName:
    """The yardstick that a process is divided by: that of its own server, if it was read, else Python's."""
    return SERVERS.get(process, "python")


class TurnReading(msgspec.Struct, frozen=True):
    """One turn of a scenario, with the yardsticks right before and right after it."""

    units: int
    seconds: float
    cpu_s: Mapping[str, float]
    """CPU seconds of each process, all its threads and children."""
    before: Yardsticks
    after: Yardsticks
    memory_mb: Mapping[str, float] = {}
    """Proportional share of memory of each process after the turn."""
    wakeups: Mapping[str, float] = {}
    """Times that each process went to sleep by itself; only where nothing is to be done."""
    others: float = 0.0
    """Share of all cores that others took from the yardstick before to the one after."""


class Processor(NamedTuple):
    """CPU of one process for one unit of work."""

    seconds: float
    ratio: float
    """The same in units of the process' yardstick."""
    yardstick_s: float


class ScenarioReading(msgspec.Struct, frozen=True):
    """All turns of one scenario. `failure`: why there is nothing to compare, "" if there is."""

    scenario: str
    unit: str = "shoot"
    turns: Sequence[TurnReading] = ()
    functions: Mapping[str, Functions] = {}
    counts: Mapping[str, float] = {}
    """Other things that were counted for one unit, for a reader to compare: messages of NATS."""
    bare: TurnReading | None = None
    """The bare pipe at the same work."""
    latency_ms: Mapping[str, float] = {}
    failure: str = ""

    @property
    def processes(self) -> list[str]:
        """Processes of all turns, in the order of their appearance."""
        return list(dict.fromkeys(name for turn in self.turns for name in turn.cpu_s))

    @property
    def rate_per_s(self) -> float:
        """Units a second, at the median."""
        return median(turn.units / turn.seconds for turn in self.turns) if self.turns else 0.0

    @property
    def cpu_of_all(self) -> float:
        """CPU seconds of all processes for one unit, at the median."""
        return median(sum(turn.cpu_s.values()) / turn.units for turn in self.turns) if self.turns else 0.0

    def cpu(self, process: str) -> Processor:
        """CPU of a process for one unit of work, at the median of the turns."""
        turns = [turn for turn in self.turns if process in turn.cpu_s]
        name = yardstick_of(process)
        name = name if all(name in turn.before and name in turn.after for turn in turns) else "python"
        yardsticks = [(turn.before[name] + turn.after[name]) / 2 for turn in turns]
        seconds = [turn.cpu_s[process] / turn.units for turn in turns]
        ratios = [each / yardstick for each, yardstick in zip(seconds, yardsticks, strict=True)]
        return Processor(median(seconds), median(ratios), median(yardsticks))

    def memory(self, process: str) -> float | None:
        """Memory of a process in MB after a turn, at the median."""
        found = [turn.memory_mb[process] for turn in self.turns if process in turn.memory_mb]
        return median(found) if found else None

    def wakeups(self, process: str) -> float | None:
        """Times a second that a process went to sleep by itself, at the median."""
        found = [turn.wakeups[process] / turn.seconds for turn in self.turns if process in turn.wakeups]
        return median(found) if found else None

    @property
    def others(self) -> float:
        """Share of all cores that others took, at the median of the turns."""
        return median(turn.others for turn in self.turns) if self.turns else 0.0

    def variation(self, name: YardstickName) -> float:
        """Spread of a yardstick over the turns: of the half in the middle, as a part of the median.

        Medians are compared, which one slow moment of the machine does not move.
        """
        found = [reading[name] for turn in self.turns for reading in (turn.before, turn.after) if name in reading]
        if not found:
            return 0.0
        lower, middle, upper = quantiles(found, n=4, method="inclusive")
        return (upper - lower) / middle


def one_behind_the_other(first: TurnReading, second: TurnReading) -> TurnReading:
    """Two stations that each unit goes through: the slower one's rate, the CPU of both."""
    slower = min((first, second), key=lambda turn: turn.units / turn.seconds)
    other = second if slower is first else first
    scaled = slower.units / other.units
    cpu_s = {name: seconds * scaled for name, seconds in other.cpu_s.items()}
    both = {name: slower.cpu_s.get(name, 0.0) + cpu_s.get(name, 0.0) for name in {**slower.cpu_s, **cpu_s}}
    return msgspec.structs.replace(slower, cpu_s=both, memory_mb={})


def pooled(first: ScenarioReading, second: ScenarioReading) -> ScenarioReading:
    """Two readings of one scenario as one; functions are those of the later one."""
    if first.failure or second.failure:
        return first if first.failure else second
    return msgspec.structs.replace(
        second, turns=[*first.turns, *second.turns], functions={**first.functions, **second.functions}
    )


def least_of_turns(reading: ScenarioReading) -> ScenarioReading:
    """A reading of one turn: the least that each process, and each yardstick, took in any.

    What disturbs a machine only adds to what is measured: among turns that vary by half, the least ones vary little.
    """
    if len(reading.turns) <= 1:
        return reading
    turns = [
        TurnReading(
            units=1,
            seconds=turn.seconds / turn.units,
            cpu_s={name: seconds / turn.units for name, seconds in turn.cpu_s.items()},
            before=turn.before,
            after=turn.after,
            memory_mb=turn.memory_mb,
        )
        for turn in reading.turns
    ]
    yardsticks = _least([read for turn in turns for read in (turn.before, turn.after)])
    least = TurnReading(
        units=1,
        seconds=min(turn.seconds for turn in turns),
        cpu_s=_least([turn.cpu_s for turn in turns]),
        before=yardsticks,
        after=yardsticks,
        memory_mb=_least([turn.memory_mb for turn in turns]),
        others=reading.others,
    )
    return msgspec.structs.replace(reading, turns=[least])


Name = TypeVar("Name", bound=str)


def _least(of: Sequence[Mapping[Name, float]]) -> dict[Name, float]:
    """The least value of each name."""
    return {name: min(each[name] for each in of if name in each) for name in dict.fromkeys(chain.from_iterable(of))}
