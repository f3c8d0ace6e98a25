"""Maintenance windows: when they are open, and when the next one begins."""

from datetime import UTC, datetime, timedelta

import pytest

from gardenbus.common.api.garden.maintenance_windows import default_window, effective_window, stated_window


def spec(begin: str, end: str) -> dict[str, object]:
    return {"maintenance": {"timeWindow": {"begin": begin, "end": end}}}


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("begin", "end", "now", "opened"),
    [
        ("220000+0000", "230000+0000", "2026-03-10T21:59:59", None),
        ("220000+0000", "230000+0000", "2026-03-10T22:00:00", "2026-03-10T22:00:00"),
        ("220000+0000", "230000+0000", "2026-03-10T22:44:59", "2026-03-10T22:00:00"),
        ("220000+0000", "230000+0000", "2026-03-10T22:45:00", None),
        ("233000+0000", "003000+0000", "2026-03-11T00:10:00", "2026-03-10T23:30:00"),
        ("003000+0100", "013000+0100", "2026-03-10T23:40:00", "2026-03-10T23:30:00"),
        ("220000-0800", "230000-0800", "2026-03-11T06:30:00", "2026-03-11T06:00:00"),
        ("220000+0530", "003000+0630", "2026-03-10T16:40:00", "2026-03-10T16:30:00"),
    ],
)
def test_a_window_is_open_until_a_quarter_of_an_hour_before_its_end(
    begin: str, end: str, now: str, opened: str | None
) -> None:
    window = effective_window(spec(begin, end), "garden-dev/apollo")
    assert window.opened_at(at(now)) == (at(opened) if opened else None)


def test_the_next_window_begins_after_now() -> None:
    window = effective_window(spec("220000+0000", "230000+0000"), "")
    assert window.next_begin(at("2026-03-10T21:00:00")) == at("2026-03-10T22:00:00")
    assert window.next_begin(at("2026-03-10T22:00:00")) == at("2026-03-11T22:00:00")


@pytest.mark.parametrize("stated", [{}, {"maintenance": {"timeWindow": {"begin": "22:00", "end": "23:00"}}}])
def test_without_a_window_each_shoot_has_an_hour_of_its_own(stated: dict[str, object]) -> None:
    windows = [effective_window(stated, f"garden-dev/shoot-{number}") for number in range(200)]
    assert windows[7] == effective_window(stated, "garden-dev/shoot-7")
    assert len({window.begin for window in windows}) == 24
    assert {window.length for window in windows} == {timedelta(minutes=45)}
    assert default_window("a").length == timedelta(hours=1)


def test_a_window_that_ends_where_it_begins_is_a_whole_day() -> None:
    window = stated_window(spec("220000+0000", "220000+0000"))
    assert window is not None
    assert window.length == timedelta(days=1)
