"""`get`: objects as tables, documents or templates, once or as they change."""

import sys
from collections.abc import Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Annotated, NamedTuple

import typer

from gardenbus.cli import completions
from gardenbus.cli.cells import Column, Context
from gardenbus.cli.client import ApiClient
from gardenbus.cli.commands.naming import Meant, found, meant_all
from gardenbus.cli.commands.options import (
    AnyOutput,
    Directory,
    FieldSelector,
    Namespace,
    NatsUrl,
    Prefix,
    Selector,
    asked,
)
from gardenbus.cli.output import Exit, RefusedByApi, errors, exit_codes, say_error, say_refusal, show_rows
from gardenbus.cli.printing import (
    Printing,
    column_widths,
    parse_printing,
    printed,
    printed_change,
    sort_key,
    table_text,
)
from gardenbus.cli.rows import shoot_row, usage_of
from gardenbus.cli.tables import objects_table, row_of, shown_columns
from gardenbus.cli.watching import Change, Known, changes
from gardenbus.common.errors import BadRequest, NotFound
from gardenbus.common.resources.document import Document

Words = Annotated[
    list[str],
    typer.Argument(
        help="KIND[,KIND…] [NAME…], or KIND/NAME…; kinds also by plural and short name",
        metavar="KIND [NAME]…",
        autocompletion=completions.objects,
    ),
]


class Asked(NamedTuple):
    """What `get` was asked for."""

    wanted: list[Meant]
    namespace: str | None
    query: dict[str, str]
    printing: Printing
    sort_by: str
    headers: bool
    labels: bool

    @property
    def is_one(self) -> bool:
        """Whether one object was asked for by its name."""
        return len(self.wanted) == 1 and len(self.wanted[0].names) == 1

    @property
    def is_mixed(self) -> bool:
        """Whether several kinds were asked for, so that names alone do not tell."""
        return len(self.wanted) > 1


Gotten = dict[str, list[Document]]
"""Objects by kind."""


def get(  # noqa: PLR0913 - one parameter an option
    words: Words,
    *,
    namespace: Namespace = None,
    all_namespaces: Annotated[
        bool, typer.Option("-A", "--all-namespaces", help="In all namespaces, as without -n.")
    ] = False,
    selector: Selector = "",
    field_selector: FieldSelector = "",
    output: AnyOutput = "table",
    sort_by: Annotated[str, typer.Option(help="Sort by a field: .metadata.creationTimestamp", metavar="PATH")] = "",
    no_headers: Annotated[bool, typer.Option("--no-headers", help="Rows without titles.")] = False,
    show_labels: Annotated[bool, typer.Option("--show-labels", help="Labels in a column of their own.")] = False,
    watch: Annotated[bool, typer.Option("-w", "--watch", help="Go on with what changes, until Ctrl-C.")] = False,
    directory: Directory = None,
    nats_url: NatsUrl = None,
    prefix: Prefix = None,
) -> None:
    """Show one object, some, or all of a kind.

    Exit code 1 when one that was named is not there; the others are shown.

    Examples:
    gardenbus get shoots -l purpose=evaluation --field-selector spec.seedName=aws-cork
    gardenbus get shoots,seeds -o wide --sort-by .metadata.creationTimestamp
    gardenbus get shoot apollo -n garden-dev -o jsonpath='{.status.conditions[?(@.type=="EveryNodeReady")].status}'
    gardenbus get shoots -w -o custom-columns=NAME:.metadata.name,SEED:.spec.seedName
    """
    with exit_codes():
        wanted = meant_all(words)
        if all_namespaces and namespace:
            raise BadRequest("-A is for all namespaces, -n for one: say which")
        if (selector or field_selector) and any(meant.names for meant in wanted):
            raise BadRequest("names or selectors, not both")
        if watch and any(meant.kind == "event" for meant in wanted):
            raise BadRequest("Events are watched with `gardenbus events -w`")
        query = {"labelSelector": selector, "fieldSelector": field_selector}
        question = Asked(wanted, namespace, query, parse_printing(output), sort_by, not no_headers, show_labels)
        if sort_by:
            sort_key(sort_by)

    async def work(api: ApiClient) -> bool:
        start = await api.bus.position(api.subjects.stream("OBJECTS")) if watch else None
        gotten, is_complete = await _gotten(api, question)
        usage = await _usage(api, question)
        if start is None:
            _show(question, gotten, usage)
        else:
            await _watch(api, question, gotten, start.sequence)
        return is_complete

    if not asked(work, directory, nats_url, prefix):
        raise typer.Exit(Exit.REFUSED)


async def _gotten(api: ApiClient, question: Asked) -> tuple[Gotten, bool]:
    """Objects by kind, and whether all that were named are there."""
    gotten: Gotten = {}
    is_complete = True
    for wanted in question.wanted:
        if not wanted.names:
            scope = f".{question.namespace}" if question.namespace and wanted.is_namespaced else ""
            gotten[wanted.kind] = await api.items(f"{wanted.kind}{scope}", question.query)
            continue
        gotten[wanted.kind] = []
        for name in wanted.names:
            try:
                gotten[wanted.kind].append(await found(api, wanted, name, question.namespace))
            except RefusedByApi as refused:
                say_refusal(refused.error)
                is_complete = False
            except NotFound as missing:
                say_error(missing.message)
                is_complete = False
    if question.sort_by:
        for documents in gotten.values():
            documents.sort(key=sort_key(question.sort_by))
    return gotten, is_complete


async def _usage(api: ApiClient, question: Asked) -> dict[str, int]:
    if not question.printing.is_table or not any(wanted.kind == "seed" for wanted in question.wanted):
        return {}
    return dict(usage_of(map(shoot_row, await api.items("shoot"))))


def _show(question: Asked, gotten: Gotten, usage: dict[str, int]) -> None:
    documents = [document for each in gotten.values() for document in each]
    printing = question.printing
    if not printing.is_table:
        if documents or not question.is_one:
            sys.stdout.write(printed(printing, documents, is_one=question.is_one, headers=question.headers))
        return
    if not documents and not question.is_one:
        errors.print(f"no {', '.join(gotten)} found")
    is_first = True
    for kind, each in gotten.items():
        if not each:
            continue
        if not is_first:
            sys.stdout.write("\n")
        is_first = False
        show_rows(
            objects_table(
                kind,
                each,
                Context(datetime.now(UTC), usage),
                wide=printing.way == "wide",
                labels=question.labels,
                headers=question.headers,
                prefix=f"{kind}/" if question.is_mixed else "",
            )
        )


async def _watch(api: ApiClient, question: Asked, gotten: Gotten, after: int) -> None:
    from gardenbus.apiserver.reconcilers.selection import selection  # noqa: PLC0415  as the server reads them

    known = Known(question.wanted, question.namespace, selection(question.query))
    rows = WatchedRows(question)
    for kind, documents in gotten.items():
        for document in documents:
            known.note(kind, document)
    usage = await _usage(api, question)
    rows.begin(gotten, usage)
    async with aclosing(changes(api, known, question.wanted, question.namespace, after)) as following:
        async for change in following:
            is_seed = change.key.kind == "seed" and question.printing.is_table
            rows.add(change, await _usage(api, question) if is_seed else usage)


class WatchedRows:
    """Prints rows, or documents, one after the other; columns keep the widths that they have come to need."""

    def __init__(self, question: Asked) -> None:
        self._question = question
        self._widths: dict[str, list[int]] = {}

    def begin(self, gotten: Gotten, usage: dict[str, int]) -> None:
        """Print what is there, with titles."""
        for kind, documents in gotten.items():
            rows = [self._row(kind, document, usage) for document in documents]
            titles = self._titles(kind)
            if titles is None:
                for document in documents:
                    sys.stdout.write(printed_change(self._question.printing, document))
                continue
            self._widths[kind] = column_widths([titles, *rows])
            sys.stdout.write(table_text(titles if self._question.headers else None, rows, self._widths[kind]))
        sys.stdout.flush()

    def add(self, change: Change, usage: dict[str, int]) -> None:
        """Print one change; what was deleted is shown as it was last, and said to be."""
        kind = change.key.kind
        if self._titles(kind) is None:
            if change.verb != "deleted" or self._question.printing.way == "name":
                sys.stdout.write(printed_change(self._question.printing, change.document))
        else:
            row = self._row(kind, change.document, usage)
            self._widths[kind] = column_widths([row], self._widths[kind])
            mark = "   (deleted)" if change.verb == "deleted" else ""
            sys.stdout.write(table_text(None, [row], self._widths[kind]).rstrip("\n") + mark + "\n")
        sys.stdout.flush()

    def _titles(self, kind: str) -> Sequence[str] | None:
        printing = self._question.printing
        if printing.columns:
            return [column.title for column in printing.columns]
        if not printing.is_table:
            return None
        return [column.title for column in self._columns(kind)]

    def _columns(self, kind: str) -> Sequence[Column]:
        return shown_columns(kind, wide=self._question.printing.way == "wide", labels=self._question.labels)

    def _row(self, kind: str, document: Document, usage: dict[str, int]) -> Sequence[str]:
        if self._question.printing.columns:
            return [column.cell(document) for column in self._question.printing.columns]
        prefix = f"{kind}/" if self._question.is_mixed else ""
        return row_of(self._columns(kind), document, Context(datetime.now(UTC), usage), prefix)
