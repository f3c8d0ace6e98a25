"""`recovery`: the seeds that a restored store waits for, and an operator's word to go on without some."""

from typing import Annotated, Any

import typer

from gardenbus.cli import completions
from gardenbus.cli.client.api import ApiClient, api_error
from gardenbus.cli.commands.options import LandscapeOptions, run_with_client
from gardenbus.cli.output.console import show_lines
from gardenbus.common.api.document import encode
from gardenbus.common.ports.recovery import QUERIED

Without = Annotated[
    list[str] | None,
    typer.Option(
        "--without",
        help="Wait for this seed no longer; may be repeated. What it runs may be placed elsewhere then.",
        metavar="SEED",
        autocompletion=completions.seeds,
    ),
]


def recovery(*, without: Without = None, landscape: LandscapeOptions) -> None:
    """Show which seeds a restored store waits for, or let the landscape go on without some.

    Until all seeds have reported what they run, shoots that were ordered before are not placed, none moves, and no
    seed is removed. Give up a seed only if nothing runs on it any more, or what runs there may be built anew elsewhere.

    Example: gardenbus recovery --without aws-cork
    """

    async def work(api: ApiClient) -> list[str]:
        if without:
            response = await api.request("proceed", encode({"without": without}))
            if not response.ok:
                raise api_error(response.error)
            return lines_of(response.result["recovery"])
        return lines_of((await api.call("recovery"))["recovery"])

    show_lines(run_with_client(work, *landscape))


def lines_of(found: dict[str, Any] | None) -> list[str]:
    """The recovery for people."""
    if found is None:
        return ["no recovery: the store has not gone back, or all seeds have reported what they run"]
    lines = [f"since {found['beganAt']}: {found['cause']}"]
    for seed, state in sorted(found["responses"].items()):
        lines.append(f"{seed}: {state}" if state == QUERIED else f"{seed}: without it, by {state}")
    lines += [f"{seed}: silent" for seed in found["silent"]]
    if not found["silent"] and not found["leasePeriodPassed"]:
        lines.append("one lease period has not passed yet")
    return lines
