"""Hibernation schedules: the edge that counts, and the next one."""

from datetime import UTC, datetime, timedelta

import pytest

from gardenbus.common.api.garden.hibernation import HibernationEdge, edges_of, latest_edge, next_edge_at

NOW = datetime(2026, 3, 10, 20, 0, 0, 100_000, tzinfo=UTC)


def edges(*schedules: tuple[str, str, str]) -> list[HibernationEdge]:
    listed = [
        {field: value for field, value in zip(("start", "end", "location"), one, strict=True) if value}
        for one in schedules
    ]
    return list(edges_of({"hibernation": {"schedules": listed}}))


def passed(hours: float, *schedules: tuple[str, str, str]) -> tuple[str, bool] | None:
    edge = latest_edge(edges(*schedules), NOW - timedelta(hours=hours), NOW)
    return (edge.at.strftime("%d %H:%M"), edge.hibernates) if edge else None


@pytest.mark.parametrize(
    ("hours", "schedules", "expected"),
    [
        (2, [("0 20 * * *", "", "")], ("10 20:00", True)),
        (2, [("", "0 20 * * *", "")], ("10 20:00", False)),
        (2, [("0 17 * * *", "", "")], None),
        (4, [("0 17 * * *", "", "")], ("10 17:00", True)),
        (4, [("0 17 * * *", "0 19 * * *", "")], ("10 19:00", False)),
        (4, [("0 19 * * *", "0 17 * * *", "")], ("10 19:00", True)),
        (4, [("0 17 * * *", "", ""), ("0 20 * * *", "", "Europe/Berlin")], ("10 19:00", True)),
        (2, [("0 20 * * *", "0 20 * * *", "")], ("10 20:00", True)),
        (2, [("", "0 20 * * *", ""), ("00 20 * * *", "", "")], ("10 20:00", False)),
        (100, [("0 20 * * MON", "0 6 * * MON", "")], ("09 20:00", True)),
        (2, [], None),
    ],
)
def test_the_last_edge_that_was_passed_counts(
    hours: float, schedules: list[tuple[str, str, str]], expected: tuple[str, bool] | None
) -> None:
    assert passed(hours, *schedules) == expected


def test_the_next_edge_is_the_soonest_of_all() -> None:
    both = edges_of({"hibernation": {"schedules": [{"start": "0 22 * * *"}, {"end": "30 21 * * *"}]}})
    assert next_edge_at(both, NOW) == datetime(2026, 3, 10, 21, 30, tzinfo=UTC)
    assert next_edge_at([], NOW) is None


def test_a_schedule_that_cannot_be_read_says_so() -> None:
    with pytest.raises(ValueError, match="five fields"):
        edges_of({"hibernation": {"schedules": [{"start": "daily"}]}})
