"""`bench`: how fast it is, beside how fast it could be."""

import contextlib
import sys
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from gardenbus.bench.options import BenchOptions, BenchProfile, ScenarioName
from gardenbus.cli.output.console import Exit, print_error, show
from gardenbus.embedded.durability import Durability

WITH_PROFILE = (ScenarioName.SCHEDULING, ScenarioName.FLAT)
"""Scenarios that can be measured with a profile of the scheduler."""


def bench(  # noqa: PLR0913 - one parameter an option
    scenario: Annotated[ScenarioName | None, typer.Argument(help="One scenario (default: all).")] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a scenario, each in a line.")] = False,
    seeds: Annotated[int | None, typer.Option(min=1, help="Seeds in the landscape.")] = None,
    placed: Annotated[int | None, typer.Option(min=0, help="Shoots that are on seeds before.")] = None,
    shoots: Annotated[int | None, typer.Option(min=1, help="Shoots of each run.")] = None,
    runs: Annotated[int | None, typer.Option(min=1, help="Runs; figures are their medians.")] = None,
    durability: Annotated[
        Durability, typer.Option(help="What is to survive: loss of power, or the death of any process.")
    ] = Durability.PROCESS,
    profile: Annotated[
        BenchProfile | None,
        typer.Option(help="Schedule 200 classes, requests and groups by this profile: `scheduling`, `flat`."),
    ] = None,
    reduced: Annotated[bool, typer.Option("--reduced", help="At a size for minutes instead of hours.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", help="Folder for results.json and results.md.", file_okay=False)
    ] = None,
) -> None:
    """Measure how fast this machine is, on servers of its own, and the same servers and batches with nothing decided.

    A target that is missed is reported and fails nothing; a measurement that does not come about ends with exit code 1.

    Example: gardenbus bench --reduced
    """
    if profile is not None and scenario not in WITH_PROFILE:
        raise typer.BadParameter(f"is one of {', '.join(WITH_PROFILE)}", param_hint="--profile: the scenario")
    options = BenchOptions(
        seeds=seeds,
        placed=placed,
        shoots=shoots,
        runs=runs,
        reduced=reduced,
        durability=durability,
        profile=profile,
    )
    failed = _run_all([scenario] if scenario else list(ScenarioName), options, as_json=as_json, output=output)
    if failed:
        raise typer.Exit(Exit.FAILED)


def _run_all(scenarios: Sequence[ScenarioName], options: BenchOptions, *, as_json: bool, output: Path | None) -> bool:
    """Measure one after the other; returns True if any failed."""
    import uvloop  # noqa: PLC0415

    from gardenbus.bench import report, stats  # noqa: PLC0415
    from gardenbus.bench.harness.retries import BenchFailed  # noqa: PLC0415
    from gardenbus.bench.runner import run_scenario  # noqa: PLC0415
    from gardenbus.bench.scenarios.catalogue import SCENARIOS  # noqa: PLC0415
    from gardenbus.cli.client.api import quiet_logs  # noqa: PLC0415
    from gardenbus.embedded.servers import ServerMissing  # noqa: PLC0415

    quiet_logs()
    results: list[stats.ScenarioStats] = []
    failed = False
    for name in scenarios:
        with _bars(name) as on_progress:
            try:
                results.append(uvloop.run(run_scenario(name, options, on_progress)))
            except (BenchFailed, ServerMissing) as error:
                failed = True
                print_error(f"{name.value}: {error}")
                continue
        if as_json:
            sys.stdout.write(msgspec.json.encode(stats.as_json(results[-1])).decode() + "\n")
            sys.stdout.flush()
        else:
            show(report.screen(results[-1], SCENARIOS[name].title))
        if output is not None:
            output.mkdir(parents=True, exist_ok=True)
            whole = msgspec.json.encode([stats.as_json(each) for each in results])
            (output / "results.json").write_bytes(msgspec.json.format(whole, indent=2) + b"\n")
            (output / "results.md").write_text(report.markdown(results), encoding="utf-8")
    return failed


@contextlib.contextmanager
def _bars(scenario: ScenarioName) -> Generator[Callable[[str, int, int], None]]:
    """Progress bars on a terminal; nothing elsewhere."""
    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(
        *columns, console=console, transient=True, refresh_per_second=2, disable=not console.is_terminal
    ) as bars:
        rows: dict[str, TaskID] = {}

        def on_progress(name: str, done: int, of: int) -> None:
            if name not in rows:
                rows[name] = bars.add_task(f"{scenario.value}: {name}", total=of)
            bars.update(rows[name], completed=done, total=of)

        yield on_progress
