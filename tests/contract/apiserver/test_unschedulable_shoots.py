"""What waits for a seed can be asked for, and be tried at once."""

from datetime import UTC, datetime

import pytest

from gardenbus.common.adapters.nats.jetstream import connect
from gardenbus.common.api.garden.scheduling_requirements import REQUIREMENTS
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.timers import Timers
from tests.contract.apiserver.conftest import Apiserver
from tests.support.builders import a_seed, a_shoot

APOLLO = ObjectKey("shoot", "garden-dev", "apollo")


async def mark_unschedulable(apiserver: Apiserver, key: ObjectKey, message: str) -> None:
    await apiserver.kit.marked_unschedulable(await apiserver.now(key), message=message)


async def test_who_waits_is_told_with_why_and_when_it_is_tried_again(apiserver: Apiserver) -> None:
    for name in ("apollo", "gemini", "mercury"):
        await apiserver.request("apply", a_shoot(name))
    await mark_unschedulable(apiserver, APOLLO, "no seed is large enough")
    apiserver.kit.clock.advance(60)
    await mark_unschedulable(apiserver, APOLLO._replace(name="gemini"), "no seed is ready")
    async with connect(apiserver.nats_url, "timing", apiserver.subjects.prefix) as bus:
        work = apiserver.subjects.scheduling("default-scheduler", APOLLO)
        await Timers(bus, apiserver.subjects).enqueue_after(work, 300)

    waiting = await apiserver.request("waiting")

    apollo, gemini = waiting["items"]
    due = datetime.fromisoformat(apollo.pop("nextAttempt"))
    assert 290 < (due - datetime.now(UTC)).total_seconds() < 310
    assert apollo == {
        "namespace": "garden-dev",
        "name": "apollo",
        "schedulerName": "default-scheduler",
        "message": "no seed is large enough",
        "since": "2026-01-02T03:04:05Z",
        "attempts": 1,
        "queued": False,
    }
    assert (gemini["name"], gemini["message"], gemini["nextAttempt"]) == ("gemini", "no seed is ready", None)
    assert (waiting["total"], waiting["undecided"]) == (2, 1)
    assert (await apiserver.request("waiting.default-scheduler"))["total"] == 2
    assert (await apiserver.request("waiting.another"))["items"] == []


async def test_of_those_who_wait_some_can_be_chosen(apiserver: Apiserver) -> None:
    for name in ("apollo", "gemini"):
        await apiserver.request("apply", a_shoot(name))
        await mark_unschedulable(apiserver, APOLLO._replace(name=name), "no seed is ready")

    (gemini,) = (await apiserver.request("waiting", {"namespace": "garden-dev", "name": "gemini"}))["items"]
    assert gemini["name"] == "gemini"
    assert len((await apiserver.request("waiting", {"limit": 1}))["items"]) == 1
    (small,) = (await apiserver.request("waiting", {"classes": True}))["classes"]
    assert (small["class"], small["waiting"]) == ("small", 2)
    assert (await apiserver.rejection("waiting", {"limit": 0}))["code"] == 400


@pytest.mark.parametrize(("priority", "band"), [(0, ""), (7, "+1"), (-7, "-1")])
async def test_a_shoot_that_waits_is_tried_now_and_its_timer_is_gone(
    apiserver: Apiserver, priority: int, band: str
) -> None:
    await apiserver.request("apply", a_shoot(metadata={"annotations": {REQUIREMENTS: f"priority: {priority}"}}))
    await mark_unschedulable(apiserver, APOLLO, "no seed is ready")
    subjects = apiserver.subjects
    work = subjects.scheduling("default-scheduler", APOLLO, band)
    async with connect(apiserver.nats_url, "timing", subjects.prefix) as bus:
        await Timers(bus, subjects).enqueue_after(work, 300)

        response = await apiserver.request("retry.shoot.garden-dev.apollo")

        assert response["nextAttemptWas"]
        assert await bus.subjects(subjects.stream("QUEUES"), f"{subjects.prefix}.queue.scheduling.>") == {work: 1}
        assert not await bus.subjects(subjects.stream("QUEUES"), f"{subjects.prefix}.later.>")
    assert (await apiserver.request("waiting"))["items"][0]["queued"]


async def test_only_a_shoot_without_a_seed_is_tried(apiserver: Apiserver) -> None:
    await apiserver.request("apply", a_seed("aws-eu1"))
    await apiserver.request("apply", a_shoot())
    assert await apiserver.kit.bound(await apiserver.now(APOLLO), "aws-eu1") == "bound"

    assert "has a seed, aws-eu1" in (await apiserver.rejection("retry.shoot.garden-dev.apollo"))["message"]
    assert (await apiserver.rejection("retry.shoot.garden-dev.nobody"))["code"] == 404
    assert (await apiserver.rejection("retry.seed.aws-eu1"))["code"] == 400


async def test_who_waits_can_be_grouped_by_the_reason(apiserver: Apiserver) -> None:
    reasons = {"apollo": "no seed is ready", "gemini": "no seed is large enough", "mercury": "no seed is ready"}
    for name, reason in reasons.items():
        await apiserver.request("apply", a_shoot(name))
        await mark_unschedulable(apiserver, APOLLO._replace(name=name), reason)
        apiserver.kit.clock.advance(60)

    waiting = await apiserver.request("waiting", {"grouped": True})

    assert waiting["total"] == 3
    assert [(each["message"], each["schedulerName"], each["shoots"]) for each in waiting["reasons"]] == [
        (
            "no seed is ready",
            "default-scheduler",
            [
                ["garden-dev", "apollo", "2026-01-02T03:04:05Z"],
                ["garden-dev", "mercury", "2026-01-02T03:06:05Z"],
            ],
        ),
        ("no seed is large enough", "default-scheduler", [["garden-dev", "gemini", "2026-01-02T03:05:05Z"]]),
    ]
    only = await apiserver.request("waiting", {"grouped": True, "name": "gemini"})
    assert [each["message"] for each in only["reasons"]] == ["no seed is large enough"]
