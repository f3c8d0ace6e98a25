"""Results of the guard for people: a line a scenario; of a loss process, functions, and the last good ones. Pure."""

from collections.abc import Iterator, Sequence
from typing import assert_never

from gardenbus.bench.guard.assessment import REST_UNIT, Held, Loss, Lost, MeasuredNothing, NotMeasurable, ScenarioResult
from gardenbus.bench.guard.baseline import Baseline
from gardenbus.bench.guard.readings import ScenarioReading

MOST_FUNCTIONS = 12
UNITS = {"cpu": "µs", "memory": "MB", "wakeups": "times a second"}
MEASURES = {"cpu": "CPU", "memory": "memory", "wakeups": "wake-ups"}


def result_text(result: ScenarioResult, reading: ScenarioReading, baseline: Baseline) -> str:
    """One result, as lines."""
    match result:
        case Held(scenario):
            return f"{scenario}: held. {beside_the_pipe(reading)}"
        case NotMeasurable(scenario, yardstick, varied, others, suspected):
            text = f"{scenario}: not measurable here: the yardstick varied by {varied:.0%} ({yardstick})"
            seemed = ", ".join(f"{loss.process} +{loss.increase:.0%}" for loss in suspected)
            return f"{text}, others took {others:.0%} of the cores{f'; seemed worse: {seemed}' if seemed else ''}"
        case MeasuredNothing(scenario, reason):
            return f"{scenario}: MEASURED NOTHING: {reason}"
        case Lost(scenario, losses):
            lines = [f"{scenario}: LOST since {baseline.commit[:12]}. {beside_the_pipe(reading)}"]
            lines += [line for loss in losses for line in loss_lines(loss, reading.unit)]
            return "\n".join([*lines, *_count_lines(reading, baseline)])
    assert_never(result)


def loss_lines(loss: Loss, unit: str) -> Iterator[str]:
    """The process, what it takes and took, and its functions."""
    of = f" per {unit}" if loss.measure == "cpu" else ""
    yield (
        f"  {loss.process}: {loss.now:,.1f} {UNITS[loss.measure]} of {MEASURES[loss.measure]}{of}, "
        f"last good {loss.before:,.1f} (+{loss.increase:.0%})"
    )
    if loss.functions:
        yield f"    {f'µs per {unit}, what grew most first':<68} {'now':>9} {'last good':>10}"
    for function in loss.functions[:MOST_FUNCTIONS]:
        yield f"    {function.name:<68} {function.now_us:>9,.1f} {function.before_us:>10,.1f}"


def beside_the_pipe(reading: ScenarioReading) -> str:
    """Rate and CPU, and their ratios to the bare pipe's where it was measured; at rest the CPU alone."""
    if reading.unit == REST_UNIT:
        return f"{reading.cpu_of_all:.1%} of a core, all processes together"
    text = f"{1e6 * reading.cpu_of_all:,.0f} µs of CPU per {reading.unit}, {reading.rate_per_s:,.0f} {reading.unit}s/s"
    if reading.bare is None or not reading.cpu_of_all:
        return text
    bare_cpu = sum(reading.bare.cpu_s.values()) / reading.bare.units
    bare_rate = reading.bare.units / reading.bare.seconds
    by_cpu, by_rate = bare_cpu / reading.cpu_of_all, reading.rate_per_s / bare_rate
    return f"{text}; of the bare pipe {by_cpu:.2f} by CPU, {by_rate:.2f} by rate"


def summary(results: Sequence[ScenarioResult]) -> str:
    """All results in one line."""
    counted = {
        "held": sum(isinstance(result, Held) for result in results),
        "lost": sum(isinstance(result, Lost) for result in results),
        "not measurable": sum(isinstance(result, NotMeasurable) for result in results),
        "measured nothing": sum(isinstance(result, MeasuredNothing) for result in results),
    }
    return ", ".join(f"{count} {name}" for name, count in counted.items() if count)


def _count_lines(reading: ScenarioReading, baseline: Baseline) -> list[str]:
    """Messages that NATS had to carry, now and then: nothing samples its functions."""
    good = baseline.scenarios[reading.scenario].counts
    return [
        f"  {name} per {reading.unit}: {count:,.1f}, last good {good.get(name, 0.0):,.1f}"
        for name, count in reading.counts.items()
    ]
