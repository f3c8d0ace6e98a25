"""`top --history`: the landscape's history as sparklines and a table, or as CSV, JSON and YAML."""

import csv
import io
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from rich.table import Table

from gardenbus.cli.client.api import ApiClient
from gardenbus.cli.output.console import Format, errors, new_table, show_document, show_lines, show_rows
from gardenbus.cli.output.terminal import write
from gardenbus.common.errors import BadRequest
from gardenbus.common.ports.clock import timestamp
from gardenbus.diagnostics.history import note_on, read_history
from gardenbus.diagnostics.history_record import (
    SCOPE_KINDS,
    ChartLine,
    HistoryChart,
    HistoryScope,
    HistoryView,
    ScopeKind,
)

TABLE_INSTANTS = 24
SPARKLINE_INSTANTS = 60
CSV_INSTANTS = 288
"""Rows for programs: one every five minutes of a day."""

SHOWN_CHANGES = 20
_BARS = "▁▂▃▄▅▆▇█"
_GAP = " "
_PARTS: Mapping[str, ScopeKind] = {**SCOPE_KINDS, "set": "managedseedset", "mss": "managedseedset"}


class TopFormat(StrEnum):
    """Values of `-o`."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"
    CSV = "csv"

    @property
    def way(self) -> Format:
        """The same for what has no CSV."""
        return Format(self.value)


def scope_of(text: str) -> HistoryScope:
    """Parse `--of`: `seed/aws-dublin`, `region/aws/eu-west-1`, `set/garden/grove`. Raises BadRequest."""
    if not text:
        return HistoryScope("landscape")
    word, _, name = text.partition("/")
    kind = _PARTS.get(word, "landscape")
    needs_slash = kind in ("region", "managedseedset")
    if kind == "landscape" or not name or needs_slash != ("/" in name):
        raise BadRequest(
            f"--of {text}: write seed/NAME, region/PROVIDER/REGION or set/NAMESPACE/NAME; without it all is shown"
        )
    return HistoryScope(kind, name)


async def show_history(api: ApiClient, scope: HistoryScope, lasting: timedelta, output: TopFormat) -> None:
    """Read the history and print a part of it. Raises NotFound without one, Forbidden for people, Unavailable."""
    record = await read_history(api)
    until = datetime.now(UTC)
    is_table = output in (TopFormat.TABLE, TopFormat.WIDE, TopFormat.NAME)
    if note := note_on(record, until):
        errors.print(note, style="yellow")
    view = record.view(scope, until - lasting, until, instants=TABLE_INSTANTS if is_table else CSV_INSTANTS)
    if output is TopFormat.CSV:
        write(csv_text(view))
    elif not is_table:
        show_document(document_of(view), output.way)
    elif not view.charts:
        errors.print(f"nothing is recorded of {scope.name or 'the landscape'} in this time")
    else:
        fine = record.view(scope, until - lasting, until, instants=SPARKLINE_INSTANTS)
        show_lines([*sparklines(fine), ""])
        show_rows(history_table(view))
        show_lines(change_lines(view))


def columns_of(view: HistoryView) -> Sequence[tuple[HistoryChart, ChartLine]]:
    """Lines of all charts in order, as columns."""
    return [(chart, line) for chart in view.charts for line in chart.lines]


def column_name(chart: HistoryChart, line: ChartLine) -> str:
    """Name of a column, which no other has: `waiting: full`, `placement: p99 (s)`."""
    return f"{chart.name}: {line.name}{' (s)' if chart.unit == 's' else ''}"


def csv_text(view: HistoryView) -> str:
    """The view as CSV (RFC 4180): `time` in RFC 3339, a column each line, `changes` in words."""
    columns = columns_of(view)
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(["time", *(column_name(chart, line) for chart, line in columns), "changes"])
    changes = _changes_by_row(view)
    for number, at in enumerate(view.at):
        values = [line.values[number] for _, line in columns]
        cells = ["" if value is None else f"{value:g}" for value in values]
        writer.writerow([timestamp(_instant(at)), *cells, "; ".join(changes[number])])
    return file.getvalue()


def document_of(view: HistoryView) -> dict[str, Any]:
    """The view as a document for programs."""
    columns = columns_of(view)
    rows = [
        {"time": timestamp(_instant(at)), **{column_name(chart, line): line.values[number] for chart, line in columns}}
        for number, at in enumerate(view.at)
    ]
    changes = [{"time": each.at, "kind": each.kind, "name": each.name, "text": each.text} for each in view.changes]
    return {"items": rows, "changes": changes}


def sparklines(view: HistoryView) -> Sequence[str]:
    """A line of bars for each line of the charts, with its last value and its highest."""
    columns = columns_of(view)
    names = [column_name(chart, line) for chart, line in columns]
    width = max(map(len, names), default=0)
    return [
        f"{name:<{width}}  {bars(line.values)}  {_last_and_most(line.values)}"
        for name, (_, line) in zip(names, columns, strict=True)
    ]


def bars(values: Sequence[float | None]) -> str:
    """Values as bars, the highest in full; a blank for none."""
    top = max((value for value in values if value is not None), default=0) or 1
    return "".join(_GAP if value is None else _BARS[round(value / top * (len(_BARS) - 1))] for value in values)


def _last_and_most(values: Sequence[float | None]) -> str:
    found = [value for value in values if value is not None]
    return f"{found[-1]:g} now, {max(found):g} at the most" if found else ""


def history_table(view: HistoryView) -> Table:
    """Rows of times, the oldest first; the last column has what happened."""
    columns = columns_of(view)
    table = new_table("TIME", *(f">{line.name.upper()[:16]}" for _, line in columns), folded="WHAT HAPPENED")
    changes = _changes_by_row(view)
    for number, at in enumerate(view.at):
        values = [line.values[number] for _, line in columns]
        if any(value is not None for value in values):
            shown = ["" if value is None else f"{value:g}" for value in values]
            happened = changes[number][0] if changes[number] else ""
            more = f" and {len(changes[number]) - 1} more" if len(changes[number]) > 1 else ""
            table.add_row(f"{_instant(at).astimezone():%m-%d %H:%M %Z}", *shown, happened + more)
    return table


def change_lines(view: HistoryView) -> Sequence[str]:
    """Lines of what happened, the newest last."""
    if not view.changes:
        return []
    newest = view.changes[-SHOWN_CHANGES:]
    hidden = len(view.changes) - len(newest)
    return [
        "",
        f"What happened{f' (the last {len(newest)} of {len(view.changes)})' if hidden else ''}:",
        *(
            f"  {datetime.fromisoformat(each.at).astimezone():%Y-%m-%d %H:%M %Z}  "
            f"{_subject(each.kind, each.name)}{each.text}"
            for each in newest
        ),
    ]


def _changes_by_row(view: HistoryView) -> Sequence[list[str]]:
    found: list[list[str]] = [[] for _ in view.at]
    for each in view.changes:
        at = datetime.fromisoformat(each.at).timestamp() * 1000
        row = next((number for number, end in enumerate(view.at) if at <= end), None)
        if row is not None:
            found[row].append(f"{_subject(each.kind, each.name)}{each.text}")
    return found


def _subject(kind: str, name: str) -> str:
    return f"{kind} {name}: " if name else ""


def _instant(at: int) -> datetime:
    return datetime.fromtimestamp(at / 1000, UTC)
