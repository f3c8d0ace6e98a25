"""How the view comes to know the landscape."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from gardenbus.common.ports.bus import Message
from gardenbus.common.resources.keys import ObjectKey
from tests.support.builders import a_seed, a_shoot
from tests.support.dashboards import Dashboard
from tests.support.eventually import eventually


@pytest.fixture
async def dashboard() -> AsyncIterator[Dashboard]:
    dashboard = Dashboard()
    follow = dashboard.following
    tasks = [asyncio.create_task(run()) for run in (follow.run_objects, follow.run_leases, follow.run_events)]
    yield dashboard
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def test_what_is_announced_is_known_and_what_is_deleted_is_not(dashboard: Dashboard):
    await dashboard.announce(a_shoot("apollo", spec={"seedName": "aws-eu1"}))
    await dashboard.announce(a_seed())

    async def known() -> None:
        assert dashboard.view.used("aws-eu1") == 1
        assert dashboard.view.summary()["seedsReady"] == 1

    await eventually(known, within=5)
    await dashboard.announce(a_shoot("apollo"), version=2, verb="deleted")

    async def forgotten() -> None:
        assert not dashboard.view.shoots
        assert dashboard.view.used("aws-eu1") == 0

    await eventually(forgotten, within=5)


async def test_a_stream_that_begins_anew_forgets_what_it_does_not_mention(dashboard: Dashboard):
    await dashboard.announce(a_shoot("apollo"))
    await dashboard.announce(a_shoot("artemis"))

    async def known() -> None:
        assert len(dashboard.view.shoots) == 2
        assert dashboard.view.synced

    await eventually(known, within=5)
    dashboard.bus.server.recreate("OBJECTS")
    await dashboard.announce(a_shoot("artemis"))

    async def swept() -> None:
        assert {key.name for key in dashboard.view.shoots} == {"artemis"}

    await eventually(swept, within=5)


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

    async def taken() -> None:
        assert "aws-eu1" in dashboard.view.heartbeats
        history = dashboard.view.histories[ObjectKey("seedautoscaler", "garden", "grove")]
        assert [sample.desired for sample in history] == [2]
        assert not dashboard.view.shoots

    await eventually(taken, within=5)
