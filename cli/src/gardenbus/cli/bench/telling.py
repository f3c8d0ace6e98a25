"""Figures for people: one scenario on the screen, all of them as a Markdown table. Pure."""

from collections.abc import Mapping, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gardenbus.cli.bench.figures import Figures, blocks

INDENT = "  "


def screen(figures: Figures, title: str) -> RenderableType:
    """One scenario: what was measured, the figures, latencies, where the time went, with what and on what."""
    parts: list[RenderableType] = [Text.assemble((figures.scenario, "bold"), f": {title}")]
    parts += [Text(INDENT + line) for line in [*rate_lines(figures), *value_lines(figures.values)]]
    parts.append(_verdict(figures))
    parts += [Text(INDENT + line) for line in latency_lines(figures)]
    if figures.cpu_s:
        parts += [processes_table(figures), Text(INDENT + where_the_time_goes(figures))]
    parts.append(Text(INDENT + "with " + listed(figures.parameters), style="dim"))
    parts.append(Text(INDENT + "on " + listed(figures.machine) + "\n", style="dim"))
    return Group(*parts)


def rate_lines(figures: Figures) -> list[str]:
    """The figure, the bare pipe and their ratio."""
    lines: list[str] = []
    if figures.rate_per_s is not None:
        lines.append(f"product    {_rate(figures.rate_per_s)} {figures.unit}s/s{_spread(figures.runs, 'rate_per_s')}")
    if figures.bare_per_s is not None:
        lines.append(f"bare pipe  {_rate(figures.bare_per_s)} {figures.unit}s/s{_spread(figures.runs, 'bare_per_s')}")
    if figures.ratio is not None:
        lines.append(f"ratio      {figures.ratio:.2f}{_spread(figures.runs, 'ratio')}")
    return lines


def value_lines(values: Mapping[str, float]) -> list[str]:
    """What the scenario alone can say."""
    return [f"{name.replace('_', ' ')}: {_number(value)}" for name, value in values.items()]


def latency_lines(figures: Figures) -> list[str]:
    """Percentiles of product and bare pipe, and the product's histogram."""
    if not figures.latency_ms:
        return []
    lines = [f"latency    {_percentiles(figures.latency_ms)} ms, {figures.latency_of}"]
    if figures.bare_latency_ms:
        lines.append(f"bare       {_percentiles(figures.bare_latency_ms)} ms")
    if figures.histogram:
        lines.append(f"0 [{blocks(figures.histogram)}] {_number(figures.latency_ms['p99'])} ms")
    return lines


def processes_table(figures: Figures) -> Table:
    """CPU seconds per process, for the product and for the bare pipe, and memory."""
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=True)
    table.add_column("PROCESS", no_wrap=True)
    for column in ("CPU S", f"µS/{figures.unit.upper()}", "BUSY", "BARE CPU S", f"µS/{figures.unit.upper()}", "MB"):
        table.add_column(column, justify="right", no_wrap=True)
    for name in dict.fromkeys([*figures.cpu_s, *figures.bare_cpu_s]):
        table.add_row(
            _role(name),
            _cell(figures.cpu_s.get(name), "{:.2f}"),
            _per_unit(figures.cpu_s.get(name), figures.units),
            _cell(figures.busy.get(name), "{:.0%}"),
            _cell(figures.bare_cpu_s.get(name), "{:.2f}"),
            _per_unit(figures.bare_cpu_s.get(name), figures.units),
            _cell(figures.rss_mb.get(name), "{:.0f}"),
        )
    totals = sum(figures.cpu_s.values()), sum(figures.bare_cpu_s.values())
    table.add_row(
        "all",
        f"{totals[0]:.2f}",
        _per_unit(totals[0], figures.units),
        f"{sum(figures.busy.values()):.0%}" if figures.busy else "",
        f"{totals[1]:.2f}" if totals[1] else "",
        _per_unit(totals[1] or None, figures.units),
        "",
        style="dim",
    )
    return table


def where_the_time_goes(figures: Figures) -> str:
    """The busiest processes, and what of the machine was left."""
    if not figures.busy:
        return ""
    order = sorted(figures.busy, key=lambda name: -figures.busy[name])
    busiest = ", ".join(f"{_role(name)} {figures.busy[name]:.0%}" for name in order[:3])
    cores = figures.machine.get("cores")
    rest = ""
    if isinstance(cores, int):
        left = max(0.0, 1 - sum(figures.busy.values()) / cores)
        rest = f"; {left:.0%} of the machine's {cores} cores went to waiting for disk and each other, or to others"
    return f"where the time goes: {busiest} of a core{rest}"


def markdown(results: Sequence[Figures]) -> str:
    """All results as a document: a table, and what it was measured with."""
    lines = [
        "# Measurements",
        "",
        "| scenario | product | bare pipe | ratio | p50 / p99 ms | target | met | CPU s |",
        "|---|---:|---:|---:|---:|---|---|---|",
    ]
    for figures in results:
        latency = figures.latency_ms
        cells = [
            figures.scenario,
            "" if figures.rate_per_s is None else f"{_rate(figures.rate_per_s)} {figures.unit}s/s",
            "" if figures.bare_per_s is None else f"{_rate(figures.bare_per_s)} {figures.unit}s/s",
            "" if figures.ratio is None else f"{figures.ratio:.2f}",
            f"{_number(latency['p50'])} / {_number(latency['p99'])}" if latency else "",
            figures.target,
            {True: "yes", False: "no", None: ""}[figures.met],
            ", ".join(f"{_role(name)} {seconds:g}" for name, seconds in figures.cpu_s.items()),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    lines.append("")
    for figures in results:
        values = "; ".join(value_lines(figures.values))
        lines.append(f"- {figures.scenario}: with {listed(figures.parameters)}{f'. {values}' if values else ''}")
    machines = dict.fromkeys(listed({**figures.machine, "load_1m": "?"}) for figures in results)
    loads = [load for figures in results if isinstance(load := figures.machine.get("load_1m"), float)]
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


def _verdict(figures: Figures) -> Text:
    if not figures.target:
        return Text("")
    said = {True: ("met", "green"), False: ("not met", "red"), None: ("not judged", "")}[figures.met]
    return Text.assemble(f"{INDENT}target     {figures.target}: ", said)


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
    return "generator" if name == "bench" else name
