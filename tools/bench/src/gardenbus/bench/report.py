"""Results for people: one scenario on the screen, all of them as a Markdown table. Pure."""

from collections.abc import Mapping, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gardenbus.bench.comparison import MEASURER
from gardenbus.bench.stats import ScenarioStats, blocks

INDENT = "  "


def screen(stats: ScenarioStats, title: str) -> RenderableType:
    """One scenario: what was measured, rates, latencies, where the time went, with what and on what."""
    parts: list[RenderableType] = [Text.assemble((stats.scenario, "bold"), f": {title}")]
    parts += [Text(INDENT + line) for line in [*rate_lines(stats), *value_lines(stats.values)]]
    parts.append(_target_line(stats))
    parts += [Text(INDENT + line) for line in latency_lines(stats)]
    if stats.cpu_s:
        parts += [processes_table(stats), Text(INDENT + where_the_time_goes(stats))]
    parts.append(Text(INDENT + "with " + listed(stats.parameters), style="dim"))
    parts.append(Text(INDENT + "on " + listed(stats.machine) + "\n", style="dim"))
    return Group(*parts)


def rate_lines(stats: ScenarioStats) -> list[str]:
    """The product's rate, the bare pipe's, and their ratio."""
    lines: list[str] = []
    if stats.rate_per_s is not None:
        lines.append(f"product    {_rate(stats.rate_per_s)} {stats.unit}s/s{_spread(stats.runs, 'rate_per_s')}")
    if stats.bare_per_s is not None:
        lines.append(f"bare pipe  {_rate(stats.bare_per_s)} {stats.unit}s/s{_spread(stats.runs, 'bare_per_s')}")
    if stats.ratio is not None:
        lines.append(f"ratio      {stats.ratio:.2f}{_spread(stats.runs, 'ratio')}")
    return lines


def value_lines(values: Mapping[str, float]) -> list[str]:
    """Values that only this scenario has."""
    return [f"{name.replace('_', ' ')}: {_number(value)}" for name, value in values.items()]


def latency_lines(stats: ScenarioStats) -> list[str]:
    """Percentiles of product and bare pipe, and the product's histogram."""
    if not stats.latency_ms:
        return []
    lines = [f"latency    {_percentiles(stats.latency_ms)} ms, {stats.latency_of}"]
    if stats.bare_latency_ms:
        lines.append(f"bare       {_percentiles(stats.bare_latency_ms)} ms")
    if stats.histogram:
        lines.append(f"0 [{blocks(stats.histogram)}] {_number(stats.latency_ms['p99'])} ms")
    return lines


def processes_table(stats: ScenarioStats) -> Table:
    """CPU seconds per process, for the product and for the bare pipe, and memory."""
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=True)
    table.add_column("PROCESS", no_wrap=True)
    for column in ("CPU S", f"µS/{stats.unit.upper()}", "BUSY", "BARE CPU S", f"µS/{stats.unit.upper()}", "MB"):
        table.add_column(column, justify="right", no_wrap=True)
    for name in dict.fromkeys([*stats.cpu_s, *stats.bare_cpu_s]):
        table.add_row(
            _role(name),
            _cell(stats.cpu_s.get(name), "{:.2f}"),
            _per_unit(stats.cpu_s.get(name), stats.units),
            _cell(stats.busy.get(name), "{:.0%}"),
            _cell(stats.bare_cpu_s.get(name), "{:.2f}"),
            _per_unit(stats.bare_cpu_s.get(name), stats.units),
            _cell(stats.rss_mb.get(name), "{:.0f}"),
        )
    totals = sum(stats.cpu_s.values()), sum(stats.bare_cpu_s.values())
    table.add_row(
        "all",
        f"{totals[0]:.2f}",
        _per_unit(totals[0], stats.units),
        f"{sum(stats.busy.values()):.0%}" if stats.busy else "",
        f"{totals[1]:.2f}" if totals[1] else "",
        _per_unit(totals[1] or None, stats.units),
        "",
        style="dim",
    )
    return table


def where_the_time_goes(stats: ScenarioStats) -> str:
    """The busiest processes, and what of the machine was left."""
    if not stats.busy:
        return ""
    order = sorted(stats.busy, key=lambda name: -stats.busy[name])
    busiest = ", ".join(f"{_role(name)} {stats.busy[name]:.0%}" for name in order[:3])
    cores = stats.machine.get("cores")
    rest = ""
    if isinstance(cores, int):
        left = max(0.0, 1 - sum(stats.busy.values()) / cores)
        rest = f"; {left:.0%} of the machine's {cores} cores went to waiting for disk and each other, or to others"
    return f"where the time goes: {busiest} of a core{rest}"


def markdown(results: Sequence[ScenarioStats]) -> str:
    """All results as a document: a table, and what it was measured with."""
    lines = [
        "# Measurements",
        "",
        "| scenario | product | bare pipe | ratio | p50 / p99 ms | target | met | CPU s |",
        "|---|---:|---:|---:|---:|---|---|---|",
    ]
    for stats in results:
        latency = stats.latency_ms
        columns = [
            stats.scenario,
            "" if stats.rate_per_s is None else f"{_rate(stats.rate_per_s)} {stats.unit}s/s",
            "" if stats.bare_per_s is None else f"{_rate(stats.bare_per_s)} {stats.unit}s/s",
            "" if stats.ratio is None else f"{stats.ratio:.2f}",
            f"{_number(latency['p50'])} / {_number(latency['p99'])}" if latency else "",
            stats.target,
            {True: "yes", False: "no", None: ""}[stats.met],
            ", ".join(f"{_role(name)} {seconds:g}" for name, seconds in stats.cpu_s.items()),
        ]
        lines.append(f"| {' | '.join(columns)} |")
    lines.append("")
    for stats in results:
        values = "; ".join(value_lines(stats.values))
        lines.append(f"- {stats.scenario}: with {listed(stats.parameters)}{f'. {values}' if values else ''}")
    machines = dict.fromkeys(listed({**stats.machine, "load_1m": "?"}) for stats in results)
    loads = [load for stats in results if isinstance(load := stats.machine.get("load_1m"), float)]
    for described in machines:
        lines += ["", f"Machine: {described.replace(', load_1m ?', '')}."]
    if loads:
        lines.append(f"Load average before the scenarios: {min(loads):g} to {max(loads):g}.")
    return "\n".join(lines) + "\n"


def listed(members: Mapping[str, object]) -> str:
    """Members of a mapping in a line."""
    return ", ".join(
        f"{name} {_number(value) if isinstance(value, int | float) else value}" for name, value in members.items()
    )


def _target_line(stats: ScenarioStats) -> Text:
    if not stats.target:
        return Text("")
    result_text = {True: ("met", "green"), False: ("not met", "red"), None: ("not judged", "")}[stats.met]
    return Text.assemble(f"{INDENT}target     {stats.target}: ", result_text)


def _spread(runs: Sequence[Mapping[str, float]], name: str) -> str:
    values = [run[name] for run in runs if name in run]
    if len(values) < 2:  # noqa: PLR2004 - a spread is between two
        return ""
    return f"  ({_number(min(values))} … {_number(max(values))} in {len(values)} runs)"


def _percentiles(milliseconds: Mapping[str, float]) -> str:
    return "  ".join(f"{name} {_number(value)}" for name, value in milliseconds.items())


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:,.1f}"  # noqa: PLR2004 - three digits say enough


def _number(value: float) -> str:
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.3g}"  # noqa: PLR2004 - three digits say enough


def _cell(value: float | None, pattern: str) -> str:
    return "" if value is None else pattern.format(value)


def _per_unit(seconds: float | None, units: int) -> str:
    return "" if seconds is None or not units else f"{1e6 * seconds / units:,.0f}"


def _role(name: str) -> str:
    return "generator" if name == MEASURER else name
