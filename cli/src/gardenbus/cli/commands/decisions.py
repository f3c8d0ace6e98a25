"""`explain`, `simulate`: decisions and where they led."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from rich import box
from rich.table import Table
from rich.text import Text

from gardenbus.cli.client import ApiClient
from gardenbus.cli.commands.naming import found, meant
from gardenbus.cli.commands.options import Directory, Namespace, NatsUrl, Output, Prefix, asked
from gardenbus.cli.documents import as_mapping, read_files
from gardenbus.cli.output import (
    Exit,
    Format,
    exit_codes,
    say_error,
    show_document,
    show_lines,
    show_rows,
)
from gardenbus.common.errors import BadRequest, SettingsInvalid

if TYPE_CHECKING:
    from gardenbus.scheduling.simulate import SimulatedPlacement


class Strategy(StrEnum):
    """How candidates are chosen among the seeds that fit."""

    SAME_REGION = "SameRegion"
    MINIMAL_DISTANCE = "MinimalDistance"


def explain(
    words: Annotated[list[str], typer.Argument(help="The shoot: [shoot] NAME, or NAMESPACE/NAME", metavar="SHOOT")],
    *,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
    directory: Directory = None,
    nats_url: NatsUrl = None,
    prefix: Prefix = None,
) -> None:
    """Say why a shoot is where it is, or waits: every seed with its rank or the rule against it."""
    name = words[-1]
    with exit_codes():
        if len(words) > 2 or (len(words) == 2 and meant(words[:1]).kind != "shoot"):  # noqa: PLR2004
            raise BadRequest("only shoots are explained: [shoot] NAME, or NAMESPACE/NAME")

    async def work(api: ApiClient) -> Any:
        shoot = await found(api, meant(["shoot", name.removeprefix("shoot/")]), name.removeprefix("shoot/"), namespace)
        metadata = as_mapping(shoot.get("metadata"))
        return await api.ask(f"explain.shoot.{metadata.get('namespace')}.{metadata.get('name')}")

    answer = as_mapping(asked(work, directory, nats_url, prefix))
    if output in (Format.JSON, Format.YAML):
        show_document(answer, output)
        return
    if output is Format.NAME:
        show_lines([str(answer.get("seed") or "")])
        return
    _print_explanation(answer)


def _print_explanation(answer: dict[str, Any]) -> None:
    where = f"is on {answer['seed']}" if answer.get("seed") else "waits for a seed"
    show_lines([f"shoot {answer.get('shoot')} {where} (scheduler: {answer.get('schedulerName')})"])
    if answer.get("message"):
        show_lines([f"  since {answer.get('since')}: {answer['message']}"])
    considered = as_mapping(answer.get("considered"))
    if not considered:
        show_lines([f"  {answer.get('unanswered')}, so the seeds are not listed"])
        return
    if not answer.get("seed") and considered.get("skipped"):
        show_lines([f"  its scheduler does not place it: {considered['skipped']}"])
    elif not answer.get("seed") and considered.get("wouldChoose"):
        show_lines([f"  now it would be placed on {considered['wouldChoose']}"])
    show_lines([_funnel(considered)])
    show_lines([f"  strategy {considered.get('strategy')}", ""])
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in ("SEED", "PLACE", "DISTANCE", "USED"):
        table.add_column(column, no_wrap=True)
    table.add_column("WHY NOT", overflow="fold")
    for ranked in considered.get("ranking") or ():
        capacity = ranked.get("capacity")
        used = f"{ranked.get('usage')}{'' if capacity is None else f'/{capacity}'}"
        distance = ranked.get("distance")
        table.add_row(ranked.get("seed"), str(ranked.get("place")), "" if distance is None else str(distance), used, "")
    for rejection in considered.get("rejections") or ():
        table.add_row(rejection.get("seed"), "", "", "", Text(f"{rejection.get('rule')}: {rejection.get('detail')}"))
    show_rows(table)


def _funnel(considered: dict[str, Any]) -> str:
    """`9 seeds: 8 after usable, 3 after provider, 1 after strategy`."""
    steps = [as_mapping(step) for step in considered.get("funnel") or ()]
    seeds = len(considered.get("ranking") or ()) + len(considered.get("rejections") or ())
    rules = ", ".join(f"{step.get('left')} after {step.get('rule')}" for step in steps)
    return f"  {seeds} seeds{f': {rules}' if rules else ', all fit'}"


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
