"""How the view comes to know the landscape."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.bus import Message
from gardenbus.dashboard.watch.first_read import FirstRead, first_read
from gardenbus.dashboard.watch.waiting import WaitingShoot
from tests.support.builders import a_condition, a_seed, a_shoot
from tests.support.dashboards import Dashboard
from tests.support.eventually import HANG_SECONDS, eventually


@pytest.fixture
async def dashboard() -> AsyncIterator[Dashboard]:
    dashboard = Dashboard()
    follow = dashboard.updater
    tasks = [asyncio.create_task(run()) for run in (follow.run_objects, follow.run_leases, follow.run_events)]
    yield dashboard
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def test_what_is_announced_is_known_and_what_is_deleted_is_not(dashboard: Dashboard):
    await dashboard.announce(a_shoot("apollo", spec={"seedName": "aws-eu1"}))
    await dashboard.announce(a_seed())

    async def is_cached() -> None:
        assert dashboard.cache.used("aws-eu1") == 1
        assert dashboard.cache.summary()["seedsReady"] == 1

    await eventually(is_cached)
    await dashboard.announce(a_shoot("apollo"), version=2, verb="deleted")

    async def is_removed() -> None:
        assert not dashboard.cache.shoots
        assert dashboard.cache.used("aws-eu1") == 0

    await eventually(is_removed)


async def test_a_stream_that_begins_anew_forgets_what_it_does_not_mention(dashboard: Dashboard):
    await dashboard.announce(a_shoot("apollo"))
    await dashboard.announce(a_shoot("artemis"))

    async def is_cached() -> None:
        assert len(dashboard.cache.shoots) == 2
        assert dashboard.cache.synced

    await eventually(is_cached)
    dashboard.bus.server.recreate("OBJECTS")
    await dashboard.announce(a_shoot("artemis"))

    async def swept() -> None:
        assert {key.name for key in dashboard.cache.shoots} == {"artemis"}

    await eventually(swept)


async def test_kinds_that_hold_credentials_are_not_followed(dashboard: Dashboard):
    for kind in ("Secret", "InternalSecret", "ShootState", "Work"):
        await dashboard.announce({"kind": kind, "metadata": {"namespace": "garden", "name": "hush"}})
    await dashboard.announce({"kind": "ConfigMap", "metadata": {"namespace": "garden", "name": "plain"}})
    await dashboard.announce(a_shoot("apollo"))

    async def is_cached() -> None:
        assert [key.name for key in dashboard.cache.shoots] == ["apollo"]
        assert dashboard.cache.synced

    await eventually(is_cached)
    assert [key.kind for key in dashboard.cache.named(["hush"], 10)] == []
    assert [key.kind for key in dashboard.cache.named(["plain"], 10)] == ["configmap"]


async def test_heartbeats_events_and_rubbish_are_taken(dashboard: Dashboard):
    event = {
        "metadata": {"name": "grove.1"},
        "involvedObject": {"kind": "SeedAutoscaler", "namespace": "garden", "name": "grove"},
        "reason": "SuccessfulRescale",
        "message": "New size: 2; reason: more shoots",
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }
    await dashboard.bus.publish(Message("garden.event.seedautoscaler.garden.grove", b"no json"))
    await dashboard.bus.publish(Message("garden.event.seedautoscaler.garden.grove", json.dumps(event).encode()))
    await dashboard.bus.publish(Message("garden.changed.shoot.garden-dev.apollo", b"no json"))
    await dashboard.bus.publish(Message("garden.lease.aws-eu1", b"{}"))

    async def consumed() -> None:
        assert "aws-eu1" in dashboard.cache.heartbeats
        history = dashboard.cache.histories[ObjectKey("seedautoscaler", "garden", "grove")]
        assert [sample.desired for sample in history] == [2]
        assert not dashboard.cache.shoots

    await eventually(consumed)


FULL = "Failed to schedule Shoot: 0/1 seeds are eligible: {a => seed has no capacity left for shoots}"


async def test_numbers_and_what_waits_come_from_indexes_until_all_shoots_are_read():
    dashboard = Dashboard()
    await dashboard.serve_api()
    reason = {"message": FULL, "schedulerName": "default-scheduler"}
    shoots = [["garden-dev", "apollo", "2026-01-02T03:04:05Z"], ["garden-dev", "gone", "2026-01-02T03:04:05Z"]]
    dashboard.replies |= {
        "census": {"objects.shoot": 3},
        "usage": {"seeds": {"aws-eu1": 1}},
        "waiting": {"reasons": [{**reason, "shoots": shoots}], "total": 2, "undecided": 0},
    }
    dashboard.put(a_seed())
    first_reads = asyncio.create_task(dashboard.updater.run_first_reads())

    async def is_first_read() -> None:
        assert [(group.cause, group.shoots) for group in dashboard.cache.waiting.groups()] == [("full", 2)]

    await eventually(is_first_read)
    summary = dashboard.cache.summary()
    shown = {name: summary[name] for name in ("shoots", "shootsRead", "waiting", "used", "synced")}
    assert shown == {"shoots": 3, "shootsRead": 0, "waiting": 2, "used": 1, "synced": False}

    await dashboard.announce(a_shoot("apollo", spec={"seedName": "aws-eu1"}))
    await dashboard.announce(a_seed())
    objects = asyncio.create_task(dashboard.updater.run_objects())

    async def is_read() -> None:
        assert dashboard.cache.synced

    await eventually(is_read)
    assert dashboard.cache.waiting.groups() == []
    summary = dashboard.cache.summary()
    assert [summary[name] for name in ("shoots", "shootsRead", "waiting", "used")] == [1, 1, 0, 1]
    await asyncio.wait_for(first_reads, HANG_SECONDS)
    objects.cancel()
    await asyncio.wait([objects])


async def test_the_summary_counts_places_where_there_is_a_limit_and_shoots_on_seeds_that_are_not_ready():
    dashboard = Dashboard()
    silent: Document = {
        "conditions": [a_condition("GardenletReady", "Unknown", lastHeartbeatTime="2026-01-02T03:04:05Z")]
    }
    seeds = [
        a_seed("limited", shoots="10"),
        a_seed("endless", shoots=None),
        a_seed("silent", status=silent, shoots="5"),
    ]
    shoots = [a_shoot(f"s{n}", spec={"seedName": seed}) for n, seed in enumerate(("limited", "endless", "silent"))]
    for document in (*seeds, *shoots):
        await dashboard.announce(document)
    objects = asyncio.create_task(dashboard.updater.run_objects())

    async def is_read() -> None:
        assert dashboard.cache.summary()["used"] == 3

    await eventually(is_read)
    summary = dashboard.cache.summary()
    assert {name: summary[name] for name in ("places", "usedOfPlaces", "seedsWithoutLimit", "onUnreadySeeds")} == {
        "places": 15,
        "usedOfPlaces": 2,
        "seedsWithoutLimit": 1,
        "onUnreadySeeds": 1,
    }
    shown = {seed["name"]: seed["heartbeat"] for seed in json.loads(bytes(dashboard.cache.shown_seeds()))}
    assert shown == {"limited": None, "endless": None, "silent": 1767323045000}
    objects.cancel()
    await asyncio.wait([objects])


async def test_a_row_that_was_announced_is_newer_than_an_index():
    dashboard = Dashboard()
    dashboard.put(a_shoot("apollo", spec={"seedName": "aws-eu1"}))
    key = ObjectKey("shoot", "garden-dev", "apollo")
    row = WaitingShoot("2026-01-02T03:04:05Z", "garden-dev", "apollo", "default-scheduler", "full")
    dashboard.cache.put_first(FirstRead(1, 1, {}, {key: ("full", row), key._replace(name="gemini"): ("full", row)}))

    assert list(dashboard.cache.waiting.keys()) == [key._replace(name="gemini")]
    dashboard.cache.put_first(FirstRead(1, 1, {}, {}))
    assert list(dashboard.cache.waiting.keys()) == []


async def test_an_apiserver_that_cannot_group_what_waits_yet_is_asked_again():
    dashboard = Dashboard()
    await dashboard.serve_api()
    dashboard.replies |= {
        "census": {"objects.shoot": 3},
        "usage": {"seeds": {"aws-eu1": 1}},
        "waiting": {"items": [], "total": 2, "undecided": 0},
    }
    first = await first_read(dashboard.api)
    assert (first.shoots, first.shoots_waiting, first.usage) == (3, 2, {"aws-eu1": 1})
    assert not first.waiting
