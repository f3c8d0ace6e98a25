"""Cells of tables, made of a manifest. Pure."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, cast

from gardenbus.cli.manifests.files import as_mapping
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.rows import condition

_MINUTE = timedelta(minutes=1)
_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)


class TableContext(NamedTuple):
    """Context of cells beside the manifest."""

    now: datetime
    usage: Mapping[str, int] | None
    """Shoots by seed; None for those who may not know."""


Cell = Callable[[Document, TableContext], str]


class TableColumn(NamedTuple):
    """One column; a `wide` one is shown on `-o wide` alone."""

    title: str
    cell: Cell
    wide: bool = False


def age_of(instant: object, now: datetime) -> str:
    """`12s`, `3m`, `5h`, `2d` since a Kubernetes time; "" when it is none."""
    try:
        elapsed = now - datetime.fromisoformat(str(instant)).astimezone(UTC)
    except (ValueError, OverflowError):
        return ""
    for unit, letter in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "m")):
        if elapsed >= 2 * unit:
            return f"{elapsed // unit}{letter}"
    return f"{max(0, int(elapsed.total_seconds()))}s"


def shown(text_of: Callable[[Document], str]) -> Cell:
    """A cell that needs nothing but the document."""
    return lambda document, _: text_of(document)


def field(*path: str) -> Cell:
    """A cell that shows one field; lists are joined by commas."""

    def cell(document: Document, _context: TableContext) -> str:
        value = value_at(document, *path)
        if isinstance(value, list):
            return ",".join(map(str, cast("list[object]", value)))
        return "" if value is None else str(value)

    return cell


def age(*path: str) -> Cell:
    """A cell that shows the time since an instant."""
    return lambda document, context: age_of(value_at(document, *path), context.now)


def names_in(*path: str, key: str = "name") -> Cell:
    """A cell that shows one key of each entry of a list."""

    def cell(document: Document, _context: TableContext) -> str:
        value = value_at(document, *path)
        entries = cast("list[object]", value) if isinstance(value, list) else []
        return ",".join(str(as_mapping(entry).get(key) or "") for entry in entries)

    return cell


def value_at(document: Document, *path: str) -> object:
    """The value of a field, however deep; None where there is none."""
    value: object = document
    for part in path:
        value = as_mapping(value).get(part)
    return value


def entries_at(document: Document, *path: str) -> Sequence[Document]:
    """The entries of a list, however deep; none where there is no list."""
    value = value_at(document, *path)
    return [as_mapping(each) for each in cast("list[object]", value)] if isinstance(value, list) else []


def condition_status(name: str) -> Cell:
    """A cell that shows the status of a condition."""
    return lambda document, _: str(condition(document, name).get("status") or "")


def condition_reason(name: str) -> Cell:
    """A cell that shows the reason of a condition."""
    return lambda document, _: str(condition(document, name).get("reason") or "")


def labels_of(document: Document, _context: TableContext) -> str:
    """A cell that shows the labels."""
    labels = as_mapping(as_mapping(document.get("metadata")).get("labels"))
    return ",".join(f"{key}={value}" for key, value in labels.items())
