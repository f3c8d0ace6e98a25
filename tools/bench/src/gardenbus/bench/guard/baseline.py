"""Figures that are checked in: what each process took when it was measured last, and why one may be higher now. Pure.

A figure falls when less is measured, and rises only with a reason, which is kept beside it. What is within `NOISE` of
it is the same: otherwise each measurement's luck would lower the figures until the next one is an alarm.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from gardenbus.bench.guard.readings import Functions, ScenarioReading

NOISE = 0.05
MOST_FUNCTIONS = 25
LEAST_SHARE = 0.01
"""Share of a process that a function has to take to be kept."""

DIGITS = 4


class ProcessBaseline(msgspec.Struct, frozen=True, omit_defaults=True):
    """One process in one scenario. `cpu` is in units of the process' yardstick, `cpu_us` as it was on that machine."""

    cpu: float
    cpu_us: float = 0.0
    memory_mb: float | None = None
    wakeups: float | None = None
    functions: Functions = {}
    raised: Mapping[str, str] = {}
    """Figures that rose at the last acceptance, each with the reason that was given."""


class BareBaseline(msgspec.Struct, frozen=True):
    """The bare pipe at the same work: its rate, and its CPU for one unit by all processes together."""

    rate_per_s: float
    cpu_us: float


class ScenarioBaseline(msgspec.Struct, frozen=True, omit_defaults=True):
    """One scenario."""

    unit: str
    units: int
    rate_per_s: float
    cpu_us: float
    """Of all processes together."""
    processes: Mapping[str, ProcessBaseline]
    bare: BareBaseline | None = None
    latency_ms: Mapping[str, float] = {}
    counts: Mapping[str, float] = {}


class Baseline(msgspec.Struct, frozen=True):
    """The whole file: figures, the commit that was measured, and the machine and the yardsticks of that day."""

    commit: str
    measured_at: str
    machine: Mapping[str, object]
    yardsticks_us: Mapping[str, float]
    yardsticks_varied: Mapping[str, Mapping[str, float]]
    """Spread of each yardstick in each scenario: how quiet the machine was."""
    scenarios: Mapping[str, ScenarioBaseline]


class Raised(NamedTuple):
    """A figure that is higher than before."""

    scenario: str
    process: str
    figure: str
    before: float
    now: float

    def __str__(self) -> str:
        """Name the figure and both values."""
        return f"{self.scenario}, {self.process}, {self.figure}: {self.before:g} → {self.now:g}"


class FigureRejected(Exception):
    """Figures would rise without a reason; `raised` are those."""

    def __init__(self, raised: Sequence[Raised]) -> None:
        listed = "; ".join(map(str, raised))
        super().__init__(f"figures only fall: {listed}. Give --because 'what was bought for it' if that is meant")
        self.raised = raised


COMPARED = ("cpu", "memory_mb", "wakeups")


def measured(reading: ScenarioReading) -> ScenarioBaseline:
    """Figures of a reading as it is."""
    bare = reading.bare
    return ScenarioBaseline(
        unit=reading.unit,
        units=reading.turns[0].units,
        rate_per_s=round(reading.rate_per_s, 1),
        cpu_us=round(1e6 * reading.cpu_of_all, 1),
        processes={name: _process(reading, name) for name in reading.processes},
        bare=BareBaseline(round(bare.units / bare.seconds, 1), round(1e6 * sum(bare.cpu_s.values()) / bare.units, 1))
        if bare
        else None,
        latency_ms=reading.latency_ms,
        counts={name: round(count, 2) for name, count in reading.counts.items()},
    )


def _process(reading: ScenarioReading, name: str) -> ProcessBaseline:
    cpu, memory, wakeups = reading.cpu(name), reading.memory(name), reading.wakeups(name)
    functions = reading.functions.get(name, {})
    least = LEAST_SHARE * sum(functions.values())
    heaviest = sorted(functions.items(), key=lambda each: (-each[1], each[0]))[:MOST_FUNCTIONS]
    return ProcessBaseline(
        cpu=round(cpu.ratio, DIGITS),
        cpu_us=round(1e6 * cpu.seconds, 1),
        memory_mb=None if memory is None else round(memory, 1),
        wakeups=None if wakeups is None else round(wakeups, 1),
        functions={function: round(weight, DIGITS) for function, weight in heaviest if weight >= least},
    )


def accepted(before: Baseline | None, now: Baseline, because: str) -> Baseline:
    """The figures to keep: each the lesser one. Raises FigureRejected where one is higher without its own reason."""
    if before is None:
        return now
    raised: list[Raised] = []
    scenarios = {
        name: _accepted_scenario(name, before.scenarios.get(name), baseline, because, raised)
        for name, baseline in now.scenarios.items()
    }
    if raised:
        raise FigureRejected(raised)
    return msgspec.structs.replace(now, scenarios=scenarios)


def _accepted_scenario(
    name: str, before: ScenarioBaseline | None, now: ScenarioBaseline, because: str, raised: list[Raised]
) -> ScenarioBaseline:
    if before is None:
        return now
    processes: dict[str, ProcessBaseline] = {}
    for process, baseline in now.processes.items():
        earlier = before.processes.get(process)
        processes[process] = baseline if earlier is None else _lesser(earlier, baseline, because)
        if earlier is not None:
            raised += [
                Raised(name, process, figure, getattr(earlier, figure), getattr(baseline, figure))
                for figure in _risen(earlier, baseline)
                if because in ("", earlier.raised.get(figure))
            ]
    return msgspec.structs.replace(now, processes=processes)


def _risen(before: ProcessBaseline, now: ProcessBaseline) -> list[str]:
    """Figures that are higher now by more than noise."""
    return [
        figure
        for figure in COMPARED
        if (was := getattr(before, figure)) is not None
        and (is_now := getattr(now, figure)) is not None
        and is_now > was * (1 + NOISE)
    ]


def _lesser(before: ProcessBaseline, now: ProcessBaseline, because: str) -> ProcessBaseline:
    risen, kept = _risen(before, now), dict[str, float]()
    for figure in COMPARED:
        was, is_now = getattr(before, figure), getattr(now, figure)
        if was is not None and is_now is not None and figure not in risen and is_now > was * (1 - NOISE):
            kept[figure] = was
    raised = {figure: reason for figure, reason in before.raised.items() if figure in kept}
    return msgspec.structs.replace(now, **kept, raised=raised | dict.fromkeys(risen, because))


def unexplained(before: Baseline, now: Baseline) -> list[Raised]:
    """Figures that are higher in a later version of the file and have no reason beside them, or the one of before."""
    return [
        Raised(name, process, figure, getattr(earlier, figure), getattr(baseline, figure))
        for name, scenario in now.scenarios.items()
        if (others := before.scenarios.get(name)) is not None
        for process, baseline in scenario.processes.items()
        if (earlier := others.processes.get(process)) is not None
        for figure in COMPARED
        if (was := getattr(earlier, figure)) is not None
        and (is_now := getattr(baseline, figure)) is not None
        and is_now > was
        and baseline.raised.get(figure, "") in ("", earlier.raised.get(figure))
    ]


def decode(text: bytes) -> Baseline:
    """Read the file. Raises msgspec.MsgspecError, naming the field."""
    return msgspec.json.decode(text, type=Baseline)


def encode(baseline: Baseline) -> bytes:
    """The file's text, one value a line."""
    return msgspec.json.format(msgspec.json.encode(baseline), indent=1) + b"\n"
