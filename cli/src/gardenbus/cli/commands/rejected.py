"""`rejected`: rejected messages, why, and sending them again."""

import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from gardenbus.cli.client.api import ApiClient
from gardenbus.cli.commands.editor import open_editor
from gardenbus.cli.commands.options import LandscapeOptions, Output, run_with_client
from gardenbus.cli.lazy import HELP_OPTIONS, help_of
from gardenbus.cli.output.columns import age_of
from gardenbus.cli.output.console import Exit, Format, errors, new_table, print_error, printed, show_lines, show_rows
from gardenbus.common.errors import BadRequest
from gardenbus.diagnostics.rejected_messages import RejectedMessage, as_text, body_of
from gardenbus.diagnostics.replay import rejected_after, rejected_message, replay_message

Ids = Annotated[list[int], typer.Argument(help="Numbers that `gardenbus rejected` shows.", metavar="ID…")]

rejected = typer.Typer(
    invoke_without_command=True,
    add_completion=False,
    context_settings=HELP_OPTIONS,
    subcommand_metavar="[show|replay] [ARGS]…",
)


@rejected.callback()
def listing(
    context: typer.Context,
    *,
    limit: Annotated[int, typer.Option("--limit", min=1, help="The newest so many.")] = 50,
    output: Output = Format.TABLE,
    landscape: LandscapeOptions,
) -> None:
    """Show the messages rejected within the last 7 days: when, what, why; the newest last.

    Example: gardenbus rejected --limit 10
    """
    if context.invoked_subcommand is not None:
        return

    async def work(api: ApiClient) -> list[RejectedMessage]:
        position = await api.bus.position(api.subjects.stream("REJECTED"))
        return await rejected_after(api, max(0, position.sequence - limit))

    found = run_with_client(work, *landscape)
    if printed(output, {"items": [dict(each.row) for each in found]}, [str(each.id) for each in found]):
        return
    if found:
        show_rows(_table(found))
    else:
        errors.print("nothing was rejected in the last 7 days")


def show(
    identity: Annotated[int, typer.Argument(help="Its number in `gardenbus rejected`.", metavar="ID")],
    *,
    output: Output = Format.TABLE,
    landscape: LandscapeOptions,
) -> None:
    """Show one rejected message, whole, as far as it was kept (64 KB).

    Example: gardenbus rejected show 3
    """
    found = run_with_client(lambda api: rejected_message(api, identity), *landscape)
    document = {**found.row, "sha256": found.digest, "body": found.document or as_text(found)}
    if printed(output, document, [str(found.id)]):
        return
    lines = [
        f"ID:       {found.id}",
        f"When:     {found.at.astimezone():%Y-%m-%d %H:%M:%S}",
        f"Subject:  {found.subject}",
        f"Object:   {found.object or '-'}",
        f"Reason:   {found.reason or '-'}",
        *(f"Field:    {field}" for field in found.fields),
        *([f"Log:      gardenbus logs --grep {found.reconcile_id}"] if found.reconcile_id else []),
        f"Message:  {found.message}",
        f"Kept:     {len(found.body)} bytes{', the rest is lost' if found.is_cut else ''}",
        "",
        as_text(found).rstrip(),
    ]
    show_lines(lines)


def replay(
    identities: Ids,
    *,
    edit: Annotated[bool, typer.Option("--edit", help="Change it in $EDITOR first.")] = False,
    landscape: LandscapeOptions,
) -> None:
    """Send messages again to where they were sent, and print the outcome.

    One that was rejected again less than two minutes ago is not sent once more. Ends with 1 when one is rejected again.

    Example: gardenbus rejected replay 3 --edit
    """

    async def work(api: ApiClient) -> Exit:
        worst = Exit.DONE
        for identity in identities:
            worst = max(worst, await _replayed(api, await rejected_message(api, identity), is_edited=edit))
        return worst

    if code := run_with_client(work, *landscape):
        raise typer.Exit(code)


for command in (show, replay):
    rejected.command(command.__name__, help=help_of(command))(command)


def _table(found: list[RejectedMessage]) -> Table:
    now = datetime.now(UTC)
    table = new_table("ID", "AGE", "SUBJECT", "OBJECT", "REASON", "FIELD", folded="MESSAGE")
    for each in found:
        fields = ",".join(each.fields)
        message = Text(" ".join(each.message.split()))
        table.add_row(
            str(each.id), age_of(each.at.isoformat(), now), each.subject, each.object, each.reason, fields, message
        )
    return table


async def _replayed(api: ApiClient, original: RejectedMessage, *, is_edited: bool) -> Exit:
    body = edited(original) if is_edited and not original.is_queued_work else original.body
    outcome = await replay_message(api, original, body)
    if outcome.is_duplicate:
        errors.print(f"{original.id}: the same was rejected again within two minutes; it is not sent once more")
    match outcome.state:
        case "queued":
            show_lines([f"{original.id}: {outcome.message}"])
        case "taken":
            show_lines([f"{original.id}: taken ({outcome.message})"])
        case "rejected":
            print_error(f"{original.id}: rejected again, as {outcome.repeated}: {outcome.message}")
            return Exit.FAILED
        case "sent":
            print_error(f"{original.id}: {outcome.message}")
            return Exit.OUT_OF_REACH
    return Exit.DONE


def edited(original: RejectedMessage) -> bytes:
    """Its body as somebody changed it in their editor. Raises BadRequest when it was left as it is, or is no YAML."""
    before = as_text(original)
    why = "".join(f"# {line}\n" for line in (f"{original.subject}: {original.reason}", original.message))
    with tempfile.TemporaryDirectory(prefix="gardenbus-") as directory:
        file = Path(directory) / f"rejected-{original.id}.yaml"
        file.write_text(why + before, encoding="utf-8")
        open_editor(file)
        after = file.read_text(encoding="utf-8")
    if after == why + before:
        raise BadRequest(f"{original.id}: nothing was changed, nothing is sent")
    try:
        return body_of(after)
    except ValueError as error:
        raise BadRequest(f"{original.id}: {error}") from error
