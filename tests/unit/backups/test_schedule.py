"""When a full backup is due."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gardenbus.common.api.garden.maintenance_windows import MaintenanceWindow
from gardenbus.common.backups.schedule import is_full_due, parse_window, planned_at

WINDOW = parse_window("220000+0100/230000+0100")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
DAYS = st.dates(date(2020, 1, 1), date(2040, 1, 1))


def test_a_window_is_read_as_gardener_writes_its_times() -> None:
    assert MaintenanceWindow(timedelta(hours=21), timedelta(hours=1)) == WINDOW
    assert parse_window("233000-0200/003000-0200") == MaintenanceWindow(
        timedelta(hours=1, minutes=30), timedelta(hours=1)
    )
    assert parse_window("000000+0000/000000+0000").length == timedelta(days=1)


@pytest.mark.parametrize("text", ["", "22:00/23:00", "250000+0100/230000+0100", "220000+0100"])
def test_what_is_no_window_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="is no window"):
        parse_window(text)


@given(DAYS, st.text(max_size=10))
def test_the_minute_lies_in_the_window_and_is_the_same_for_all_replicas(day: date, landscape: str) -> None:
    planned = planned_at(WINDOW, day, landscape)
    begin = datetime(day.year, day.month, day.day, 21, tzinfo=UTC)
    assert begin <= planned < begin + timedelta(hours=1)
    assert planned == planned_at(WINDOW, day, landscape)


def test_minutes_differ_between_days_and_landscapes() -> None:
    days = [date(2026, 11, 1) + timedelta(days=number) for number in range(30)]
    assert len({planned_at(WINDOW, day, "garden").minute for day in days}) > 10
    assert len({planned_at(WINDOW, days[0], f"garden{number}").minute for number in range(30)}) > 10


@given(st.integers(0, 600_000).map(lambda minutes: NOON + timedelta(minutes=minutes)))
def test_once_made_it_is_due_again_within_a_day_and_the_window(now: datetime) -> None:
    assert is_full_due(None, now, WINDOW, "garden")
    assert not is_full_due(now, now, WINDOW, "garden")
    assert is_full_due(now, now + timedelta(hours=25), WINDOW, "garden")


def test_it_is_not_due_before_its_minute() -> None:
    planned = planned_at(WINDOW, date(2026, 11, 23), "garden")
    latest = planned - timedelta(hours=20)
    assert not is_full_due(latest, planned - timedelta(seconds=1), WINDOW, "garden")
    assert is_full_due(latest, planned, WINDOW, "garden")
