"""Tables of docs/performance.md, written from the figures: one commit, one machine, and targets beside them. Pure."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from gardenbus.bench.guard.baseline import Baseline, ScenarioBaseline

BEGIN, END = "<!-- figures: begin (make bench-guard ARGS=--accept) -->", "<!-- figures: end -->"


class PageTarget(NamedTuple):
    """Target of a scenario: by rate to the bare pipe's, or a latency in milliseconds at a percentile."""

    words: str
    least_ratio: float | None = None
    most_ms: Mapping[str, float] = {}


TARGETS: Mapping[str, PageTarget] = {
    "intake": PageTarget("≥ 0.6 of the bare pipe's rate", least_ratio=0.6),
    "scheduling": PageTarget("≥ 0.7 of the bare pipe's rate", least_ratio=0.7),
    "stream": PageTarget("≥ 0.6 of the slower bare pipe's rate", least_ratio=0.6),
    "placement": PageTarget("≥ 0.6 of the bare pipe's rate", least_ratio=0.6),
    "one order alone": PageTarget("p50 ≤ 8 ms, p99 ≤ 30 ms", most_ms={"p50": 8.0, "p99": 30.0}),
}
AT_REST_UNIT = "second"


def with_tables(text: str, baseline: Baseline) -> str:
    """The page with its tables anew. Raises ValueError where the page has no place for them."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{tables(baseline)}\n{END}{after}"


def tables(baseline: Baseline) -> str:
    """All tables, with the commit and the machine above them."""
    machine = baseline.machine
    loads = f"load {machine['load_1m']:g}" if isinstance(machine.get("load_1m"), int | float) else "load unknown"
    varied = max((spread for each in baseline.yardsticks_varied.values() for spread in each.values()), default=0.0)
    units = ", ".join(f"{us:g} µs ({name})" for name, us in baseline.yardsticks_us.items())
    lines = [
        f"Measured at commit `{baseline.commit}`, {baseline.measured_at}, on {machine.get('cores')} cores",
        f"({machine.get('cpu')}), {machine.get('memory_gb')} GB, Linux {machine.get('kernel')}, Python",
        f"{machine.get('python')}; {loads}. The yardsticks varied by up to {varied:.0%}; one unit took {units}.",
        "",
        *_targets(baseline.scenarios),
        "",
        *_processes(baseline.scenarios),
        "",
        *_at_rest(baseline.scenarios),
        "",
        *_functions(baseline.scenarios),
    ]
    return "\n".join(lines) + "\n"


def is_met(target: PageTarget, scenario: ScenarioBaseline) -> bool | None:
    """True if a scenario reaches its target; None where that was not measured."""
    if target.least_ratio is not None:
        return None if scenario.bare is None else scenario.rate_per_s / scenario.bare.rate_per_s >= target.least_ratio
    if not all(name in scenario.latency_ms for name in target.most_ms):
        return None
    return all(scenario.latency_ms[name] <= most for name, most in target.most_ms.items())


def _targets(scenarios: Mapping[str, ScenarioBaseline]) -> Iterator[str]:
    yield "| scenario | rate | bare pipe | ratio | by CPU | CPU, all processes | p50 / p99 | target | |"
    yield "|---|---:|---:|---:|---:|---:|---:|---|---|"
    for name, scenario in scenarios.items():
        if scenario.unit == AT_REST_UNIT:
            continue
        bare, target, latency = scenario.bare, TARGETS.get(name), scenario.latency_ms
        cells = [
            f"{name}, {scenario.units:,} {scenario.unit}s",
            f"{scenario.rate_per_s:,.0f}/s",
            f"{bare.rate_per_s:,.0f}/s" if bare else "",
            f"{scenario.rate_per_s / bare.rate_per_s:.2f}" if bare else "",
            f"{bare.cpu_us / scenario.cpu_us:.2f}" if bare else "",
            f"{scenario.cpu_us:,.0f} µs per {scenario.unit}",
            f"{latency['p50']:.1f} / {latency['p99']:.1f} ms" if name == "one order alone" and latency else "",
            target.words if target else "none of its own",
            {True: "met", False: "**missed**", None: ""}[is_met(target, scenario)] if target else "",
        ]
        yield f"| {' | '.join(cells)} |"


def _processes(scenarios: Mapping[str, ScenarioBaseline]) -> Iterator[str]:
    yield "CPU of each process for one unit, in brackets in units of its yardstick, and its memory afterwards:"
    yield ""
    yield "| scenario | process | CPU | memory |"
    yield "|---|---|---:|---:|"
    for name, scenario in scenarios.items():
        for process, baseline in scenario.processes.items() if scenario.unit != AT_REST_UNIT else ():
            memory = "" if baseline.memory_mb is None else f"{baseline.memory_mb:.0f} MB"
            yield f"| {name} | {process} | {baseline.cpu_us:,.1f} µs ({baseline.cpu:.3g}) | {memory} |"


def _at_rest(scenarios: Mapping[str, ScenarioBaseline]) -> Iterator[str]:
    for name, scenario in scenarios.items():
        if scenario.unit != AT_REST_UNIT:
            continue
        yield f"A landscape {name}: one seed and three shoots, nothing to do for {scenario.units} s:"
        yield ""
        yield "| process | of a core | wake-ups a second | memory |"
        yield "|---|---:|---:|---:|"
        for process, baseline in scenario.processes.items():
            memory = "" if baseline.memory_mb is None else f"{baseline.memory_mb:.0f} MB"
            yield f"| {process} | {baseline.cpu_us / 1e6:.2%} | {baseline.wakeups or 0:.0f} | {memory} |"
        total = sum(baseline.cpu_us for baseline in scenario.processes.values()) / 1e6
        memory = sum(baseline.memory_mb or 0.0 for baseline in scenario.processes.values())
        yield f"| all | {total:.2%} | | {memory:.0f} MB |"


def _functions(scenarios: Mapping[str, ScenarioBaseline], most: int = 6) -> Iterator[str]:
    """The heaviest functions of each process, by samples; of Redis by its log of calls."""
    yield "Where the time goes: functions of ours by their part of their process' samples, what they call of others"
    yield "included; of Redis by its own account of each call."
    yield ""
    yield "| scenario | process | functions |"
    yield "|---|---|---|"
    for name, scenario in scenarios.items():
        for process, baseline in scenario.processes.items() if scenario.unit != AT_REST_UNIT else ():
            total = sum(baseline.functions.values())
            heaviest = list(baseline.functions.items())[:most]
            if heaviest and total:
                shown = ", ".join(f"`{_short(each)}` {weight / total:.0%}" for each, weight in heaviest)
                yield f"| {name} | {process} | {shown} |"


def _short(function: str) -> str:
    """A function with the last part of its module."""
    module, colon, name = function.partition(":")
    return f"{module.rpartition('.')[2]}:{name}" if colon else function
