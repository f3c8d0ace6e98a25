"""`explain placement`: why a placement is on which clusters, and what each binding waits for."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from gardenbus.cli.client import ApiClient
from gardenbus.cli.commands.decisions import show_decisions
from gardenbus.cli.commands.describing import condition_lines
from gardenbus.cli.documents import as_mapping
from gardenbus.cli.output import counted, show_lines, show_rows
from gardenbus.cli.placements.explaining import encoded, explanation
from gardenbus.cli.placements.standing import MeantPlacement, found_placement, standing_of
from gardenbus.common.resources.document import Document

BINDING_COLUMNS = ("CLUSTER", "STATE", "RESOURCES", "AVAILABLE", "WAITS FOR")


async def placement_answer(api: ApiClient, wanted: MeantPlacement, namespace: str | None) -> Document:
    """What is to be said of a placement. Raises RefusedByApi, NotFound, BadRequest, Unavailable, InvalidResource."""
    placement = await found_placement(api, wanted, namespace)
    standing = await standing_of(api, placement)
    return encoded(explanation(standing, datetime.now(UTC).timestamp()))


def show_placement(answer: Document, now: datetime, *, show_all: bool) -> None:
    """Print what is answered about a placement."""
    show_lines([*headline(answer)])
    decisions: Sequence[dict[str, Any]] = answer["decisions"]
    if decisions:
        show_lines(["", f"DECIDED (policy snapshot {answer['snapshot']})"])
        show_decisions(decisions, show_all=show_all)
        untold = int(answer["clusters"]) - len(decisions)
        if untold > 0:
            show_lines([f"  and {counted(untold, 'cluster')} more that a status does not tell of; `simulate` does", ""])
    show_lines(["BINDINGS"])
    bindings: Sequence[Mapping[str, Any]] = answer["bindings"]
    if bindings:
        _show_bindings(bindings)
    show_lines([f"  {line}" for line in rollout_lines(answer)])
    if conditions := condition_lines(answer["conditions"], now):
        show_lines(["", "CONDITIONS", *(f"  {line}".rstrip() for line in conditions)])
    show_lines(["", "LOOKED AT AGAIN when", *(f"  - {each}" for each in answer["looksAgainWhen"])])


def headline(answer: Document) -> Iterable[str]:
    """What is wanted, and whether it was found."""
    yield f"{answer['kind']} {answer['placement']}: {answer['policy']}"
    fulfilled = answer["fulfilled"]
    verdict = "waits" if fulfilled is None else "fulfilled" if fulfilled else "NOT fulfilled"
    yield f"  {verdict}: {answer['message']}"
    if answer["selected"] == 0:
        yield "  it takes NOTHING along: there is no object that its resourceSelectors name"
    if answer["rollout"] is None:
        return
    if answer["snapshot"] is None:
        yield "  its policy has no snapshot yet"
    elif not answer["isCurrent"] and fulfilled is not None:
        yield "  that was decided of an earlier generation; the present one is about to be"


def rollout_lines(answer: Document) -> Iterable[str]:
    """How fast it goes, and when there is another look."""
    if not answer["bindings"]:
        yield "none: it is on no cluster"
    if answer["rollout"] is None:
        return
    rollout = as_mapping(answer["rollout"])
    message = f": {rollout['message']}" if rollout["message"] else ""
    limits = f"maxUnavailable {rollout['maxUnavailable']}, maxSurge {rollout['maxSurge']}"
    yield f"{rollout['strategy']}, {limits}{message}"
    if rollout["looksAgainInSeconds"] is not None:
        yield f"time alone makes it look again in {float(rollout['looksAgainInSeconds']):.0f}s, any news before that"


def _show_bindings(bindings: Sequence[Mapping[str, Any]]) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in BINDING_COLUMNS[:-1]:
        table.add_column(column, no_wrap=True)
    table.add_column(BINDING_COLUMNS[-1], overflow="fold")
    for each in bindings:
        state = str(each["state"])
        if each["previousState"]:
            state += f" (was {each['previousState']})"
        cells = (
            str(each["cluster"]),
            state,
            str(each["resourceSnapshot"] or ""),
            str(as_mapping(each["conditions"]).get("Available") or ""),
            str(each["waitsFor"]),
        )
        table.add_row(*map(Text, cells))
    show_rows(table)
