"""The dashboard's page of operations on a real NATS server."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest
from starlette.types import ASGIApp

from gardenbus.common.adapters.nats.jetstream import JetStreamBus, connect
from gardenbus.common.api.keys import Header, ObjectKey, Subjects
from gardenbus.common.controller.timers import Timers
from gardenbus.common.ports.bus import Message, ServiceIdentity
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.dashboard.api_client import GardenApiClient
from gardenbus.dashboard.settings import DashboardSettings
from gardenbus.dashboard.watch.history import HistoryCache
from gardenbus.dashboard.watch.landscape import DashboardCache
from gardenbus.dashboard.watch.operations import AdminConnection, OperationsApi, OperationsCache
from gardenbus.dashboard.web.application import application, landscape_views
from gardenbus.dashboard.web.change_feed import ChangeFeed
from gardenbus.diagnostics.findings import DiagnosticFinding
from gardenbus.diagnostics.replication import REDIS_REPLICAS, reported
from gardenbus.relay.replica_report import report_replicas
from tests.support.dashboards import TOKEN, send_request
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.servers import Server

SUBJECTS = Subjects()
SAME = {"origin": "http://127.0.0.1:8080", "x-gardenbus-token": TOKEN}
BODY = b'{"kind":"Shoot","metadata":{"name":"apollo","namespace":"garden-dev"},"spec":{"token":"hush"}}'


@pytest.fixture
async def bus(nats_server: Server) -> AsyncIterator[JetStreamBus]:
    async with connect(nats_server.url, "operations") as bus:
        await bus.ensure_streams()
        yield bus


@pytest.fixture
async def app(nats_server: Server, bus: JetStreamBus) -> AsyncIterator[ASGIApp]:
    clock, cache, api, admin = SystemClock(), DashboardCache(), GardenApiClient(bus, SUBJECTS), AdminConnection()
    connecting = asyncio.create_task(admin.run(nats_server.url))
    settings, changes = DashboardSettings(dashboard_allow_writes=True), ChangeFeed(cache, clock, "epoch")
    operations = OperationsCache(OperationsApi(api, cache), admin, clock)
    history = HistoryCache(bus, SUBJECTS, clock)
    parts = partial(landscape_views, settings, cache=cache, api=api, changes=changes)
    views = parts(operations=operations, history=history, clock=clock)
    yield application(settings, api=api, views=views, clock=clock, token=TOKEN)
    connecting.cancel()
    await asyncio.wait([connecting])


async def read(app: ASGIApp, path: str) -> Any:
    response = await send_request(app, path)
    assert response.status == 200, response.body
    return response.json()


async def reject(bus: JetStreamBus, body: bytes = BODY) -> None:
    headers = {Header.SUBJECT: "garden.apply", Header.REASON: "Invalid: spec.region: is needed"}
    headers[Header.SHA256] = hashlib.sha256(body).hexdigest()
    await bus.publish(Message(SUBJECTS.rejected("garden.apply"), body, headers))


async def test_queues_are_shown_with_the_work_handed_out_each_second(app: ASGIApp, bus: JetStreamBus):
    queue = await bus.work_queue("QUEUES", "migration", SUBJECTS.queue_of("migration"))
    await bus.publish(Message(SUBJECTS.queue("migration", "garden-dev", "apollo")))
    [row] = (await read(app, "/api/queues"))["items"]
    assert (row["queue"], row["pending"], row["listening"], row["perSecond"]) == ("migration", 1, 0, None)
    assert row["oldest"]
    [work] = await queue.fetch(1, HANG_SECONDS)
    await work.ack()

    async def handed_out() -> None:
        [row] = (await read(app, "/api/queues"))["items"]
        assert row["perSecond"]

    await eventually(handed_out)


async def test_services_are_shown_with_versions_and_replicas(app: ASGIApp, bus: JetStreamBus, nats_server: Server):
    async with connect(nats_server.url, "second", manages_streams=False) as second:
        for connection, version in ((bus, "1.0.0"), (second, "1.1.0")):
            await connection.register(ServiceIdentity("scheduler", version, metadata={"prefix": "garden"}))
        [service] = (await read(app, "/api/services"))["items"]
    assert (service["name"], service["versions"]) == ("scheduler", ["1.0.0", "1.1.0"])
    assert len(service["replicas"]) == 2


async def test_the_checks_are_those_of_doctor_and_one_that_fails_keeps_none_from_being_made(
    app: ASGIApp, bus: JetStreamBus
):
    found = await read(app, "/api/checks")
    states = {each["check"]: each["state"] for each in found["findings"]}
    assert (states["streams"], states["api"], states["redis"]) == ("ok", "failed", "skipped")
    assert found["state"] == "failed"


async def test_the_lag_of_the_replicas_of_redis_is_shown_as_a_relay_of_the_landscape_reports_it(
    app: ASGIApp, bus: JetStreamBus, nats_server: Server
):
    info = {"role": "master", "master_repl_offset": "1500", "slave0": "ip=h,port=7,state=online,offset=500,lag=0"}

    async def read_info() -> dict[str, str]:
        return info

    async with connect(nats_server.url, "elsewhere", manages_streams=False) as other:
        await other.register(ServiceIdentity("relay", "1.0.0", metadata={"prefix": "another"}))
        other.note(REDIS_REPLICAS, reported(DiagnosticFinding("redis replicas", "failed", "of another landscape")))
        await bus.register(ServiceIdentity("relay", "1.0.0", metadata={"prefix": "garden"}))
        reporting = asyncio.create_task(report_replicas(read_info, bus.note, SystemClock(), 60))
        await asyncio.sleep(0)
        findings = (await read(app, "/api/checks"))["findings"]
        reporting.cancel()
    assert [(each["state"], each["found"]) for each in findings if each["check"] == "redis replicas"] == [
        ("ok", "h:7 online, 1,000 bytes behind")
    ]


async def test_rejected_messages_are_paged_and_shown_without_credentials(app: ASGIApp, bus: JetStreamBus):
    for _ in range(45):
        await reject(bus)
    first = await read(app, "/api/rejected")
    second = await read(app, f"/api/rejected?before={first['older']}")
    third = await read(app, f"/api/rejected?before={second['older']}")
    numbers = [each["id"] for page in (first, second, third) for each in page["items"]]
    assert numbers == list(range(45, 0, -1))
    assert third["older"] == 0
    shown = await read(app, "/api/rejected/45")
    assert "apollo" in shown["body"]
    assert "hush" not in shown["body"]
    assert (await send_request(app, "/api/rejected/46")).status == 404


async def test_a_replayed_message_goes_to_where_it_was_sent_and_its_outcome_is_shown(app: ASGIApp, bus: JetStreamBus):
    queue = await bus.work_queue("REQUESTS", "apiserver", ">")
    await reject(bus)

    async def replayed() -> Any:
        response = await send_request(app, "/api/rejected/1/replay", method="POST", headers=SAME)
        assert response.status == 200, response.body
        return response.json()

    replaying = asyncio.create_task(replayed())
    [work] = await queue.fetch(1, HANG_SECONDS)
    assert (work.message.subject, work.message.body) == ("garden.apply", BODY)
    await work.ack()
    outcome = await replaying
    assert (outcome["state"], outcome["message"]) == ("taken", "shoot garden-dev/apollo")
    await reject(bus)  # as a service that was sent it once more
    again = await replayed()
    assert (again["state"], again["isDuplicate"], again["repeated"]) == ("rejected", True, 2)
    assert not await queue.fetch(1, 0)


async def test_the_next_attempt_of_a_shoot_is_read_from_its_queue(app: ASGIApp, bus: JetStreamBus):
    timers = Timers(bus, SUBJECTS)
    subject = SUBJECTS.scheduling("default-scheduler", ObjectKey("shoot", "garden-dev", "apollo"))
    assert await timers.next_attempt(subject) == (None, False)
    await timers.enqueue_after(subject, 300)
    due_at, is_queued = await timers.next_attempt(subject)
    assert due_at is not None
    assert not is_queued
    await bus.publish(timers.enqueue_message(subject))
    assert await timers.next_attempt(subject) == (None, True)
