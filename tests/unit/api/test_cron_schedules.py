"""Cron schedules: what is accepted, and the instants that they name."""

from datetime import UTC, datetime

import pytest

from gardenbus.common.api.garden.cron_schedules import CronSchedule, location_of, parse_cron


def schedule(text: str, location: str = "") -> CronSchedule:
    return CronSchedule(parse_cron(text), location_of(location))


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "location", "now", "following"),
    [
        ("0 20 * * *", "", "2026-03-10T19:59:59", "2026-03-10T20:00:00"),
        ("0 20 * * *", "", "2026-03-10T20:00:00", "2026-03-11T20:00:00"),
        ("0 20 * * *", "Europe/Berlin", "2026-01-10T12:00:00", "2026-01-10T19:00:00"),
        ("0 20 * * *", "Europe/Berlin", "2026-07-10T12:00:00", "2026-07-10T18:00:00"),
        ("00 18 * * 1,2,3,4,5", "America/Los_Angeles", "2026-01-09T12:00:00", "2026-01-10T02:00:00"),
        ("0 8 * * mon-fri", "", "2026-11-20T08:00:00", "2026-11-23T08:00:00"),
        ("0 8 ? * SUN", "", "2026-11-20T08:00:00", "2026-11-22T08:00:00"),
        ("0 8 1 * MON", "", "2026-11-20T08:00:00", "2026-11-23T08:00:00"),
        ("0 0 29 2 *", "", "2026-11-20T08:00:00", "2028-02-29T00:00:00"),
        ("*/15 * * * *", "Asia/Kathmandu", "2026-11-20T08:01:00", "2026-11-20T08:15:00"),
        ("@daily", "Europe/Berlin", "2026-01-10T12:00:00", "2026-01-10T23:00:00"),
    ],
)
def test_the_next_instant(text: str, location: str, now: str, following: str) -> None:
    assert schedule(text, location).next_after(at(now)) == at(following)


def test_an_hour_that_summer_time_leaves_out_takes_place_right_after_the_gap() -> None:
    assert schedule("30 2 * * *", "Europe/Berlin").next_after(at("2026-03-28T12:00:00")) == at("2026-03-29T01:00:00")


def test_an_hour_that_comes_twice_takes_place_once() -> None:
    in_berlin = schedule("30 2 * * *", "Europe/Berlin")
    first = at("2026-10-25T00:30:00")
    assert in_berlin.next_after(at("2026-10-24T12:00:00")) == first
    assert in_berlin.next_after(first) == at("2026-10-26T01:30:00")
    assert in_berlin.next_after(at("2026-10-25T01:10:00")) == at("2026-10-26T01:30:00")


def test_what_was_last_is_not_before_the_span_and_may_be_its_end() -> None:
    daily = schedule("0 20 * * *")
    assert daily.last_between(at("2026-03-08T20:00:00"), at("2026-03-10T20:00:00")) == at("2026-03-10T20:00:00")
    assert daily.last_between(at("2026-03-08T20:00:00"), at("2026-03-09T19:59:59")) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "0 0 31 2 *",
        "0 0 L * *",
        "0 0 LW * *",
        "0 0 * * 5L",
        "0 0 * * MON#2",
        "a * * * *",
        "*/0 * * * *",
        "5-1 * * * *",
        "@every 1h",
        "@reboot",
        "0 0 * * *" + " " * 400,
    ],
)
def test_what_is_no_schedule_of_five_fields_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"must|is no cron schedule"):
        parse_cron(text)


@pytest.mark.parametrize("name", ["Europe/Berlim", "../etc/passwd", "Europe", "Local", "x" * 999, "\0"])
def test_what_is_no_time_zone_is_rejected(name: str) -> None:
    with pytest.raises(ValueError, match="is no time zone"):
        location_of(name)
