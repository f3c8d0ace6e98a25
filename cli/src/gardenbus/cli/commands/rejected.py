"""`rejected`: what could not be taken, why, and sending it again."""

import asyncio
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.table import Table
from rich.text import Text

from gardenbus.cli.client import jetstream
from gardenbus.cli.client.api import ApiClient
from gardenbus.cli.client.rejected_messages import RejectedMessage, as_text, body_of, read_rejected_message, replay_id
from gardenbus.cli.commands.editor import open_editor
from gardenbus.cli.commands.options import Directory, NatsUrl, Output, Prefix, run_with_client
from gardenbus.cli.lazy import HELP_OPTIONS, help_of
from gardenbus.cli.output.columns import age_of
from gardenbus.cli.output.console import (
    Exit,
    Format,
    errors,
    new_table,
    print_error,
    show_document,
    show_lines,
    show_rows,
)
from gardenbus.common.errors import BadRequest, NotFound, Unavailable
from gardenbus.common.ports.bus import ReplayDone, StreamMessage

OUTCOME_SECONDS = 15.0
POLL_SECONDS = 0.1
_MESSAGE_ID = "Nats-Msg-Id"

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
    directory: Directory = None,
    nats_url: NatsUrl = None,
    prefix: Prefix = None,
) -> None:
    """Show what could not be taken within the last 7 days: when, what, why; the newest last.

    Example: gardenbus rejected --limit 10
    """
    if context.invoked_subcommand is not None:
        return

    async def work(api: ApiClient) -> list[RejectedMessage]:
        position = await api.bus.position(api.subjects.stream("REJECTED"))
        return await _after(api, max(0, position.sequence - limit))

    found = run_with_client(work, directory, nats_url, prefix)
    if output in (Format.JSON, Format.YAML):
        show_document({"items": [dict(each.row) for each in found]}, output)
    elif output is Format.NAME:
        show_lines([str(each.id) for each in found])
    elif found:
        show_rows(_table(found))
    else:
        errors.print("nothing was rejected in the last 7 days")


def show(
    identity: Annotated[int, typer.Argument(help="Its number in `gardenbus rejected`.", metavar="ID")],
    *,
    output: Output = Format.TABLE,
    directory: Directory = None,
    nats_url: NatsUrl = None,
    prefix: Prefix = None,
) -> None:
    """Show one message that could not be taken, whole, as far as it was kept (64 KB).

    Example: gardenbus rejected show 3
    """
    found = run_with_client(lambda api: _one(api, identity), directory, nats_url, prefix)
    if output in (Format.JSON, Format.YAML):
        show_document({**found.row, "sha256": found.digest, "body": found.document or as_text(found)}, output)
        return
    if output is Format.NAME:
        show_lines([str(found.id)])
        return
    lines = [
        f"ID:       {found.id}",
        f"When:     {found.at.astimezone():%Y-%m-%d %H:%M:%S}",
        f"Subject:  {found.subject}",
        f"Object:   {found.object or '-'}",
        f"Reason:   {found.reason or '-'}",
        *(f"Field:    {field}" for field in found.fields),
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
    directory: Directory = None,
    nats_url: NatsUrl = None,
    prefix: Prefix = None,
) -> None:
    """Send messages again to where they were sent, each once, and say what became of them.

    Sent twice within two minutes, the second is recognised and not taken again. Ends with 1 when one is refused again.

    Example: gardenbus rejected replay 3 --edit
    """

    async def work(api: ApiClient) -> Exit:
        worst = Exit.DONE
        for identity in identities:
            worst = max(worst, await _replayed(api, await _one(api, identity), is_edited=edit))
        return worst

    if code := run_with_client(work, directory, nats_url, prefix):
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


async def _after(api: ApiClient, sequence: int) -> list[RejectedMessage]:
    """All that was rejected after a place in the stream."""
    found: list[RejectedMessage] = []
    stream = api.subjects.stream("REJECTED")
    async with api.bus.follow(stream, [api.subjects.rejected], after_sequence=sequence) as follower:
        async for event in follower:
            if isinstance(event, StreamMessage):
                found.append(read_rejected_message(event.sequence, event.at, event.headers, event.body))
            elif isinstance(event, ReplayDone):
                break
    return found


async def _one(api: ApiClient, identity: int) -> RejectedMessage:
    message = await jetstream.stored(api, api.subjects.stream("REJECTED"), identity)
    if message is None:
        raise NotFound(f"nothing that was rejected has the number {identity}: see gardenbus rejected")
    return read_rejected_message(message.sequence, message.at, message.headers, message.body)


async def _replayed(api: ApiClient, original: RejectedMessage, *, is_edited: bool) -> Exit:
    body = original.body
    if original.is_queued_work:
        await api.bus.request(original.subject, b"")
        show_lines([f"{original.id}: {original.subject} is queued again"])
        return Exit.DONE
    if is_edited:
        body = edited(original)
    elif original.is_cut:
        raise BadRequest(f"{original.id}: only its first {len(body)} bytes were kept: send the original anew")
    headers = {_MESSAGE_ID: replay_id(original, body)}
    response = msgspec.json.decode(await api.bus.request(original.subject, body, headers=headers), type=dict[str, Any])
    if "seq" not in response:
        raise Unavailable(f"{original.id}: {original.subject} does not keep it: {response.get('error')}")
    if response.get("duplicate"):
        errors.print(f"{original.id}: was sent again already; it is not taken twice")
    return await _outcome(api, original, str(response["stream"]), int(response["seq"]))


async def _outcome(api: ApiClient, original: RejectedMessage, stream: str, sequence: int) -> Exit:
    """Wait until the replay has left its stream; returns its new rejection, if there is one."""
    deadline = asyncio.get_running_loop().time() + OUTCOME_SECONDS
    sent = await jetstream.stored(api, stream, sequence)
    while sent is not None and await jetstream.stored(api, stream, sequence) is not None:
        if asyncio.get_running_loop().time() > deadline:
            print_error(f"{original.id}: it was sent (message {sequence} of {stream}), and nobody has taken it yet")
            return Exit.OUT_OF_REACH
        await asyncio.sleep(POLL_SECONDS)
    for repeated in await _after(api, original.id):
        if (
            repeated.subject == original.subject
            and (sent is None or repeated.at >= sent.at)
            and repeated.object == original.object
        ):
            print_error(f"{original.id}: refused again, as {repeated.id}: {repeated.reason}: {repeated.message}")
            return Exit.FAILED
    show_lines([f"{original.id}: taken ({original.object or original.subject})"])
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
