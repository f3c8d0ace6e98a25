"""Hibernation by schedules against a model that looks at every minute, through stops of the service."""

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from gardenbus.common.api.document import Document
from gardenbus.common.ports.clock import timestamp
from gardenbus.controllermanager.domain.shoot_hibernation import (
    AwaitEdge,
    SwitchHibernation,
    decide_hibernation,
    with_trigger_time,
)
from tests.support.builders import a_shoot, merged

START = datetime(2026, 3, 2, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
DEADLINE = timedelta(hours=2)
DAYS = 2

times = st.tuples(st.integers(0, 23), st.sampled_from([0, 15, 30]))
schedules = st.lists(st.tuples(times, times).filter(lambda both: both[0] != both[1]), min_size=1, max_size=3)
outages = st.lists(st.tuples(st.integers(0, DAYS * 1440), st.integers(1, 600)), max_size=4)


def edges_at(at: datetime, listed: list[tuple[tuple[int, int], tuple[int, int]]]) -> list[bool]:
    """What begins in a minute: True to sleep, in the order of the schedules."""
    moment = (at.hour, at.minute)
    return [sleeps for start, end in listed for edge, sleeps in ((start, True), (end, False)) if edge == moment]


@settings(max_examples=30, deadline=None)
@given(listed=schedules, outages=outages)
def test_a_shoot_sleeps_as_the_minutes_say(
    listed: list[tuple[tuple[int, int], tuple[int, int]]], outages: list[tuple[int, int]]
) -> None:
    given_schedules: list[Document] = [
        {"start": f"{start[1]} {start[0]} * * *", "end": f"{end[1]} {end[0]} * * *"} for start, end in listed
    ]
    shoot = a_shoot(
        metadata={"creationTimestamp": timestamp(START)}, spec={"hibernation": {"schedules": given_schedules}}
    )
    down = {minute for begin, length in outages for minute in range(begin, begin + length)}
    sleeps, expected, missed = False, False, list[tuple[datetime, bool]]()
    for number in range(1, DAYS * 1440):
        now = START + number * MINUTE
        if now.minute % 15 and number not in down and number - 1 not in down:
            continue  # nothing can begin: schedules are of quarters
        missed += [(now, edge) for edge in edges_at(now, listed)[:1]]
        if number in down:
            continue
        recent = [edge for at, edge in missed if at > now - DEADLINE]
        expected, missed = (recent[-1] if recent else expected), []
        decision = decide_hibernation(shoot, now, DEADLINE)
        if isinstance(decision, SwitchHibernation):
            sleeps = decision.hibernates
            assert now - DEADLINE < decision.edge_at <= now
            shoot = merged(with_trigger_time(shoot, now), {"spec": {"hibernation": {"enabled": sleeps}}})
            decision = decide_hibernation(shoot, now, DEADLINE)
        assert isinstance(decision, AwaitEdge)
        assert decision.next_at > now
        assert sleeps is expected, now
