"""Schedules against a model that looks at every minute."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from gardenbus.common.api.garden.cron_schedules import CronSchedule, location_of, parse_cron

ZONES = ["UTC", "Europe/Berlin", "America/Los_Angeles", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia"]
WEEKDAYS = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"]
HOURS_OF_THE_MODEL = 60


def simple_fields() -> st.SearchStrategy[tuple[str, str, str]]:
    minutes = st.one_of(st.just("*"), st.integers(0, 59).map(str), st.sampled_from(["*/15", "0,30"]))
    hours = st.one_of(st.just("*"), st.integers(0, 23).map(str), st.sampled_from(["8-18", "*/6"]))
    return st.tuples(minutes, hours, st.one_of(st.just("*"), st.sampled_from(WEEKDAYS)))


def allows(field: str, value: int) -> bool:
    if field == "*":
        return True
    if field.startswith("*/"):
        return value % int(field[2:]) == 0
    if "-" in field:
        least, most = field.split("-")
        return int(least) <= value <= int(most)
    return value in {int(one) for one in field.split(",")}


def minutes_of(fields: tuple[str, str, str], zone: str, since: datetime) -> Iterator[datetime]:
    """Each minute of the schedule, by its fields, as clocks show it; nothing special on the days of a change."""
    minute_field, hour_field, weekday = fields
    start = since.replace(second=0, microsecond=0)
    for number in range(1, HOURS_OF_THE_MODEL * 60):
        at = start + timedelta(minutes=number)
        local = at.astimezone(location_of(zone))
        matches = allows(minute_field, local.minute) and allows(hour_field, local.hour)
        if matches and weekday in ("*", WEEKDAYS[local.weekday()]):
            yield at


def is_near_a_change(zone: str, since: datetime) -> bool:
    """True when the offset differs anywhere near the span of the model."""
    days = [since + timedelta(days=number) for number in range(-1, 5)]
    return len({day.astimezone(location_of(zone)).utcoffset() for day in days}) > 1


@settings(max_examples=60, deadline=None)
@given(
    fields=simple_fields(),
    zone=st.sampled_from(ZONES),
    since=st.datetimes(datetime(2024, 1, 1), datetime(2027, 12, 31), timezones=st.just(UTC)),  # noqa: DTZ001  the bounds
)
def test_the_next_and_the_last_instant_are_those_of_the_minutes(
    fields: tuple[str, str, str], zone: str, since: datetime
) -> None:
    schedule = CronSchedule(parse_cron("{} {} * * {}".format(*fields)), location_of(zone))
    until = since + timedelta(hours=HOURS_OF_THE_MODEL - 1)
    following, last = schedule.next_after(since), schedule.last_between(since, until)
    assert following is None or following > since
    assert last is None or since < last <= until
    if is_near_a_change(zone, since):
        return
    expected = [at for at in minutes_of(fields, zone, since) if at <= until]
    assert (following if following is not None and following <= until else None) == next(iter(expected), None)
    assert last == (expected[-1] if expected else None)


@settings(max_examples=60, deadline=None)
@given(
    hour=st.integers(0, 23),
    minute=st.integers(0, 59),
    zone=st.sampled_from(ZONES),
    since=st.datetimes(datetime(2024, 1, 1), datetime(2027, 12, 31), timezones=st.just(UTC)),  # noqa: DTZ001  the bounds
)
def test_a_daily_schedule_takes_place_once_on_each_day_of_its_zone(
    hour: int, minute: int, zone: str, since: datetime
) -> None:
    schedule = CronSchedule(parse_cron(f"{minute} {hour} * * *"), location_of(zone))
    days: list[object] = []
    at = schedule.next_after(since)
    while at is not None and at < since + timedelta(days=10):
        days.append(at.astimezone(location_of(zone)).date())
        at = schedule.next_after(at)
    assert len(days) == len(set(days))
    assert len(days) in (9, 10, 11)


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        st.text(max_size=30),
        st.lists(st.text("0123456789*/,-?LW#MONFRIjan", max_size=6), min_size=4, max_size=6).map(" ".join),
    )
)
def test_whatever_is_given_is_a_schedule_or_is_rejected_in_words(text: str) -> None:
    try:
        expression = parse_cron(text)
    except ValueError:
        return
    assert len(expression.split()) == 5
    now = datetime(2026, 3, 1, tzinfo=UTC)
    following = CronSchedule(expression, location_of("")).next_after(now)
    assert following is None or following > now


@given(st.text(max_size=20))
def test_whatever_is_given_is_a_zone_or_is_rejected_in_words(name: str) -> None:
    try:
        zone = location_of(name)
    except ValueError:
        return
    assert datetime(2026, 3, 1, tzinfo=UTC).astimezone(zone).utcoffset() is not None
