"""What the dashboard records itself, and what it reads out of Events."""

from gardenbus.common.api.document import Document
from gardenbus.dashboard.domain.fill_history import LARGEST, FillHistory
from gardenbus.dashboard.domain.moves import moves_of
from tests.support.builders import a_seed, a_shoot
from tests.support.dashboards import Dashboard


def test_a_seeds_fill_is_recorded_when_it_changes_only():
    history = FillHistory()
    for at, used in ((1, 0), (2, 0), (3, 2), (3, 3), (9, 3)):
        history.record(at, used)
    assert history.samples == [(1, 0), (3, 3)]


def test_a_long_history_keeps_its_ends_and_a_bounded_number_of_samples():
    history = FillHistory()
    for at in range(10_000):
        history.record(at, at)
    samples = history.samples
    assert len(samples) <= LARGEST
    assert (samples[0], samples[-1]) == ((0, 0), (9_999, 9_999))
    assert samples == sorted(samples)


async def test_the_page_of_a_seed_gets_its_history():
    dashboard = Dashboard()
    dashboard.put(a_seed())
    dashboard.cache.record_fills(dashboard.clock.now())
    dashboard.put(a_shoot("apollo", spec={"seedName": "aws-eu1"}))
    dashboard.cache.record_fills(dashboard.clock.now())
    response = (await dashboard.get("/api/seeds/aws-eu1/fill")).json()
    assert (response["samples"][-1]["used"], response["capacity"]) == (1, 250)
    assert (await dashboard.get("/api/seeds/nobody/fill")).status == 404


def event(reason: str, message: str, at: str) -> Document:
    return {"reason": reason, "message": message, "at": at}


def test_moves_are_read_from_events_in_any_order():
    events = [
        event("MigrationRequested", 'max moves the control plane from seed "b" to "c"', "2026-01-02T00:00:00Z"),
        event("SchedulingSuccessful", 'Scheduled to seed "a"', "2026-01-01T00:00:00Z"),
        event("MigrationTakenBack", 'max has it stay on seed "b" instead of moving to "c"', "2026-01-02T00:01:00Z"),
        event("MigrationRequested", 'drain moves the control plane from seed "a" to "b"', "2026-01-01T12:00:00Z"),
    ]
    later, earlier = moves_of(events)
    assert (earlier.before, earlier.to, earlier.user, earlier.is_taken_back) == ("a", "b", "drain", False)
    assert (later.before, later.to, later.is_taken_back) == ("b", "c", True)
