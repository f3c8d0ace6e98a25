"""`events`, `watch`: what happened, and what happens."""

from collections.abc import Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Annotated, NamedTuple

import msgspec
import typer

from gardenbus.cli import completions
from gardenbus.cli.client.api import ApiClient
from gardenbus.cli.client.following import follow, present_position
from gardenbus.cli.client.resource_args import ResourceArgs, parse_resource
from gardenbus.cli.client.summaries import summarize_shoot
from gardenbus.cli.client.watch import scopes_of
from gardenbus.cli.commands.options import (
    AllNamespaces,
    LandscapeOptions,
    Namespace,
    Output,
    check_namespaces,
    run_with_client,
)
from gardenbus.cli.manifests.files import as_mapping
from gardenbus.cli.output.columns import TableContext
from gardenbus.cli.output.console import (
    PROGRAMS,
    Format,
    errors,
    exit_codes,
    json_text,
    show_document,
    show_lines,
    show_rows,
)
from gardenbus.cli.output.printers import Printer, print_change, table_text
from gardenbus.cli.output.tables import objects_table, row_of, shown_columns
from gardenbus.cli.output.terminal import flush, write, write_document
from gardenbus.common.api.decoding import decode_json
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.rows import condition
from gardenbus.common.api.identity.readable import Readable
from gardenbus.common.api.keys import Header, ObjectKey
from gardenbus.common.api.kinds import CONFIDENTIAL, KINDS
from gardenbus.common.api.watches import WatchedKind
from gardenbus.common.errors import BadRequest
from gardenbus.common.ports.bus import ReplayDone, StreamMessage

EVENT_WIDTHS = (9, 7, 24, 32, 5, 0, 0)
"""Least widths of the columns of Events that come one by one."""

OptionalWords = Annotated[
    list[str] | None,
    typer.Argument(help="KIND, KIND NAME or KIND/NAME", metavar="[KIND [NAME]]", autocompletion=completions.objects),
]


def events(  # noqa: PLR0913 - one parameter an option
    words: OptionalWords = None,
    *,
    about: Annotated[str | None, typer.Option("--for", help="Only about this object.", metavar="KIND/NAME")] = None,
    types: Annotated[str, typer.Option("--types", help="Only of these types, as Warning.", metavar="TYPE,…")] = "",
    go_on: Annotated[bool, typer.Option("-w", "--watch", help="Go on with new ones, until Ctrl-C.")] = False,
    namespace: Namespace = None,
    all_namespaces: AllNamespaces = False,
    output: Output = Format.TABLE,
    landscape: LandscapeOptions,
) -> None:
    """Show the Events of the last 24 hours, the newest last.

    Examples:
    gardenbus events --for shoot/apollo -n garden-dev
    gardenbus events -w --types Warning
    """
    with exit_codes():
        check_namespaces(namespace, all_namespaces=all_namespaces)
        wanted = _meant_by(words, about)
        chosen = EventFilter(wanted, frozenset(filter(None, types.lower().split(","))))

    async def work(api: ApiClient) -> None:
        scopes = [WatchedKind("event", namespace)]
        start = await present_position(api, scopes) if go_on else None
        found = await api.items(f"event.{namespace}" if namespace else "event")
        _print_events([event for event in found if chosen.matches(event)], output, is_first=True, is_followed=go_on)
        if start is None:
            return
        async with aclosing(follow(api, scopes, start)) as following:
            async for message in following:
                if isinstance(message, StreamMessage) and message.marker is None and message.body:
                    event = decode_json(message.body, dict[str, object])
                    _print_events([event] if chosen.matches(event) else [], output, is_first=False, is_followed=True)

    run_with_client(work, *landscape)


class EventFilter(NamedTuple):
    """Filter of Events. `types` are in lower case; none: all."""

    wanted: ResourceArgs | None
    types: frozenset[str]

    def matches(self, event: Document) -> bool:
        """True when an Event passes."""
        if self.types and str(event.get("type")).lower() not in self.types:
            return False
        if self.wanted is None:
            return True
        about = as_mapping(event.get("involvedObject"))
        if str(about.get("kind")).lower() != self.wanted.kind:
            return False
        names = {name.rpartition("/")[2] for name in self.wanted.names}
        return not names or str(about.get("name")) in names


def _meant_by(words: list[str] | None, about: str | None) -> ResourceArgs | None:
    if words and about:
        raise BadRequest("KIND NAME or --for KIND/NAME, not both")
    if about is not None and "/" not in about:
        raise BadRequest(f"--for {about!r}: write KIND/NAME")
    return parse_resource(words or [about or ""]) if words or about else None


def _print_events(events: list[Document], output: Format, *, is_first: bool, is_followed: bool) -> None:
    if output is Format.NAME:
        show_lines([str(as_mapping(event.get("metadata")).get("name")) for event in events])
    elif output in PROGRAMS:
        if not is_followed:
            show_document({"apiVersion": "v1", "kind": "List", "items": events}, output)
        for event in events if is_followed else ():
            print_change(Printer(str(output)), event)
    elif is_followed:
        _print_event_rows(events, wide=output is Format.WIDE, headers=is_first)
    elif events:
        show_rows(objects_table("event", events, TableContext(datetime.now(UTC), {}), wide=output is Format.WIDE))
    else:
        errors.print("no Events in the last 24 hours")
    flush()


def _print_event_rows(events: list[Document], *, wide: bool, headers: bool) -> None:
    columns = shown_columns("event", wide=wide)
    now = TableContext(datetime.now(UTC), {})
    titles = [column.title for column in columns] if headers else None
    write(table_text(titles, [row_of(columns, event, now) for event in events], EVENT_WIDTHS[: len(columns)]))


def watch(
    words: OptionalWords = None,
    *,
    namespace: Namespace = None,
    all_namespaces: AllNamespaces = False,
    initial: Annotated[bool, typer.Option("--initial", help="Show what is there first.")] = False,
    output: Output = Format.TABLE,
    landscape: LandscapeOptions,
) -> None:
    """Show changes of objects as they are announced, a line each; Ctrl-C ends it.

    Without a kind these are all that there are, except Secrets, InternalSecrets and ShootStates.

    Example: gardenbus watch shoots -n garden-dev
    """
    with exit_codes():
        check_namespaces(namespace, all_namespaces=all_namespaces)
        wanted = parse_resource(words) if words else None

    async def work(api: ApiClient) -> None:
        if wanted and wanted.kind not in KINDS:
            await api.call(f"list.{wanted.kind}", {"limit": 1})  # which says what kinds there are
        scopes = scopes_of([wanted] if wanted else await _announced_kinds(api, namespace), namespace)
        start = None if initial else await present_position(api, scopes)
        async with aclosing(follow(api, scopes, start)) as following:
            async for event in following:
                if isinstance(event, StreamMessage) and event.marker is None:
                    _show_change(event, api.subjects.prefix, wanted, namespace, output)
                elif not isinstance(event, ReplayDone | StreamMessage):
                    errors.print("the watch was cut and goes on; some changes may be shown again", style="yellow")

    run_with_client(work, *landscape)


async def _announced_kinds(api: ApiClient, namespace: str | None) -> Sequence[ResourceArgs]:
    """Kinds that are not confidential: the registered ones, and what else is stored; of a person what they may read."""
    if api.user:
        found = msgspec.convert(await api.call("readable"), Readable)
        kinds = set(found.kinds if found.is_whole or not namespace else found.namespaces.get(namespace, ()))
        kinds = (kinds & KINDS.keys()) - {"event", "lease"} or {"shoot"}  # the apiserver says what is needed
    else:
        kinds = {*KINDS, *(str(each["singular"]) for each in await api.call("kinds"))}
    specs = {kind: KINDS.get(kind) for kind in sorted(kinds - CONFIDENTIAL)}
    return [
        ResourceArgs(kind, (), is_namespaced=spec is None or spec.namespaced is not False)
        for kind, spec in specs.items()
    ]


def _show_change(
    event: StreamMessage, prefix: str, wanted: ResourceArgs | None, namespace: str | None, output: Format
) -> None:
    key = ObjectKey.from_tail(event.subject.removeprefix(f"{prefix}.changed."))
    if namespace is not None and key.namespace != namespace:
        return
    if wanted is not None and wanted.names and key.name not in wanted.names:
        return
    line = f"{change_line(key, event, output)}\n"
    if output in PROGRAMS:
        write_document(line, is_json=True)
    else:
        write(line)
    flush()


def change_line(key: ObjectKey, event: StreamMessage, output: Format) -> str:
    """One change in one line (JSON: in several): time, verb, object, version, and where it stands."""
    verb = event.headers.get(Header.VERB, "modified")
    if output in PROGRAMS:
        body = msgspec.Raw(event.body) if event.body else None
        change = {"verb": verb, "kind": key.kind, "namespace": key.namespace, "name": key.name, "object": body}
        return json_text(change).rstrip("\n")
    if output is Format.NAME:
        spec = KINDS.get(key.kind)
        return f"{spec.qualified_singular if spec is not None else key.kind}/{key.name}"
    version = event.headers.get(Header.VERSION, "")
    summary = _summary(key, event.body) if verb != "deleted" else ""
    return f"{event.at.astimezone():%H:%M:%S}  {verb:<8}  {key!s:<44} {version:>10}  {summary}".rstrip()


def _summary(key: ObjectKey, body: bytes) -> str:
    if key.kind not in ("shoot", "seed"):
        return ""
    try:
        document = decode_json(body, dict[str, object])
    except msgspec.MsgspecError:
        return ""
    if key.kind == "seed":
        return f"GardenletReady {condition(document, 'GardenletReady').get('status') or '-'}"
    row = summarize_shoot(document)
    return f"seed {row.seed or '-'}  {row.operation} {row.operation_state} {row.progress}%"
