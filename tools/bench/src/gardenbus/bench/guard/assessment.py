"""Assessment of a reading against figures: held, lost, not measurable here, or measured nothing. Pure.

A process has lost when it is worse by more than `TOLERANCE` *and* by more than an allowance, for where little is taken,
15 % of it are nothing: a part of a core at rest, a part of all processes' CPU under load, some MB of memory.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from gardenbus.bench.guard.baseline import Baseline, ProcessBaseline, ScenarioBaseline
from gardenbus.bench.guard.readings import Functions, ScenarioReading, YardstickName, yardstick_of

TOLERANCE = 0.15

LEAST_SHARE = 0.01
"""Part of the CPU of all processes together that a difference has to be: less is nothing but what idle ones do."""

REST_UNIT = "second"
REST_ALLOWANCE_S = 0.003
"""Part of a core."""
MEMORY_ALLOWANCE_MB = 6.0
WAKEUPS_ALLOWANCE = 40.0
"""A second: a poll of 10 ms has a hundred."""

MOST_OTHERS = 0.25
"""Share of all cores that others may take before a loss says nothing: services that share the cores find cold caches
each time that they wake up, and take up to half as much again."""

MOST_VARIATION = 0.35
"""Spread of a yardstick's middle half within one scenario beyond which it says nothing about the product."""

LossKind = Literal["cpu", "memory", "wakeups"]


class FunctionChange(NamedTuple):
    """A function of a process, now and when the figure was accepted; CPU for one unit, in microseconds of today."""

    name: str
    now_us: float
    before_us: float


class Loss(NamedTuple):
    """One process that takes more than it did. `now` and `before` are of today's machine: µs, MB, or times a second."""

    process: str
    measure: LossKind
    now: float
    before: float
    functions: Sequence[FunctionChange]

    @property
    def increase(self) -> float:
        """Share by which it is worse."""
        return self.now / self.before - 1 if self.before else float("inf")


class Held(NamedTuple):
    """Nothing is worse."""

    scenario: str


class Lost(NamedTuple):
    """Some processes are worse."""

    scenario: str
    losses: Sequence[Loss]


class NotMeasurable(NamedTuple):
    """The machine did not stay the same for so long as it takes, or something seemed lost while others used it."""

    scenario: str
    yardstick: YardstickName
    varied: float
    others: float = 0.0
    """Share of all cores that others took."""
    suspected: Sequence[Loss] = ()


class MeasuredNothing(NamedTuple):
    """A scenario without a measurement, or one without figures to compare it with."""

    scenario: str
    reason: str


ScenarioResult = Held | Lost | NotMeasurable | MeasuredNothing


def assess(reading: ScenarioReading, baseline: Baseline) -> ScenarioResult:
    """The result of one scenario."""
    if reading.failure:
        return MeasuredNothing(reading.scenario, reading.failure)
    if not reading.turns or not all(turn.units and turn.seconds > 0 for turn in reading.turns):
        return MeasuredNothing(reading.scenario, "no unit of work was measured")
    good = baseline.scenarios.get(reading.scenario)
    if good is None:
        return MeasuredNothing(reading.scenario, "there are no figures of it: accept some with --accept")
    of_all = sum(reading.cpu(process).ratio * reading.cpu(process).yardstick_s for process in reading.processes)
    allowance_s = REST_ALLOWANCE_S if reading.unit == REST_UNIT else LEAST_SHARE * of_all
    if problem := _incomparable(reading, good, allowance_s):
        return MeasuredNothing(reading.scenario, problem)
    losses = [
        loss
        for process in reading.processes
        for loss in _losses(reading, process, good.processes[process], allowance_s)
    ]
    yardstick, varied = _most_varied(reading)
    if varied > MOST_VARIATION or (losses and reading.others > MOST_OTHERS):
        return NotMeasurable(reading.scenario, yardstick, varied, reading.others, losses)
    return Lost(reading.scenario, losses) if losses else Held(reading.scenario)


def _most_varied(reading: ScenarioReading) -> tuple[YardstickName, float]:
    """The yardstick that varied most, and by how much."""
    names: Sequence[YardstickName] = ("python", "redis", "nats")
    return max(((name, reading.variation(name)) for name in names), key=lambda each: each[1])


def _incomparable(reading: ScenarioReading, good: ScenarioBaseline, allowance_s: float) -> str:
    """Problem of a reading that cannot be compared: of the same processes there must be some work in both.

    A process that has next to nothing to do in a scenario may have done nothing.
    """
    if missing := sorted({*good.processes} - {*reading.processes}):
        return f"nothing was measured of {', '.join(missing)}"
    if new := sorted({*reading.processes} - {*good.processes}):
        return f"there are no figures of {', '.join(new)}: accept some with --accept"
    cpu = {name: reading.cpu(name) for name in reading.processes}
    idle = [
        name
        for name in reading.processes
        if cpu[name].seconds <= 0 and good.processes[name].cpu * cpu[name].yardstick_s > allowance_s
    ]
    return f"{', '.join(idle)} took no CPU at all" if idle else ""


def _losses(reading: ScenarioReading, process: str, good: ProcessBaseline, allowance_s: float) -> list[Loss]:
    cpu = reading.cpu(process)
    found: list[Loss] = []
    before_s = good.cpu * cpu.yardstick_s
    now_s = cpu.ratio * cpu.yardstick_s
    functions = changes(reading.functions.get(process, {}), good.functions, cpu.yardstick_s)
    if is_worse(now_s, before_s, allowance_s):
        found.append(Loss(process, "cpu", 1e6 * now_s, 1e6 * before_s, functions))
    memory, wakeups = reading.memory(process), reading.wakeups(process)
    if memory is not None and good.memory_mb is not None and is_worse(memory, good.memory_mb, MEMORY_ALLOWANCE_MB):
        found.append(Loss(process, "memory", memory, good.memory_mb, ()))
    if wakeups is not None and good.wakeups is not None and is_worse(wakeups, good.wakeups, WAKEUPS_ALLOWANCE):
        found.append(Loss(process, "wakeups", wakeups, good.wakeups, functions))
    return found


def is_worse(now: float, before: float, allowance: float) -> bool:
    """True where a value is higher by more than the tolerance and by more than the allowance."""
    return now > before * (1 + TOLERANCE) and now - before > allowance


def changes(now: Functions, before: Functions, yardstick_s: float) -> list[FunctionChange]:
    """Functions of both sides in microseconds of today, the one that grew most first."""
    found = [
        FunctionChange(name, 1e6 * yardstick_s * now.get(name, 0.0), 1e6 * yardstick_s * before.get(name, 0.0))
        for name in {**before, **now}
    ]
    return sorted(found, key=lambda each: (each.before_us - each.now_us, each.name))


def confirmed(results: Sequence[ScenarioResult]) -> ScenarioResult:
    """The result of several comparisons of one scenario: a loss is what each has, with the last one's values."""
    if others := [each for each in results if not isinstance(each, Lost)]:
        return others[0]
    lost = [each for each in results if isinstance(each, Lost)]
    found = [{(loss.process, loss.measure) for loss in each.losses} for each in lost]
    losses = [loss for loss in lost[-1].losses if all((loss.process, loss.measure) in each for each in found)]
    return Lost(lost[-1].scenario, losses) if losses else Held(lost[-1].scenario)


def yardsticks_us(readings: Sequence[ScenarioReading]) -> Mapping[str, float]:
    """Median microseconds of each yardstick over all scenarios, for the reader of figures."""
    found: dict[str, float] = {}
    for reading in readings:
        for process in reading.processes:
            found.setdefault(yardstick_of(process), round(1e6 * reading.cpu(process).yardstick_s, 2))
    return found
