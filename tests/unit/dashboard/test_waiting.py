"""Who waits, grouped by cause, page by page."""

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.unschedulable import cause_of
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.bus import Message
from tests.support.builders import a_shoot
from tests.support.dashboards import Dashboard

NO_ROOM = "seed has no capacity left for shoots"
FULL = f"Failed to schedule Shoot: 0/2 seeds are eligible: {{a => {NO_ROOM}, b => {NO_ROOM}}}"
MIXED = f"Failed to schedule Shoot: 0/2 seeds are eligible: {{a => invalid networks: overlap, b => {NO_ROOM}}}"


def waiting(name: str, message: str, created: str = "2026-01-02T03:04:05Z", namespace: str = "garden-dev") -> Document:
    operation = {"type": "Create", "state": "Pending", "description": message}
    return a_shoot(name, namespace, metadata={"creationTimestamp": created}, status={"lastOperation": operation})


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        (FULL, "full"),
        (FULL.replace("0/2", "0/40"), "for other reasons, full"),
        (MIXED, "full, with overlapping networks"),
        (
            "none of the 5 seeds left supports the access restrictions moon",
            "no seed supports the access restrictions moon",
        ),
        ("not even the one seed left has 3 zones", "no seed has 3 zones"),
        ("the remaining seed lacks 3 zones", "no seed has 3 zones"),
        ("none of the 12 remaining seeds has 3 zones", "no seed has 3 zones"),
        ("none of the 13 seeds is schedulable: 12 not ready, 1 cordoned", "no seed is schedulable"),
        ("the namespace 'a' belongs to no Project", "the namespace 'a' belongs to no Project"),
    ],
)
def test_a_cause_is_the_same_however_many_seeds_there_are(message: str, cause: str):
    assert cause_of(message) == cause


async def test_shoots_that_wait_are_grouped_by_cause_and_none_is_cut():
    dashboard = Dashboard()
    names = [f"s{number:04}" for number in range(1_500)]
    dashboard.put(*(waiting(name, FULL) for name in names), waiting("other", MIXED), a_shoot("placed"))
    response = (await dashboard.get("/api/waiting")).json()
    assert (response["total"], response["groups"]) == (1_501, 2)
    assert [(each["cause"], each["shoots"]) for each in response["items"]] == [
        ("full", 1_500),
        ("full, with overlapping networks", 1),
    ]
    found: list[str] = []
    while len(found) < 1_500:
        page = (await dashboard.get(f"/api/waiting/shoots?cause=full&limit=100&offset={len(found)}")).json()
        assert page["total"] == 1_500
        found += [each["name"] for each in page["items"]]
    assert found == names


async def test_the_longest_waiting_comes_first_with_its_short_reason_and_its_next_attempt():
    dashboard = Dashboard()
    dashboard.put(waiting("late", FULL, "2026-01-03T00:00:00Z"), waiting("early", FULL, "2026-01-01T00:00:00Z"))
    subject = dashboard.subjects.scheduling("default-scheduler", ObjectKey("shoot", "garden-dev", "late"))
    await dashboard.bus.publish(Message(subject))
    early, late = (await dashboard.get("/api/waiting/shoots?cause=full")).json()["items"]
    assert (early["name"], early["brief"], early["nextAttempt"], early["queued"]) == (
        "early",
        "0/2 seeds: 2 full",
        None,
        False,
    )
    assert (late["name"], late["queued"]) == ("late", True)


async def test_a_filter_finds_shoots_and_causes():
    dashboard = Dashboard()
    dashboard.put(waiting("apollo", FULL), waiting("artemis", FULL), waiting("ares", MIXED, namespace="garden-war"))

    async def found(words: str) -> list[tuple[str, int]]:
        groups = (await dashboard.get(f"/api/waiting?search={words}")).json()["items"]
        return [(each["cause"], each["shoots"]) for each in groups]

    assert await found("apollo") == [("full", 1)]
    assert await found("overlapping") == [("full, with overlapping networks", 1)]
    assert await found("garden-war%20ares") == [("full, with overlapping networks", 1)]
    assert await found("nobody") == []
    page = (await dashboard.get("/api/waiting/shoots?cause=full&search=apollo")).json()
    assert [each["name"] for each in page["items"]] == ["apollo"]
    assert (await dashboard.get("/api/waiting?colour=red")).status == 400


async def test_a_shoot_that_finds_a_seed_or_another_cause_leaves_its_group():
    dashboard = Dashboard()
    dashboard.put(waiting("apollo", FULL), waiting("artemis", FULL))
    dashboard.put(a_shoot("apollo", spec={"seedName": "aws"}), waiting("artemis", MIXED))
    groups = (await dashboard.get("/api/waiting")).json()
    assert [(each["cause"], each["shoots"]) for each in groups["items"]] == [("full, with overlapping networks", 1)]
    dashboard.cache.remove(ObjectKey("shoot", "garden-dev", "artemis"))
    assert (await dashboard.get("/api/waiting")).json()["total"] == 0
