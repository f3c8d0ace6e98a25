"""Hibernation by schedules: each case of Gardener's `hibernation/reconciler_test.go`, `add_test.go` and integration.

Its times are of Tuesday, 2022-04-12.
"""

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.hibernation import edges_of, latest_edge, next_edge_at
from gardenbus.common.api.keys import ObjectKey
from gardenbus.controllermanager.controllers import shoot_hibernation
from gardenbus.controllermanager.domain.shoot_hibernation import (
    AwaitEdge,
    NoSchedule,
    SwitchHibernation,
    decide_hibernation,
    with_trigger_time,
)
from tests.support.builders import a_cloudprofile, a_project, a_shoot
from tests.support.clocks import FakeClock
from tests.support.loops import Garden

AT_0, AT_2, AT_7, AT_16, AT_19 = (datetime(2022, 4, 12, hour, tzinfo=UTC) for hour in (0, 2, 7, 16, 19))
DAY, SECOND = timedelta(days=1), timedelta(seconds=1)
SHORT, LONG = timedelta(seconds=10), timedelta(hours=10)
EVERY_2, EVERY_7 = "00 02 * * 1,2,3,4,5,6,0", "00 07 * * 1,2,3,4,5,6,0"
BY_DAY: Document = {"start": EVERY_7, "end": EVERY_2}
THREE: list[Document] = [
    {**BY_DAY, "location": "Europe/Berlin"},
    {"start": "00 08 * * 1,2,3,4,5", "end": "00 19 * * 1,2,3,4,5", "location": "Europe/Sofia"},
    {"start": EVERY_2, "end": EVERY_7},
]


class Case(NamedTuple):
    now: datetime
    created_at: datetime
    hibernates: bool | None
    """None: nothing is switched."""

    next_at: datetime | None
    """None: it is not reconciled again."""

    deadline: timedelta | None = None
    triggered_at: datetime | None = None
    schedules: list[Document] = [BY_DAY]
    status: Document = {}


CASES = {
    "no schedules": Case(AT_2, AT_2, None, None, schedules=[]),
    "a schedule that says nothing": Case(AT_2, AT_2, None, None, schedules=[{"start": ""}]),
    "30 seconds before it wakes up": Case(AT_2 - 30 * SECOND, AT_2 - DAY, True, AT_2),
    "just before it sleeps": Case(AT_7 - SECOND, AT_7 - DAY, False, AT_7),
    "just after it should sleep": Case(AT_7 + SECOND, AT_7 - DAY, True, AT_2 + DAY),
    "exactly when it should sleep": Case(AT_7, AT_7 - 30 * SECOND, True, AT_2 + DAY),
    "it was just created": Case(AT_19 + SECOND, AT_19, None, AT_2 + DAY),
    "several schedules, in time zones": Case(AT_7 + SECOND, AT_7 - DAY, False, AT_16, schedules=THREE),
    "switched before, after the start": Case(AT_7 + SECOND, AT_7 - DAY, True, AT_2 + DAY, triggered_at=AT_2),
    "switched before, before the start": Case(AT_7 - SECOND, AT_7 - DAY, None, AT_7, triggered_at=AT_2),
    "within the deadline": Case(AT_7 + SECOND, AT_7 - DAY, True, AT_2 + DAY, LONG),
    "switched before, within the deadline": Case(AT_7 + SECOND, AT_7 - DAY, True, AT_2 + DAY, LONG, AT_2),
    "beyond the deadline": Case(AT_7 + SHORT + SECOND, AT_7 - DAY, None, AT_2 + DAY, SHORT),
    "switched before, beyond the deadline": Case(AT_7 + SHORT + SECOND, AT_7 - DAY, None, AT_2 + DAY, SHORT, AT_2),
    "it has failed": Case(
        AT_7 + SHORT + SECOND, AT_7 + SECOND, None, AT_2 + DAY, SHORT, status={"lastOperation": {"state": "Failed"}}
    ),
}


def a_sleeper(case: Case) -> Document:
    metadata = {"creationTimestamp": case.created_at.isoformat()}
    shoot = a_shoot(metadata=metadata, spec={"hibernation": {"schedules": case.schedules}}, status=dict(case.status))
    return shoot if case.triggered_at is None else with_trigger_time(shoot, case.triggered_at)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_is_switched_and_when_it_is_reconciled_again(case: Case) -> None:
    shoot = a_sleeper(case)
    found = decide_hibernation(shoot, case.now, case.deadline)
    if case.hibernates is not None:
        assert isinstance(found, SwitchHibernation)
        assert found.hibernates is case.hibernates
        found = decide_hibernation(with_trigger_time(shoot, case.now), case.now, case.deadline)
    if case.next_at is None:
        assert isinstance(found, NoSchedule)
    else:
        assert found == AwaitEdge(case.next_at)


@pytest.mark.parametrize(
    ("since", "before"),
    [(AT_2 - 2 * DAY, AT_0), (AT_2 - timedelta(hours=1), None)],
)
def test_the_edges_before_and_after_an_instant(since: datetime, before: datetime | None) -> None:
    edges = edges_of({"hibernation": {"schedules": [{"start": EVERY_2, "location": "Europe/Berlin"}]}})
    assert next_edge_at(edges, AT_2) == AT_0 + DAY
    found = latest_edge(edges, since, AT_2)
    assert (found and found.at) == before


async def test_a_shoot_sleeps_and_wakes_up_by_the_minute() -> None:
    garden, key = Garden(clock=FakeClock(AT_2 - SECOND)), ObjectKey("shoot", "garden-dev", "apollo")
    await garden.serve_apiserver()
    await garden.add(a_project("dev"), a_cloudprofile())
    await garden.add(a_shoot(spec={"hibernation": {"schedules": [{"start": "0 * * * *", "end": "1 * * * *"}]}}))
    for is_enabled, at in ((True, "2022-04-12T02:00:59Z"), (False, "2022-04-12T02:01:59Z")):
        garden.clock.advance(60)
        await garden.reconcile(shoot_hibernation.LOOP, key)
        shoot: Any = await garden.now("shoot", "apollo", "garden-dev")
        assert shoot["spec"]["hibernation"]["enabled"] is is_enabled
        assert shoot["status"]["lastHibernationTriggerTime"] == at


@pytest.mark.parametrize(
    ("old", "new", "is_reconciled"),
    [
        ("none", "unscheduled", False),
        ("none", "weekdays", True),
        ("weekdays", "weekdays", False),
        ("weekdays", "unscheduled", False),
        ("weekdays", "daily", True),
    ],
)
async def test_which_changes_reconcile_a_shoot(old: str, new: str, *, is_reconciled: bool) -> None:
    hibernations: dict[str, Document | None] = {
        "unscheduled": None,
        "weekdays": {"schedules": [{"start": "00 20 * * 1,2,3,4,5"}]},
        "daily": {"schedules": [{"start": "00 20 * * 1,2,3,4,5,6,0"}]},
    }
    garden = Garden()
    changed = shoot_hibernation.LOOP.build(garden.context(shoot_hibernation.NAME)).changed
    stored = await garden.add(a_shoot(spec={"hibernation": hibernations[old if old != "none" else new]}))
    before = None if old == "none" else stored
    if old not in ("none", new):

        def change(shoot: Document) -> None:
            shoot["spec"]["hibernation"] = hibernations[new] or {}

        stored = await garden.change(stored.key, change)
    changed(stored.key, before, stored)
    assert bool(garden.enqueued) is is_reconciled
