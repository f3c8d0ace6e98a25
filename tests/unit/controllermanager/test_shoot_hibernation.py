"""Hibernation by schedules: what is done, and when. Cases as in Gardener's reconciler test."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gardenbus.common.api.document import Document
from gardenbus.controllermanager.domain.shoot_hibernation import (
    AwaitEdge,
    NoSchedule,
    SwitchHibernation,
    decide_hibernation,
    with_trigger_time,
)
from tests.support.builders import a_shoot

NOW = datetime(2026, 3, 10, 20, 0, 0, 100_000, tzinfo=UTC)
DEADLINE = timedelta(hours=2)
FAILED: Document = {"observedGeneration": 3, "lastOperation": {"type": "Reconcile", "state": "Failed"}}


def a_sleeper(*schedules: Document, status: Document | None = None, **metadata: Any) -> Document:
    return a_shoot(
        metadata={"creationTimestamp": "2026-01-01T00:00:00Z", "generation": 3, **metadata},
        spec={"hibernation": {"schedules": list(schedules)}},
        status=status or {},
    )


def decision(shoot: Document, *, now: datetime = NOW, deadline: timedelta | None = DEADLINE) -> object:
    return decide_hibernation(shoot, now, deadline)


def test_a_shoot_goes_to_sleep_when_a_start_is_passed() -> None:
    edge_at = NOW.replace(microsecond=0)
    assert decision(a_sleeper({"start": "0 20 * * *"})) == SwitchHibernation(hibernates=True, edge_at=edge_at)


def test_a_shoot_wakes_up_when_an_end_is_passed() -> None:
    edge_at = NOW.replace(hour=19, microsecond=0)
    schedule = {"end": "0 20 * * *", "location": "Europe/Berlin"}
    assert decision(a_sleeper(schedule)) == SwitchHibernation(hibernates=False, edge_at=edge_at)


def test_an_edge_that_was_acted_upon_does_not_count_again() -> None:
    shoot = a_sleeper({"start": "0 20 * * *"})
    assert decision(with_trigger_time(shoot, NOW)) == AwaitEdge(datetime(2026, 3, 11, 20, tzinfo=UTC))


def test_an_edge_beyond_the_deadline_does_not_count() -> None:
    shoot = a_sleeper({"start": "0 17 * * *"})
    assert decision(shoot) == AwaitEdge(datetime(2026, 3, 11, 17, tzinfo=UTC))
    assert decision(shoot, deadline=timedelta(hours=4)) == SwitchHibernation(
        True, datetime(2026, 3, 10, 17, tzinfo=UTC)
    )


def test_an_edge_before_the_creation_does_not_count() -> None:
    shoot = a_sleeper({"start": "0 20 * * *"}, creationTimestamp="2026-03-10T20:00:00Z")
    assert isinstance(decision(shoot), AwaitEdge)


def test_without_a_deadline_an_edge_of_the_last_week_counts() -> None:
    monday, in_february = a_sleeper({"start": "0 8 * * MON"}), a_sleeper({"start": "0 8 24 2 *"})
    assert decision(monday, deadline=None) == SwitchHibernation(True, datetime(2026, 3, 9, 8, tzinfo=UTC))
    assert isinstance(decision(in_february, deadline=None), AwaitEdge)


def test_the_later_of_two_missed_edges_counts() -> None:
    shoot = a_sleeper({"start": "0 19 * * *", "end": "30 19 * * *"})
    assert decision(shoot) == SwitchHibernation(False, datetime(2026, 3, 10, 19, 30, tzinfo=UTC))


def test_a_shoot_that_has_failed_waits_for_the_next_edge() -> None:
    assert decision(a_sleeper({"start": "0 20 * * *"}, status=FAILED)) == AwaitEdge(
        datetime(2026, 3, 11, 20, tzinfo=UTC)
    )
    outdated = {**FAILED, "observedGeneration": 2}
    assert isinstance(decision(a_sleeper({"start": "0 20 * * *"}, status=outdated)), SwitchHibernation)


@pytest.mark.parametrize(
    ("shoot", "reason"),
    [
        (a_shoot(), "no schedules"),
        (a_sleeper({"start": "0 20 * * *"}, deletionTimestamp="2026-03-10T00:00:00Z"), "being deleted"),
        (a_sleeper({"start": "daily"}), "five fields"),
        (a_sleeper({"start": "0 20 * * *", "location": "Nowhere"}), "no time zone"),
    ],
)
def test_there_is_nothing_to_wait_for(shoot: Document, reason: str) -> None:
    found = decision(shoot)
    assert isinstance(found, NoSchedule)
    assert reason in found.reason
