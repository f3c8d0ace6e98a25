"""`events`, `watch`: what happened, and what happens."""

import sys
from datetime import UTC, datetime
from typing import Annotated

import msgspec
import typer

from gardenbus.cli.client import ApiClient
from gardenbus.cli.commands.describing import events_about
from gardenbus.cli.commands.naming import Meant, meant
from gardenbus.cli.commands.options import Directory, Namespace, NatsUrl, Output, Prefix, asked
from gardenbus.cli.documents import as_mapping
from gardenbus.cli.output import Format, errors, exit_codes, show_document, show_lines, show_rows
from gardenbus.cli.rows import condition, shoot_row
from gardenbus.cli.tables import Context, objects_table
from gardenbus.common.ports.bus import Delivered, ReplayDone
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.keys import Header, ObjectKey

OptionalWords = Annotated[
    list[str] | None, typer.Argument(help="KIND, KIND NAME or KIND/NAME", metavar="[KIND [NAME]]")
]


def events(
    words: OptionalWords = None,
    *,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
    directory: Directory = None,
    nats_url: NatsUrl = None,
    prefix: Prefix = None,
) -> None:
    """Show the Events of the last 24 hours, the newest last."""
    with exit_codes():
        wanted = meant(words) if words else None

    async def work(api: ApiClient) -> list[Document]:
        return await api.items(f"event.{namespace}" if namespace else "event")

    found = asked(work, directory, nats_url, prefix)
    if wanted is not None:
        found = _of(found, wanted)
    if output is Format.NAME:
        show_lines([str(as_mapping(event.get("metadata")).get("name")) for event in found])
    elif output in (Format.JSON, Format.YAML):
        show_document({"apiVersion": "v1", "kind": "List", "items": found}, output)
    elif found:
        show_rows(objects_table("event", found, Context(datetime.now(UTC), {}), wide=output is Format.WIDE))
    else:
        errors.print("no Events in the last 24 hours")


def _of(found: list[Document], wanted: Meant) -> list[Document]:
    if wanted.names:
        return [
            event
            for name in wanted.names
            for event in events_about(found, wanted.kind, {"metadata": {"name": name.rpartition("/")[2]}})
        ]
    return [event for event in found if str(as_mapping(event.get("involvedObject")).get("kind")).lower() == wanted.kind]


def watch(  # noqa: PLR0913 - one parameter an option
    words: OptionalWords = None,
    *,
    namespace: Namespace = None,
    initial: Annotated[bool, typer.Option("--initial", help="Show what is there first.")] = False,
    output: Output = Format.TABLE,
    directory: Directory = None,
    nats_url: NatsUrl = None,
    prefix: Prefix = None,
) -> None:
    """Show changes of objects as they are announced; Ctrl-C ends it."""
    with exit_codes():
        wanted = meant(words) if words else None

    async def work(api: ApiClient) -> None:
        stream = api.subjects.stream("OBJECTS")
        filters = [api.subjects.changed_kind(wanted.kind if wanted else "*")]
        position = await api.bus.position(stream)
        start = None if initial else position.sequence
        async with api.bus.follow(stream, filters, after_sequence=start, last_per_subject=initial) as follower:
            async for event in follower:
                if isinstance(event, Delivered) and event.marker is None:
                    _show_change(event, api.subjects.prefix, wanted, namespace, output)
                elif not isinstance(event, ReplayDone | Delivered):
                    errors.print("the watch was cut and goes on; some changes may be shown again", style="yellow")

    asked(work, directory, nats_url, prefix)


def _show_change(event: Delivered, prefix: str, wanted: Meant | None, namespace: str | None, output: Format) -> None:
    key = ObjectKey.from_tail(event.subject.removeprefix(f"{prefix}.changed."))
    if namespace is not None and key.namespace != namespace:
        return
    if wanted is not None and wanted.names and key.name not in wanted.names:
        return
    line = change_line(key, event, output)
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def change_line(key: ObjectKey, event: Delivered, output: Format) -> str:
    """One change in one line: time, verb, object, version, and where it stands."""
    verb = event.headers.get(Header.VERB, "modified")
    if output in (Format.JSON, Format.YAML):
        body = msgspec.Raw(event.body) if event.body else None
        change = {"verb": verb, "kind": key.kind, "namespace": key.namespace, "name": key.name, "object": body}
        return msgspec.json.encode(change).decode()
    if output is Format.NAME:
        return f"{key.kind}/{key.name}"
    version = event.headers.get(Header.VERSION, "")
    standing = _standing(key, event.body) if verb != "deleted" else ""
    return f"{event.at.astimezone():%H:%M:%S}  {verb:<8}  {key!s:<44} {version:>10}  {standing}".rstrip()


def _standing(key: ObjectKey, body: bytes) -> str:
    if key.kind not in ("shoot", "seed"):
        return ""
    try:
        document = msgspec.json.decode(body, type=dict[str, object])
    except msgspec.MsgspecError:
        return ""
    if key.kind == "seed":
        return f"GardenletReady {condition(document, 'GardenletReady').get('status') or '-'}"
    row = shoot_row(document)
    return f"seed {row.seed or '-'}  {row.operation} {row.operation_state} {row.progress}%"
