"""`explain placement`: why a placement is on which clusters, and what each binding waits for."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.text import Text

from gardenbus.cli.client.api import ApiClient
from gardenbus.cli.commands.describe import condition_lines
from gardenbus.cli.commands.simulate_files import show_decisions
from gardenbus.cli.fleet.explanation import encoded, explanation
from gardenbus.cli.fleet.placement_state import PlacementArg, get_placement, read_placement_state
from gardenbus.cli.manifests.files import as_mapping
from gardenbus.cli.output.console import counted, new_table, show_lines, show_rows
from gardenbus.common.api.document import Document

BINDING_COLUMNS = ("CLUSTER", "STATE", "RESOURCES", "AVAILABLE", "WAITS FOR")


async def explain_placement(api: ApiClient, wanted: PlacementArg, namespace: str | None) -> Document:
    """Explain a placement. Raises ApiError, NotFound, BadRequest, Unavailable, InvalidResource."""
    placement = await get_placement(api, wanted, namespace)
    state = await read_placement_state(api, placement)
    return encoded(explanation(state, datetime.now(UTC).timestamp()))


def show_placement(response: Document, now: datetime, *, show_all: bool) -> None:
    """Print the explanation of a placement."""
    show_lines([*headline(response)])
    decisions: Sequence[dict[str, Any]] = response["decisions"]
    if decisions:
        show_lines(["", f"DECIDED (policy snapshot {response['snapshot']})"])
        show_decisions(decisions, show_all=show_all)
        hidden = int(response["clusters"]) - len(decisions)
        if hidden > 0:
            show_lines([f"  and {counted(hidden, 'cluster')} more that the status does not list; `simulate` does", ""])
    show_lines(["BINDINGS"])
    bindings: Sequence[Mapping[str, Any]] = response["bindings"]
    if bindings:
        _show_bindings(bindings)
    show_lines([f"  {line}" for line in rollout_lines(response)])
    if conditions := condition_lines(response["conditions"], now):
        show_lines(["", "CONDITIONS", *(f"  {line}".rstrip() for line in conditions)])
    show_lines(["", "RECONCILED AGAIN when", *(f"  - {each}" for each in response["looksAgainWhen"])])


def headline(response: Document) -> Iterable[str]:
    """Policy of a placement, and its decision."""
    yield f"{response['kind']} {response['placement']}: {response['policy']}"
    fulfilled = response["fulfilled"]
    outcome = "waits" if fulfilled is None else "fulfilled" if fulfilled else "NOT fulfilled"
    yield f"  {outcome}: {response['message']}"
    if response["selected"] == 0:
        yield "  it takes NOTHING along: there is no object that its resourceSelectors name"
    if response["rollout"] is None:
        return
    if response["snapshot"] is None:
        yield "  its policy has no snapshot yet"
    elif not response["isCurrent"] and fulfilled is not None:
        yield "  that was decided of an earlier generation; the present one is about to be"


def rollout_lines(response: Document) -> Iterable[str]:
    """Pace of the rollout, and the time of the next reconcile."""
    if not response["bindings"]:
        yield "none: it is on no cluster"
    if response["rollout"] is None:
        return
    rollout = as_mapping(response["rollout"])
    message = f": {rollout['message']}" if rollout["message"] else ""
    limits = f"maxUnavailable {rollout['maxUnavailable']}, maxSurge {rollout['maxSurge']}"
    yield f"{rollout['strategy']}, {limits}{message}"
    if rollout["looksAgainInSeconds"] is not None:
        yield f"reconciled again in {float(rollout['looksAgainInSeconds']):.0f}s, or at an event before that"


def _show_bindings(bindings: Sequence[Mapping[str, Any]]) -> None:
    table = new_table(*BINDING_COLUMNS[:-1], folded=BINDING_COLUMNS[-1])
    for each in bindings:
        state = str(each["state"])
        if each["previousState"]:
            state += f" (was {each['previousState']})"
        values = (
            str(each["cluster"]),
            state,
            str(each["resourceSnapshot"] or ""),
            str(as_mapping(each["conditions"]).get("Available") or ""),
            str(each["waitsFor"]),
        )
        table.add_row(*map(Text, values))
    show_rows(table)
