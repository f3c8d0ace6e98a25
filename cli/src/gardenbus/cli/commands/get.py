"""`get`: objects as tables, documents or templates, once or as they change."""

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from gardenbus.cli import completions
from gardenbus.cli.client.api import PAGE, ApiClient, is_forbidden
from gardenbus.cli.client.api_error import ApiError
from gardenbus.cli.client.field_warnings import SORT, path_warnings, selector_warnings
from gardenbus.cli.client.following import present_position
from gardenbus.cli.client.resource_args import ResourceArgs, get_object, parse_resources
from gardenbus.cli.client.watch import WatchCache, WatchEvent, changes, scopes_of
from gardenbus.cli.commands.apply import NOT_FOUND, IgnoreNotFound, Recursive, manifests_of, placed
from gardenbus.cli.commands.options import (
    AllNamespaces,
    AnyOutput,
    FieldSelector,
    LandscapeOptions,
    Namespace,
    Selector,
    check_namespaces,
    run_with_client,
)
from gardenbus.cli.output.columns import TableColumn, TableContext
from gardenbus.cli.output.console import (
    errors,
    exit_codes,
    fail_unless,
    print_api_error,
    print_error,
    print_watch_restarted,
    show_rows,
)
from gardenbus.cli.output.printers import (
    Printer,
    column_widths,
    parse_printer,
    plain_path,
    print_change,
    print_documents,
    sort_key,
    table_text,
)
from gardenbus.cli.output.tables import objects_table, row_of, shown_columns
from gardenbus.cli.output.terminal import flush, write
from gardenbus.cli.wait.waiter import key_of
from gardenbus.common.api.document import Document
from gardenbus.common.api.kinds import KINDS, ending_alike, in_stored_version
from gardenbus.common.api.watches import WatchedKind, WatchedUpTo
from gardenbus.common.errors import BadRequest, NotFound

GetWords = Annotated[
    list[str] | None,
    typer.Argument(
        help="KIND[,KIND…] [NAME…], or KIND/NAME…; kinds also by plural and short name",
        metavar="[KIND [NAME]…]",
        autocompletion=completions.objects,
    ),
]


SeedUsage = Mapping[str, int] | None
"""Shoots by seed; None for those who read seeds, and not what is on them."""

ObjectsByKind = dict[str, list[Document]]
"""Objects by kind."""


class GetOptions(NamedTuple):
    """The options of `get`."""

    files: Annotated[list[Path] | None, typer.Option("-f", "--filename", help="What these manifests name.")] = None
    recursive: Recursive = False
    namespace: Namespace = None
    all_namespaces: AllNamespaces = False
    selector: Selector = ""
    field_selector: FieldSelector = ""
    output: AnyOutput = "table"
    ignore_not_found: IgnoreNotFound = False
    sort_by: Annotated[str, typer.Option(help="Sort by a field: .metadata.creationTimestamp", metavar="PATH")] = ""
    no_headers: Annotated[bool, typer.Option("--no-headers", help="Rows without titles.")] = False
    show_labels: Annotated[bool, typer.Option("--show-labels", help="Labels in a column of their own.")] = False
    chunk_size: Annotated[int, typer.Option(help="Objects per request of a list.", min=1, metavar="NUMBER")] = PAGE
    limit: Annotated[int, typer.Option(help="Show so many of each kind (0: all).", min=0, metavar="NUMBER")] = 0
    watch: Annotated[bool, typer.Option("-w", "--watch", help="Go on with what changes, until Ctrl-C.")] = False


class GetRequest(NamedTuple):
    """Arguments of `get`."""

    wanted: list[ResourceArgs]
    namespace: str | None
    query: dict[str, str]
    printing: Printer
    options: GetOptions

    @property
    def is_streamed(self) -> bool:
        """True when rows are printed as they arrive: nothing has to be known of the whole list before."""
        is_list = len(self.wanted) == 1 and not self.wanted[0].names
        is_plain = not self.options.sort_by and not self.query["fieldSelector"]
        return is_list and is_plain and self.printing.way in ("table", "wide", "name", "custom-columns")

    @property
    def is_one(self) -> bool:
        """True when one object was requested by name."""
        return len(self.wanted) == 1 and len(self.wanted[0].names) == 1

    @property
    def is_mixed(self) -> bool:
        """True when several kinds were requested, so that names alone are ambiguous."""
        return len(self.wanted) > 1


def get(words: GetWords = None, *, options: GetOptions, landscape: LandscapeOptions) -> None:
    """Show one object, some, or all of a kind.

    Exit code 1 when one that was named is not there; the others are shown.

    Examples:
    gardenbus get shoots -l purpose=evaluation --field-selector spec.seedName=aws-cork
    gardenbus get shoots,seeds -o wide --sort-by .metadata.creationTimestamp
    gardenbus get shoot apollo -n garden-dev -o jsonpath='{.status.conditions[?(@.type=="EveryNodeReady")].status}'
    gardenbus get shoots -w -o custom-columns=NAME:.metadata.name,SEED:.spec.seedName
    """
    with exit_codes():
        request = _request(words, options)

    async def work(api: ApiClient) -> bool:
        if request.is_streamed and not options.watch:
            await _stream(api, request)
            return True
        scopes = scopes_of(request.wanted, request.namespace)
        start = await present_position(api, scopes) if options.watch else None
        objects, is_complete = await _fetch(api, request)
        await _warn(api, request, objects)
        usage = await _usage(api, request)
        if start is None:
            _show(request, objects, usage)
        else:
            await _watch(api, request, objects, changes_after=(scopes, start))
        return is_complete

    fail_unless(run_with_client(work, *landscape))


def _request(words: list[str] | None, options: GetOptions) -> GetRequest:
    """Read what is requested. Raises BadRequest."""
    if bool(words) == bool(options.files):
        raise BadRequest("name what to get: KIND, KIND NAME, or -f FILE")
    manifests = manifests_of(options.files, recursive=options.recursive) if options.files else ()
    wanted = parse_resources(words) if words else named_in(manifests, options.namespace)
    check_namespaces(options.namespace, all_namespaces=options.all_namespaces)
    if (options.selector or options.field_selector) and any(meant.names for meant in wanted):
        raise BadRequest("names or selectors, not both")
    if options.watch and any(meant.kind == "event" for meant in wanted):
        raise BadRequest("Events are watched with `gardenbus events -w`")
    if options.sort_by:
        sort_key(options.sort_by)
    query = {"labelSelector": options.selector, "fieldSelector": options.field_selector}
    namespace = None if options.files else options.namespace
    return GetRequest(wanted, namespace, query, parse_printer(options.output), options)


def named_in(manifests: Sequence[Document], namespace: str | None) -> list[ResourceArgs]:
    """The objects that manifests name, by kind in their order. Pure."""
    names: dict[tuple[str, str], list[str]] = {}
    for document in manifests:
        key, given = key_of(placed(document, namespace)), str(document.get("apiVersion") or "")
        version = given if in_stored_version(document) is not document else ""
        names.setdefault((key.kind, version), []).append(f"{key.namespace}/{key.name}" if key.namespace else key.name)
    return [
        ResourceArgs(kind, tuple(dict.fromkeys(each)), any("/" in name for name in each), version)
        for (kind, version), each in names.items()
    ]


async def _fetch(api: ApiClient, request: GetRequest) -> tuple[ObjectsByKind, bool]:
    """Objects by kind, and True when all that were named exist."""
    objects: ObjectsByKind = {}
    is_complete = True
    for wanted in request.wanted:
        if not wanted.names:
            objects[wanted.kind] = [document async for page in _pages(api, request, wanted) for document in page]
            continue
        objects.setdefault(wanted.kind, [])
        for name in wanted.names:
            try:
                objects[wanted.kind].append(await get_object(api, wanted, name, request.namespace))
            except ApiError as error:
                if not request.options.ignore_not_found or error.error.get("code") != NOT_FOUND:
                    print_api_error(error.error)
                    is_complete = False
            except NotFound as missing:
                if not request.options.ignore_not_found:
                    print_error(missing.message)
                    is_complete = False
    if request.options.sort_by:
        for documents in objects.values():
            documents.sort(key=sort_key(request.options.sort_by))
    return objects, is_complete


async def _warn(api: ApiClient, request: GetRequest, objects: ObjectsByKind) -> None:
    """Say which paths no object has."""
    warnings: list[str] = []
    for wanted in request.wanted:
        found = objects[wanted.kind]
        if selector := request.query["fieldSelector"]:
            warnings += await selector_warnings(api, _list_tail(request, wanted), wanted.kind, selector, found)
        if path := plain_path(request.options.sort_by):
            warnings += path_warnings(SORT, wanted.kind, [path], found)
    for warning in warnings:
        errors.print(f"warning: {warning}", style="yellow")


def _list_tail(request: GetRequest, wanted: ResourceArgs) -> str:
    return f"{wanted.kind}.{request.namespace}" if request.namespace and wanted.is_namespaced else wanted.kind


async def _pages(api: ApiClient, request: GetRequest, wanted: ResourceArgs) -> AsyncGenerator[list[Document]]:
    """A list in chunks, up to the limit; says on standard error when there is more."""
    size, left, tail = request.options.chunk_size, request.options.limit, _list_tail(request, wanted)
    async with aclosing(api.pages(tail, request.query, size=min(size, left + 1) if left else size)) as pages:
        async for stored in pages:
            page = [wanted.in_version(document) for document in stored]
            if not request.options.limit:
                yield page
                continue
            yield page[:left]
            if len(page) > left:
                errors.print(f"--limit {request.options.limit}: there are more")
                return
            left -= len(page)


async def _stream(api: ApiClient, request: GetRequest) -> None:
    """Print a list; the rows of a long one as its chunks arrive."""
    (wanted,) = request.wanted
    usage = await _usage(api, request)
    rows, is_long = WatchedRows(request), False
    async with aclosing(_pages(api, request, wanted)) as pages:
        async for page in pages:
            if is_long:
                rows.append(wanted.kind, page, usage)
            elif len(page) < request.options.chunk_size:
                _show(request, {wanted.kind: page}, usage)
            else:
                rows.begin({wanted.kind: page}, usage)
            is_long = True


async def _usage(api: ApiClient, request: GetRequest) -> SeedUsage:
    if not request.printing.is_table or not any(wanted.kind == "seed" for wanted in request.wanted):
        return {}
    try:
        return await api.usage()
    except ApiError as error:
        if is_forbidden(error.error):
            return None
        raise


def _meant_instead(kinds: Iterable[str]) -> str:
    """The understood kinds that a kind which is only stored may be taken for, as `clusters` for member clusters."""
    only_stored = [KINDS[kind] for kind in kinds if kind in KINDS and not KINDS[kind].understood]
    meant = [f"`gardenbus get {name}`" for spec in only_stored for name in ending_alike(spec.plural)]
    return f"; did you mean {' or '.join(meant)}?" if meant else ""


def _show(request: GetRequest, objects: ObjectsByKind, usage: SeedUsage) -> None:
    documents = [document for each in objects.values() for document in each]
    printing = request.printing
    headers = not request.options.no_headers
    if not printing.is_table:
        if documents or not request.is_one:
            print_documents(printing, documents, is_one=request.is_one, headers=not request.options.no_headers)
        return
    if not documents and not request.is_one:
        errors.print(f"no {', '.join(objects)} found{_meant_instead(objects)}")
    is_first = True
    for kind, each in objects.items():
        if not each:
            continue
        if not is_first:
            write("\n")
        is_first = False
        show_rows(
            objects_table(
                kind,
                each,
                TableContext(datetime.now(UTC), usage),
                wide=printing.way == "wide",
                labels=request.options.show_labels,
                headers=headers,
                prefix=f"{kind}/" if request.is_mixed else "",
            )
        )


async def _watch(
    api: ApiClient,
    request: GetRequest,
    objects: ObjectsByKind,
    *,
    changes_after: tuple[Sequence[WatchedKind], WatchedUpTo],
) -> None:
    from gardenbus.common.api.list_selectors import list_predicate  # noqa: PLC0415  as the server reads them

    watch_cache = WatchCache(request.wanted, request.namespace, list_predicate(request.query))
    rows = WatchedRows(request)
    for kind, documents in objects.items():
        for document in documents:
            watch_cache.note(kind, in_stored_version(document))
    usage = await _usage(api, request)
    rows.begin(objects, usage)
    async with aclosing(changes(api, watch_cache, *changes_after, on_restart=print_watch_restarted)) as following:
        async for change in following:
            is_seed = change.key.kind == "seed" and request.printing.is_table
            rows.add(change, await _usage(api, request) if is_seed else usage)


class WatchedRows:
    """Prints rows, or documents, one after the other; columns keep the widths that they have come to need."""

    def __init__(self, request: GetRequest) -> None:
        self._request = request
        self._wanted = {wanted.kind: wanted for wanted in request.wanted}
        self._widths: dict[str, list[int]] = {}

    def begin(self, objects: ObjectsByKind, usage: SeedUsage) -> None:
        """Print what is there, with titles."""
        for kind, documents in objects.items():
            rows = [self._row(kind, document, usage) for document in documents]
            titles = self._titles(kind)
            if titles is None:
                for document in documents:
                    print_change(self._request.printing, document)
                continue
            self._widths[kind] = column_widths([titles, *rows])
            write(table_text(None if self._request.options.no_headers else titles, rows, self._widths[kind]))
        flush()

    def append(self, kind: str, documents: Sequence[Document], usage: SeedUsage) -> None:
        """Print more of what `begin` printed; a column that has to becomes wider from here on."""
        if self._titles(kind) is None:
            for document in documents:
                print_change(self._request.printing, document)
        elif documents:
            rows = [self._row(kind, document, usage) for document in documents]
            self._widths[kind] = column_widths(rows, self._widths[kind])
            write(table_text(None, rows, self._widths[kind]))
        flush()

    def add(self, change: WatchEvent, usage: SeedUsage) -> None:
        """Print one change; what was deleted is shown as it was last, and said to be."""
        kind = change.key.kind
        if self._titles(kind) is None:
            if change.verb != "deleted" or self._request.printing.way == "name":
                print_change(self._request.printing, self._wanted[kind].in_version(change.document))
        else:
            row = self._row(kind, change.document, usage)
            self._widths[kind] = column_widths([row], self._widths[kind])
            suffix = "   (deleted)" if change.verb == "deleted" else ""
            write(table_text(None, [row], self._widths[kind]).rstrip("\n") + suffix + "\n")
        flush()

    def _titles(self, kind: str) -> Sequence[str] | None:
        printing = self._request.printing
        if printing.columns:
            return [column.title for column in printing.columns]
        if not printing.is_table:
            return None
        return [column.title for column in self._columns(kind)]

    def _columns(self, kind: str) -> Sequence[TableColumn]:
        return shown_columns(kind, wide=self._request.printing.way == "wide", labels=self._request.options.show_labels)

    def _row(self, kind: str, document: Document, usage: SeedUsage) -> Sequence[str]:
        if self._request.printing.columns:
            return [column.cell(document) for column in self._request.printing.columns]
        prefix = f"{kind}/" if self._request.is_mixed else ""
        return row_of(self._columns(kind), document, TableContext(datetime.now(UTC), usage), prefix)
