"""`simulate`: which of its commands is meant, and `simulate autoscaler`, a set of seeds in virtual time."""

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
import typer
from rich import box
from rich.table import Table
from typer.core import TyperGroup

from gardenbus.cli.commands.options import Output
from gardenbus.cli.output.console import Exit, Format, console, print_error, printed, show_lines, show_rows
from gardenbus.common.api.durations import parse_duration

if TYPE_CHECKING:
    from gardenbus.cli.simulate.autoscaling.report import AutoscalerScenario, SimulationSummary
    from gardenbus.cli.simulate.autoscaling.simulator import SimulationTrace

LANDSCAPES = "landscapes"
WHAT_IF = "what-if"
MOST_SHOOTS = 1_000_000
"""Most shoots of one simulation, which are all held in memory."""
SPARKLINE_WIDTH = 72
_BARS = "▁▂▃▄▅▆▇█"
_HELP_OPTIONS = ("-h", "--help")
_LIVE = ("--context", "--dir", "--nats-url", "--prefix")
_WHAT_IF_OPTIONS = (
    "-f",
    "--filename",
    "--add-seed",
    "--remove-seed",
    "--cordon",
    "--shoots",
    "--like",
    "--all",
    *_LIVE,
)
_WITH_VALUE = ("--strategy", "-o", "--output")


def simulate() -> None:
    """Simulate changes; nothing is written anywhere.

    What if seeds came or went, took no more shoots, or more shoots came? Options alone suppose that of the live
    landscape: --add-seed FILE, --remove-seed SEED, --cordon SEED, --shoots NUMBER --like SHOOT, --strategy. They belong
    to what-if, FILEs to landscapes; both names may be left out.

    Examples:
    gardenbus simulate --cordon aws-eu1 --shoots 5 --like garden-dev/apollo
    gardenbus simulate --add-seed new-seed.yaml --remove-seed aws-eu1
    gardenbus simulate examples/landscape
    gardenbus simulate autoscaler --days 7
    """


class DefaultGroup(TyperGroup):
    """A group whose arguments belong to `landscapes`, or to `what-if` where they suppose something or name no file."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the command's name in front where none is given but something else is."""
        if args and (args[0] not in self.commands and args[0] not in _HELP_OPTIONS):
            args = [WHAT_IF if _is_what_if(args) else LANDSCAPES, *args]
        return super().parse_args(ctx, args)


def _is_what_if(args: list[str]) -> bool:
    """True when the words are a what-if's: an option of `what-if` alone, or nothing but options that both have."""
    if any(arg.partition("=")[0] in _WHAT_IF_OPTIONS for arg in args):
        return True
    values = {number + 1 for number, arg in enumerate(args) if arg in _WITH_VALUE}
    return not any(number not in values and not arg.startswith("-") for number, arg in enumerate(args))


def _duration(text: str | timedelta) -> timedelta:
    if isinstance(text, timedelta):
        return text
    try:
        duration = parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    if duration < timedelta():
        raise typer.BadParameter("must not be negative")
    return duration


def _as_duration(default: str, help_text: str) -> Any:
    return typer.Option(
        parser=_duration, metavar="DURATION", help=f"{help_text} (default: {default}).", show_default=False
    )


class ScenarioOptions(NamedTuple):
    """The options of `simulate autoscaler`."""

    days: Annotated[int, typer.Option(min=1, max=366, help="How long.")] = 30
    seed: Annotated[int, typer.Option(help="Of the random numbers: the same seed gives the same shoots.")] = 1
    least: Annotated[int, typer.Option("--min", min=0, help="minReplicas.")] = 1
    most: Annotated[int, typer.Option("--max", min=1, max=1000, help="maxReplicas.")] = 20
    target: Annotated[int, typer.Option(min=1, max=100, help="averageUtilization of shoots, in percent.")] = 80
    capacity: Annotated[int, typer.Option(min=1, help="Shoots on one seed.")] = 20
    build_time: Annotated[timedelta, _as_duration("10m", "From order to a seed that takes shoots")] = timedelta(
        minutes=10
    )
    removal_time: Annotated[timedelta, _as_duration("5m", "From removal to nothing left to pay")] = timedelta(minutes=5)
    window_up: Annotated[timedelta, _as_duration("0s", "Stabilization window of scaleUp")] = timedelta()
    window_down: Annotated[timedelta, _as_duration("5m", "Stabilization window of scaleDown")] = timedelta(minutes=5)
    sync_period: Annotated[timedelta, _as_duration("15s", "Sync period")] = timedelta(seconds=15)
    drain: Annotated[bool, typer.Option(help="Whether seeds in use are emptied to go.")] = True
    shoots_per_day: Annotated[float, typer.Option(min=0, help="Arrivals a day, in a daily wave.")] = 240.0
    lifetime: Annotated[timedelta, _as_duration("12h", "Mean lifetime of a shoot")] = timedelta(hours=12)
    bursts: Annotated[int, typer.Option(min=0, max=1000, help="Times that many shoots come within a minute.")] = 4
    burst_shoots: Annotated[int, typer.Option(min=0, max=MOST_SHOOTS, help="How many come in a burst.")] = 80
    mass_deletions: Annotated[
        int, typer.Option(min=0, max=1000, help="Times that most shoots are deleted at once.")
    ] = 3
    plot: Annotated[Path | None, typer.Option(metavar="FILE.png", help="Draw the course into this file.")] = None
    output: Output = Format.TABLE


def autoscaler(*, options: ScenarioOptions) -> None:
    """Let a SeedAutoscaler follow shoots that come and go for a month of virtual time; offline.

    Shoots come in a daily wave, with bursts, and are now and then deleted in masses. The service's own decisions size
    the set. What that cost is compared with the least that anybody could have paid who knew everything in advance.

    Example: gardenbus simulate autoscaler --days 7 --target 70
    """
    from gardenbus.cli.simulate.autoscaling.report import AutoscalerScenario, simulate, summary_of  # noqa: PLC0415  as above
    from gardenbus.cli.simulate.autoscaling.simulator import SeedSetModel  # noqa: PLC0415  as above
    from gardenbus.cli.simulate.autoscaling.workload import ShootWorkload  # noqa: PLC0415  other commands need not pay for it

    _check(options)
    scenario = AutoscalerScenario(
        load=ShootWorkload(
            days=options.days,
            shoots_per_day=options.shoots_per_day,
            lifetime_hours=max(options.lifetime.total_seconds(), 1) / 3600,
            bursts=options.bursts,
            burst_shoots=options.burst_shoots,
            mass_deletions=options.mass_deletions,
            seed=options.seed,
        ),
        seeds=SeedSetModel(
            capacity=options.capacity,
            build_seconds=_seconds(options.build_time),
            removal_seconds=_seconds(options.removal_time),
            drain=options.drain,
        ),
        least=options.least,
        most=options.most,
        target=options.target,
        window_up_seconds=_seconds(options.window_up),
        window_down_seconds=_seconds(options.window_down),
        sync_seconds=max(_seconds(options.sync_period), 1),
    )
    trace = simulate(scenario)
    summary = summary_of(scenario, trace)
    if options.plot is not None:
        _draw(options.plot, scenario, trace)
    if not printed(options.output, msgspec.to_builtins(summary), [f"{summary.seed_hours.ratio}"]):
        _print(summary, trace, options.plot)


def _check(options: ScenarioOptions) -> None:
    problem = ""
    if options.least > options.most:
        problem = f"--min ({options.least}) must not be above --max ({options.most})"
    elif not options.shoots_per_day * options.days + options.bursts * options.burst_shoots <= MOST_SHOOTS:  # or NaN
        problem = f"--shoots-per-day, --days, --bursts and --burst-shoots make more than {MOST_SHOOTS} shoots"
    if problem:
        print_error(problem)
        raise typer.Exit(Exit.USAGE)


def _print(summary: "SimulationSummary", trace: "SimulationTrace", plot: Path | None) -> None:
    waiting, hours, events = summary.waiting, summary.seed_hours, summary.scale_events
    rows = [
        ("shoots", f"{summary.shoots} in {summary.days} days, at most {summary.most_shoots} at once"),
        ("seeds", f"at most {summary.most_seeds} at once"),
        (
            "waiting time",
            (
                f"p50 {_duration_text(waiting.p50_seconds)}, p99 {_duration_text(waiting.p99_seconds)}"
                f", max {_duration_text(waiting.max_seconds)}"
            ),
        ),
        ("shoots that waited", f"{waiting.share:.1%}"),
        ("seed-hours paid", f"{hours.paid:,.1f}"),
        ("best in hindsight", f"{hours.best:,.1f} (paid {hours.ratio:.2f} times as much)"),
        ("scale events", f"{events.up} up, {events.down} down; {events.reversals} changes of direction"),
    ]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column()
    for name, value in rows:
        table.add_row(name, value)
    show_rows(table)
    width = min(SPARKLINE_WIDTH, max(console.width - 12, 10))
    show_lines(
        [
            "",
            f"shoots   {sparkline([(each.at, each.wanted) for each in trace.samples], trace.end, width)}",
            f"waiting  {sparkline([(each.at, each.waiting) for each in trace.samples], trace.end, width)}",
            f"seeds    {sparkline([(each.at, each.paid) for each in trace.samples], trace.end, width)}",
        ]
    )
    if plot is not None:
        show_lines(["", f"drawn into {plot}"])


def sparkline(steps: list[tuple[int, int]], end: int, width: int) -> str:
    """The highest value in each of `width` equal parts of the time from 0 to `end`, as bars; a blank for none."""
    highest = [0] * width
    for number, (at, value) in enumerate(steps):
        until = steps[number + 1][0] if number + 1 < len(steps) else end
        for part in range(at * width // end, min(max(until - 1, at) * width // end, width - 1) + 1):
            highest[part] = max(highest[part], value)
    top = max(highest, default=0)
    return "".join(" " if not value else _BARS[(value * len(_BARS) - 1) // top] for value in highest)


def _draw(file: Path, scenario: "AutoscalerScenario", trace: "SimulationTrace") -> None:
    from gardenbus.cli.simulate.plots import draw_trace  # noqa: PLC0415  matplotlib takes a second to load

    try:
        draw_trace(file, scenario, trace)
    except (OSError, ValueError) as error:
        print_error(f"--plot {file}: {error}")
        raise typer.Exit(Exit.USAGE) from error


def _seconds(duration: timedelta) -> int:
    return int(duration.total_seconds())


def _duration_text(seconds: int) -> str:
    """`0s`, `45s`, `12m30s`, `1h05m`."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02}m"
    return f"{minutes}m{rest:02}s" if minutes else f"{rest}s"
