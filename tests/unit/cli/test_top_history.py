"""What `top --history` prints of a record."""

import csv
import io
from datetime import UTC, datetime, timedelta

import pytest

from gardenbus.cli.commands.top_history import (
    bars,
    change_lines,
    csv_text,
    document_of,
    history_table,
    scope_of,
    sparklines,
)
from gardenbus.cli.output.console import rows_text
from gardenbus.common.api.history import HistoryChange, HistoryPoint, SeedUse
from gardenbus.common.errors import BadRequest
from gardenbus.common.ports.clock import timestamp
from gardenbus.diagnostics.history_record import HistoryRecord, HistoryScope, HistoryView

START = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


def a_view(instants: int = 6) -> HistoryView:
    record = HistoryRecord()
    for number in range(7):
        at = timestamp(START + timedelta(minutes=10 * number))
        if number == 3:
            record.add_change(HistoryChange(at, "seed", "s1", "its gardenlet is silent, alas"))
        seeds = {"s1": SeedUse(number, 10, "ready", "aws", "eu")}
        record.add_point(HistoryPoint(at=at, level=1, seeds=seeds, totals={"placed.2": number}))
    return record.view(HistoryScope("landscape"), START, START + timedelta(hours=1), instants=instants)


def test_csv_has_a_column_for_each_line_and_what_happened_in_its_row() -> None:
    rows = list(csv.DictReader(io.StringIO(csv_text(a_view()))))
    assert [row["time"] for row in rows[:2]] == ["2026-05-04T12:10:00Z", "2026-05-04T12:20:00Z"]
    assert [row["capacity: used"] for row in rows] == ["1", "2", "3", "4", "5", "6"]
    assert [row["placement: p99 (s)"] for row in rows] == ["2"] * 6
    assert [row["changes"] for row in rows] == ["", "", "seed s1: its gardenlet is silent, alas", "", "", ""]


def test_a_document_has_the_same_rows_and_the_changes() -> None:
    document = document_of(a_view())
    assert document["items"][-1]["capacity: used"] == 6
    assert document["changes"] == [
        {"time": "2026-05-04T12:30:00Z", "kind": "seed", "name": "s1", "text": "its gardenlet is silent, alas"}
    ]


def test_people_get_bars_a_table_and_what_happened() -> None:
    view = a_view()
    shown = next(line for line in sparklines(view) if line.startswith("capacity: used "))
    assert shown.endswith("▂▃▅▆▇█  6 now, 6 at the most")
    table = rows_text(history_table(view)).splitlines()
    assert len(table) == 7
    assert table[3].endswith("seed s1: its gardenlet is silent, alas")
    assert change_lines(view)[-1].endswith("seed s1: its gardenlet is silent, alas")


def test_bars_leave_a_gap_where_nothing_is_recorded() -> None:
    assert bars([0, None, 5, 10]) == "▁ ▅█"
    assert bars([None]) == " "
    assert bars([0, 0]) == "▁▁"


@pytest.mark.parametrize(
    ("text", "scope"),
    [
        ("", HistoryScope("landscape")),
        ("seed/aws-dublin", HistoryScope("seed", "aws-dublin")),
        ("region/aws/eu-west-1", HistoryScope("region", "aws/eu-west-1")),
        ("set/garden/grove", HistoryScope("managedseedset", "garden/grove")),
    ],
)
def test_a_part_is_named_by_its_kind(text: str, scope: HistoryScope) -> None:
    assert scope_of(text) == scope


@pytest.mark.parametrize("text", ["seed", "seed/", "region/aws", "set/grove", "shoot/a/b", "landscape/x", "seed/a/b"])
def test_what_names_no_part_gets_how_to_write_one(text: str) -> None:
    with pytest.raises(BadRequest, match="write seed/NAME"):
        scope_of(text)
