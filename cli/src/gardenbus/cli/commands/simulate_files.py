"""`simulate` of files: where the shoots in them would go, and the placements."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
import typer
from rich.text import Text

from gardenbus.cli.commands.options import Output
from gardenbus.cli.fleet.decisions import COLUMNS, decision_rows, is_fleet, is_landscape, summary
from gardenbus.cli.manifests.files import read_files
from gardenbus.cli.output.console import (
    PROGRAMS,
    Exit,
    Format,
    exit_codes,
    new_table,
    print_error,
    show_document,
    show_lines,
    show_rows,
)
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.unschedulable import brief_reason, full_reason
from gardenbus.common.errors import SettingsInvalid

if TYPE_CHECKING:
    from gardenbus.cli.simulate.scheduling import SimulatedAssignment


class Strategy(StrEnum):
    """Strategies for choosing a seed among the feasible ones."""

    SAME_REGION = "SameRegion"
    MINIMAL_DISTANCE = "MinimalDistance"


Profile = Annotated[
    str | None,
    typer.Option(
        help="Schedule all shoots by this profile: a schedulerName of the files, spread, binpack, FILE or FILE:NAME.",
        metavar="NAME",
    ),
]


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
    profile: Profile = None,
    output: Output = Format.TABLE,
) -> None:
    """Say offline where the pending shoots of each file would go, each placement counting for the next.

    GardenletConfigurations count as Seeds whose gardenlets are ready. Shoots are scheduled by the profile that their
    schedulerName has in a SchedulerConfiguration of the file; with --profile all of them by that one.

    For a file with MemberClusters and placements it shows which clusters each placement would be on, with scores,
    and why it would not be on the others; bindings in the file are what stands already. The clusters of
    MemberAgentConfigurations count as joined and healthy. What has both gets both.

    Example: gardenbus simulate examples/landscape --strategy MinimalDistance
    Example: gardenbus simulate examples/landscape --profile spread
    """
    with exit_codes():
        for file in files:
            documents = read_files([file])
            if is_landscape(documents) or not is_fleet(documents):
                _simulate_shoots(file, documents, _Scheduled(strategy, profile), output)
            if is_fleet(documents):
                _simulate_placements(file, documents, output)


class _Scheduled(NamedTuple):
    """Options of the command line that decide how shoots are scheduled."""

    strategy: Strategy | None
    profile: str | None


def _simulate_shoots(file: Path, documents: Sequence[Document], wanted: _Scheduled, output: Format) -> None:
    from gardenbus.cli.simulate.profiles import profiles_for  # noqa: PLC0415  as below
    from gardenbus.cli.simulate.ready_seeds import strategy_in, with_ready_seeds  # noqa: PLC0415  files of placements need none
    from gardenbus.cli.simulate.scheduling import simulate  # noqa: PLC0415  as above
    from gardenbus.scheduling.installed_filters import load_filters  # noqa: PLC0415  as above

    try:
        filters = load_filters()
    except SettingsInvalid as error:
        print_error(error.message)
        raise typer.Exit(Exit.USAGE) from error
    chosen = wanted.strategy or strategy_in(documents) or Strategy.SAME_REGION
    profiles = profiles_for(wanted.profile, documents, [each.name for each in filters], str(chosen))
    placements = simulate(with_ready_seeds(documents), str(chosen), filters, profiles=profiles)
    _print_placements(file, placements, output)


def _simulate_placements(file: Path, documents: Sequence[Document], output: Format) -> None:
    from gardenbus.cli.simulate.placements import simulate  # noqa: PLC0415  as above
    from gardenbus.cli.simulate.ready_members import with_ready_members  # noqa: PLC0415  files of shoots need none of it

    entries = simulate(with_ready_members(documents))
    if output is Format.YAML:
        show_lines(["---"])
        show_document(entries, output)
    elif output is Format.JSON:
        show_document(entries, Format.JSON)
    elif output is Format.NAME:
        show_lines(
            [f"{entry['placement']} {cluster}" for entry in entries for cluster in _selected_clusters(entry) or ["-"]]
        )
    else:
        fulfilled = sum(bool(entry["fulfilled"]) for entry in entries)
        show_lines([f"{file}: {fulfilled} of {len(entries)} placements fulfilled", ""])
        for entry in entries:
            show_lines([summary(entry)])
            show_decisions(entry["decisions"])


def _selected_clusters(entry: dict[str, Any]) -> list[str]:
    return [each["cluster"] for each in entry["decisions"] if each["selected"]]


def show_decisions(decisions: Sequence[dict[str, Any]], *, show_all: bool = False) -> None:
    """Print which clusters were taken, and why the others were not."""
    table = new_table(*COLUMNS[:-1], folded=COLUMNS[-1])
    for row in decision_rows(decisions, show_all=show_all):
        table.add_row(*map(Text, row))
    if decisions:
        show_rows(table)
    show_lines([""])


def _print_placements(file: Path, placements: "list[SimulatedAssignment]", output: Format) -> None:
    if output in PROGRAMS:
        landscape = msgspec.to_builtins({"landscape": str(file), "placements": placements})
        if output is Format.YAML:
            show_lines(["---"])
            show_document(landscape, output)
        else:
            show_document(landscape, Format.JSON)
        return
    if output is Format.NAME:
        show_lines([f"{placement.shoot} {placement.seed or '-'}" for placement in placements])
        return
    placed = sum(placement.seed is not None for placement in placements)
    show_lines([f"{file}: {placed} of {len(placements)} placed"])
    table = new_table("SHOOT", "SEED", folded="WHY NOT")
    shorten = full_reason if output is Format.WIDE else brief_reason
    for placement in placements:
        table.add_row(placement.shoot, placement.seed or "<none>", Text(shorten(placement.message or "")))
    if placements:
        show_rows(table)
    show_lines([""])
