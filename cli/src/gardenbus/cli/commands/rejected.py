"""`rejected`: what could not be taken, why, and sending it again."""

import asyncio
import os
import shlex
import subprocess
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich import box
from rich.table import Table
from rich.text import Text

from gardenbus.cli import streams
from gardenbus.cli.cells import age_of
from gardenbus.cli.client import ApiClient
from gardenbus.cli.commands.options import Directory, NatsUrl, Output, Prefix, asked
from gardenbus.cli.lazy import HELP_OPTIONS, help_of
from gardenbus.cli.output import Exit, Format, errors, say_error, show_document, show_lines, show_rows
from gardenbus.cli.refused_messages import RefusedMessage, as_text, body_of, refused_message, replay_id
from gardenbus.common.errors import BadRequest, NotFound, Unavailable
from gardenbus.common.ports.bus import Delivered, ReplayDone

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

    async def work(api: ApiClient) -> list[RefusedMessage]:
        position = await api.bus.position(api.subjects.stream("REJECTED"))
        return await _after(api, max(0, position.sequence - limit))

    found = asked(work, directory, nats_url, prefix)
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
    found = asked(lambda api: _one(api, identity), directory, nats_url, prefix)
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

    if code := asked(work, directory, nats_url, prefix):
        raise typer.Exit(code)


for command in (show, replay):
    rejected.command(command.__name__, help=help_of(command))(command)


def _table(found: list[RefusedMessage]) -> Table:
    now = datetime.now(UTC)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for title in ("ID", "AGE", "SUBJECT", "OBJECT", "REASON", "FIELD"):
        table.add_column(title, no_wrap=True)
    table.add_column("MESSAGE", overflow="fold")
    for each in found:
        fields = ",".join(each.fields)
        message = Text(" ".join(each.message.split()))
        table.add_row(
            str(each.id), age_of(each.at.isoformat(), now), each.subject, each.object, each.reason, fields, message
        )
    return table


async def _after(api: ApiClient, sequence: int) -> list[RefusedMessage]:
    """All that was rejected after a place in the stream."""
    found: list[RefusedMessage] = []
    stream = api.subjects.stream("REJECTED")
    async with api.bus.follow(stream, [api.subjects.rejected], after_sequence=sequence) as follower:
        async for event in follower:
            if isinstance(event, Delivered):
                found.append(refused_message(event.sequence, event.at, event.headers, event.body))
            elif isinstance(event, ReplayDone):
                break
    return found


async def _one(api: ApiClient, identity: int) -> RefusedMessage:
    message = await streams.stored(api, api.subjects.stream("REJECTED"), identity)
    if message is None:
        raise NotFound(f"nothing that was rejected has the number {identity}: see gardenbus rejected")
    return refused_message(message.sequence, message.at, message.headers, message.body)


async def _replayed(api: ApiClient, refused: RefusedMessage, *, is_edited: bool) -> Exit:
    body = refused.body
    if refused.is_queued_work:
        await api.bus.request(refused.subject, b"")
        show_lines([f"{refused.id}: {refused.subject} is queued again"])
        return Exit.DONE
    if is_edited:
        body = edited(refused)
    elif refused.is_cut:
        raise BadRequest(f"{refused.id}: only its first {len(body)} bytes were kept: send the original anew")
    headers = {_MESSAGE_ID: replay_id(refused, body)}
    answer = msgspec.json.decode(await api.bus.request(refused.subject, body, headers=headers), type=dict[str, Any])
    if "seq" not in answer:
        raise Unavailable(f"{refused.id}: {refused.subject} does not keep it: {answer.get('error')}")
    if answer.get("duplicate"):
        errors.print(f"{refused.id}: was sent again already; it is not taken twice")
    return await _outcome(api, refused, str(answer["stream"]), int(answer["seq"]))


async def _outcome(api: ApiClient, refused: RefusedMessage, stream: str, sequence: int) -> Exit:
    """Wait until what was sent has been taken from its stream, and see whether it was refused again."""
    deadline = asyncio.get_running_loop().time() + OUTCOME_SECONDS
    sent = await streams.stored(api, stream, sequence)
    while sent is not None and await streams.stored(api, stream, sequence) is not None:
        if asyncio.get_running_loop().time() > deadline:
            say_error(f"{refused.id}: it was sent (message {sequence} of {stream}), and nobody has taken it yet")
            return Exit.OUT_OF_REACH
        await asyncio.sleep(POLL_SECONDS)
    for again in await _after(api, refused.id):
        if (
            again.subject == refused.subject
            and (sent is None or again.at >= sent.at)
            and again.object == refused.object
        ):
            say_error(f"{refused.id}: refused again, as {again.id}: {again.reason}: {again.message}")
            return Exit.REFUSED
    show_lines([f"{refused.id}: taken ({refused.object or refused.subject})"])
    return Exit.DONE


def edited(refused: RefusedMessage) -> bytes:
    """Its body as somebody changed it in their editor. Raises BadRequest when it was left as it is, or is no YAML."""
    before = as_text(refused)
    why = "".join(f"# {line}\n" for line in (f"{refused.subject}: {refused.reason}", refused.message))
    with tempfile.TemporaryDirectory(prefix="gardenbus-") as directory:
        file = Path(directory) / f"rejected-{refused.id}.yaml"
        file.write_text(why + before, encoding="utf-8")
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
        try:
            subprocess.run([*shlex.split(editor), str(file)], check=True)  # noqa: S603 - what the operator chose
        except (OSError, subprocess.CalledProcessError) as error:
            raise BadRequest(f"the editor ({editor}) failed, nothing is sent: {error}") from error
        after = file.read_text(encoding="utf-8")
    if after == why + before:
        raise BadRequest(f"{refused.id}: nothing was changed, nothing is sent")
    try:
        return body_of(after)
    except ValueError as error:
        raise BadRequest(f"{refused.id}: {error}") from error
