"""Printers for `-o`: YAML, JSON, names, JSONPath templates, columns of one's own."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gardenbus.cli.client.resource_args import qualified_name
from gardenbus.cli.output import jsonpath
from gardenbus.cli.output.console import json_text, yaml_text
from gardenbus.cli.output.jsonpath import JsonPath, Node, parse_path, parse_template, rendered, text_of, values_at
from gardenbus.cli.output.terminal import write, write_document
from gardenbus.common.api.document import Document
from gardenbus.common.api.terminal_text import escaped_cell
from gardenbus.common.errors import BadRequest

WAYS = ("wide", "yaml", "json", "name", "jsonpath=TEMPLATE", "custom-columns=TITLE:PATH,…")
NONE = "<none>"


class CustomColumn(NamedTuple):
    """One of `custom-columns`."""

    title: str
    path: JsonPath

    def cell(self, document: Document) -> str:
        """Value of the cell, in one line; several values with commas between."""
        return escaped_cell(",".join(map(text_of, values_at(self.path, document)))) or NONE


class Printer(NamedTuple):
    """Output format of documents. `template` belongs to jsonpath, `columns` to custom-columns."""

    way: str = "table"
    template: tuple[Node, ...] = ()
    columns: tuple[CustomColumn, ...] = ()

    @property
    def is_table(self) -> bool:
        """True for the built-in tables."""
        return self.way in ("table", "wide")


def parse_printer(text: str | None) -> Printer:
    """Read the value of `-o`. Raises BadRequest with what there is."""
    way, _, rest = (text or "table").partition("=")
    if way == "jsonpath":
        if not rest:
            raise BadRequest("-o jsonpath needs a template: -o jsonpath='{.metadata.name}'")
        return Printer(way, template=parse_template(rest))
    if way == "custom-columns":
        return Printer(way, columns=parse_columns(rest))
    if rest or way not in ("table", "wide", "yaml", "json", "name"):
        raise BadRequest(f"-o {text}: there is {', '.join(WAYS)}")
    return Printer(way)


def parse_columns(text: str) -> tuple[CustomColumn, ...]:
    """Read `NAME:.metadata.name,SEED:.spec.seedName`. Raises BadRequest."""
    columns: list[CustomColumn] = []
    for part in _between_commas(text):
        title, colon, path = part.partition(":")
        if not title or not colon or not path:
            raise BadRequest(f"-o custom-columns: {part!r}: write TITLE:.path, as NAME:.metadata.name")
        columns.append(CustomColumn(title, parse_path(path)))
    if not columns:
        raise BadRequest("-o custom-columns needs columns: NAME:.metadata.name,SEED:.spec.seedName")
    return tuple(columns)


def _between_commas(text: str) -> list[str]:
    """The parts between commas that do not stand in brackets."""
    parts: list[str] = []
    start = depth = 0
    for at, character in enumerate(text):
        depth += (character in "[(") - (character in "])")
        if character == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [stripped for part in (*parts, text[start:]) if (stripped := part.strip())]


def render_documents(printer: Printer, documents: Sequence[Document], *, is_one: bool, headers: bool = True) -> str:
    """Documents as text, for every way but our own tables; one that was requested by name stands alone, in no List."""
    if printer.way == "name":
        return _lines([qualified_name(document) for document in documents])
    if printer.way == "custom-columns":
        return custom_table(printer.columns, documents, headers=headers)
    whole = documents[0] if is_one else {"apiVersion": "v1", "kind": "List", "items": list(documents)}
    if printer.way == "jsonpath":
        return rendered(printer.template, whole)
    if printer.way == "yaml":
        return yaml_text(whole)
    return json_text(whole)


def print_documents(printer: Printer, documents: Sequence[Document], *, is_one: bool, headers: bool = True) -> None:
    """Print what `render_documents` makes: names and columns for people, all else for programs."""
    _print(printer, render_documents(printer, documents, is_one=is_one, headers=headers))


def print_change(printer: Printer, document: Document) -> None:
    """Print what `render_change` makes."""
    _print(printer, render_change(printer, document))


def _print(printer: Printer, text: str) -> None:
    if printer.way in ("name", "custom-columns"):
        write(text)
    else:
        write_document(text, is_json=printer.way == "json")


def render_change(printer: Printer, document: Document) -> str:
    """One document of many that come one after the other: a line, a YAML document, or what the template says."""
    if printer.way == "yaml":
        return "---\n" + yaml_text(document)
    if printer.way == "json":
        return json_text(document)
    text = render_documents(printer, [document], is_one=True, headers=False)
    return text if text.endswith("\n") else text + "\n"


def custom_table(columns: Sequence[CustomColumn], documents: Sequence[Document], *, headers: bool = True) -> str:
    """A table of one's own columns."""
    rows = [[column.cell(document) for column in columns] for document in documents]
    return table_text([column.title for column in columns] if headers else None, rows)


def table_text(titles: Sequence[str] | None, rows: Sequence[Sequence[str]], least: Sequence[int] = ()) -> str:
    """Rows in columns that are as wide as they need (and as `least`), three blanks between, nothing cut."""
    every = [[*map(escaped_cell, row)] for row in [*([titles] if titles is not None else []), *rows]]
    if not every:
        return ""
    widths = column_widths(every, least)
    return _lines(["   ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in every])


def column_widths(rows: Sequence[Sequence[str]], least: Sequence[int] = ()) -> list[int]:
    """Widths of columns, at least `least`."""
    needed = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return [max(pair) for pair in zip(needed, least or [0] * len(needed), strict=True)]


def _lines(lines: Sequence[str]) -> str:
    return "".join(f"{line.rstrip()}\n" for line in lines)


def sort_key(expression: str) -> Callable[[Document], tuple[int, Any]]:
    """The key for `--sort-by`: missing first, then numbers and quantities by their amount, then text.

    Raises BadRequest.
    """
    from gardenbus.common.api.quantities import parse_quantity  # noqa: PLC0415  few calls sort

    path = parse_path(expression)

    def key(document: Document) -> tuple[int, Any]:
        found = values_at(path, document)
        if not found or found[0] is None:
            return 0, 0
        if isinstance(found[0], str | int | float):
            with contextlib.suppress(ValueError):
                return 1, parse_quantity(found[0])
        return 2, text_of(found[0])

    return key


def plain_path(expression: str) -> tuple[str, ...]:
    """The names in an expression that only goes from field to field; () for any other."""
    if not expression:
        return ()
    path = parse_path(expression)
    names = [step.names[0] for step in path if isinstance(step, jsonpath.Keys) and len(step.names) == 1]
    return tuple(names) if len(names) == len(path) else ()
