"""`explain`, `simulate`: decisions and where they led."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich import box
from rich.table import Table
from rich.text import Text

from gardenbus.cli.commands.options import Output
from gardenbus.cli.documents import read_files
from gardenbus.cli.output import (
    Exit,
    Format,
    exit_codes,
    say_error,
    show_document,
    show_lines,
    show_rows,
)
from gardenbus.common.errors import SettingsInvalid

if TYPE_CHECKING:
    from gardenbus.scheduling.simulate import SimulatedPlacement


class Strategy(StrEnum):
    """How candidates are chosen among the seeds that fit."""

    SAME_REGION = "SameRegion"
    MINIMAL_DISTANCE = "MinimalDistance"


def simulate_command(
    files: Annotated[
        list[Path], typer.Argument(help="Each file, or folder, is one landscape of manifests.", metavar="FILE…")
    ],
    *,
    strategy: Annotated[
        Strategy | None,
        typer.Option(
            help="How candidates are chosen (default: as a SchedulerConfiguration among them, or SameRegion)."
        ),
    ] = None,
    output: Output = Format.TABLE,
) -> None:
    """Say offline where the pending shoots of each file would go, each placement counting for the next.

    GardenletConfigurations count as Seeds whose gardenlets are ready.

    Example: gardenbus simulate examples/landscape --strategy MinimalDistance
    """
    from gardenbus.cli.ready_seeds import strategy_in, with_ready_seeds  # noqa: PLC0415  as below
    from gardenbus.scheduling.installed_filters import load_filters  # noqa: PLC0415  as below
    from gardenbus.scheduling.simulate import simulate  # noqa: PLC0415  as above

    with exit_codes():
        try:
            filters = load_filters()
        except SettingsInvalid as error:
            say_error(error.message)
            raise typer.Exit(Exit.USAGE) from error
        for file in files:
            documents = read_files([file])
            chosen = strategy or strategy_in(documents) or Strategy.SAME_REGION
            _print_placements(file, simulate(with_ready_seeds(documents), str(chosen), filters), output)


def _print_placements(file: Path, placements: "list[SimulatedPlacement]", output: Format) -> None:
    if output in (Format.JSON, Format.YAML):
        landscape = msgspec.to_builtins({"landscape": str(file), "placements": placements})
        if output is Format.YAML:
            show_lines(["---"])
            show_document(landscape, output)
        else:
            show_lines([msgspec.json.encode(landscape).decode()])
        return
    if output is Format.NAME:
        show_lines([f"{placement.shoot} {placement.seed or '-'}" for placement in placements])
        return
    placed = sum(placement.seed is not None for placement in placements)
    show_lines([f"{file}: {placed} of {len(placements)} placed"])
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in ("SHOOT", "SEED"):
        table.add_column(column, no_wrap=True)
    table.add_column("WHY NOT", overflow="fold")
    for placement in placements:
        table.add_row(placement.shoot, placement.seed or "<none>", Text(placement.message or ""))
    if placements:
        show_rows(table)
    show_lines([""])
