"""Every service says who it is and how it does, in the words of NATS' micro services."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from structlog.contextvars import get_contextvars

from gardenbus.common.errors import BadRequest
from gardenbus.common.ports.bus import Request, ServiceIdentity
from tests.support.buses import BusUnderTest, on_jetstream
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.servers import start_nats

IDENTITY = ServiceIdentity("apiserver", "0.1.0", "Admits what comes from outside", {"prefix": "garden"})


@pytest.fixture
async def live(tmp_path: Path) -> AsyncIterator[tuple[BusUnderTest, Client]]:
    server = await asyncio.to_thread(start_nats, tmp_path / "nats")
    bus = await on_jetstream(server.url)
    client = await nats.connect(server.url)  # pyright: ignore[reportUnknownMemberType]
    try:
        yield bus, client
    finally:
        await client.close()
        await bus.stack.aclose()
        server.stop()


async def request_control(client: Client, verb: str, *, responses: int = 1) -> list[dict[str, Any]]:
    """What is answered on a control subject, by everybody who is there; LookupError while nobody is."""
    found: list[dict[str, Any]] = []
    is_alone = False
    inbox = client.new_inbox()
    arrived = asyncio.Event()

    async def receive(message: Msg) -> None:
        nonlocal is_alone
        if message.data:
            found.append(json.loads(message.data))
        else:  # the server says so itself
            is_alone = True
        if is_alone or len(found) >= responses:
            arrived.set()

    subscription = await client.subscribe(inbox, cb=receive)  # pyright: ignore[reportUnknownMemberType]
    await client.publish(f"$SRV.{verb}", b"", reply=inbox)
    await asyncio.wait_for(arrived.wait(), HANG_SECONDS)
    await asyncio.sleep(0.05)
    await subscription.unsubscribe()
    if is_alone:
        raise LookupError(f"nobody listens to {verb}")
    return found


async def echo(request: Request) -> bytes:
    if request.body == b"no":
        raise BadRequest("not this")
    await asyncio.sleep(0.01)
    return request.body


async def test_replicas_answer_each_with_an_id_of_its_own(live: tuple[BusUnderTest, Client]) -> None:
    bus, client = live
    await bus.bus.register(IDENTITY)
    await bus.another.register(IDENTITY)

    found = await request_control(client, "PING", responses=2)

    assert len(found) == 2
    assert len({each["id"] for each in found}) == 2
    expected = {"type": "io.nats.micro.v1.ping_response", "name": "apiserver", "version": "0.1.0"}
    for each in found:
        assert each == expected | {"id": each["id"], "metadata": {"prefix": "garden"}}
        assert await request_control(client, f"PING.apiserver.{each['id']}") == [each]
    assert len(await request_control(client, "PING.apiserver", responses=2)) == 2


async def test_a_service_that_answers_nothing_else_says_so(live: tuple[BusUnderTest, Client]) -> None:
    bus, client = live
    await bus.bus.register(IDENTITY)

    (info,) = await request_control(client, "INFO.apiserver")
    (stats,) = await request_control(client, "STATS.apiserver")

    assert info["type"] == "io.nats.micro.v1.info_response"
    assert info["description"] == "Admits what comes from outside"
    assert info["endpoints"] == []
    assert stats["type"] == "io.nats.micro.v1.stats_response"
    assert stats["endpoints"] == []
    assert stats["started"].endswith("Z")


async def test_what_is_served_is_an_endpoint_of_the_service_with_its_group_and_metadata(
    live: tuple[BusUnderTest, Client],
) -> None:
    bus, client = live
    await bus.bus.register(IDENTITY)
    await bus.bus.serve("apiserver", "0.1.0", {"garden.api.>": echo}, metadata={"answers": "application/json"})

    (info,) = await request_control(client, "INFO")

    assert info["endpoints"] == [
        {
            "name": "garden-api",
            "subject": "garden.api.>",
            "queue_group": "apiserver",
            "metadata": {"answers": "application/json"},
        }
    ]


async def test_the_statistics_tell_how_long_answers_took_and_which_failed(live: tuple[BusUnderTest, Client]) -> None:
    bus, client = live
    await bus.bus.serve("apiserver", "0.1.0", {"garden.api.>": echo})
    for body in (b"a", b"b", b"no"):
        await client.request("garden.api.echo", body, timeout=HANG_SECONDS)

    (stats,) = await request_control(client, "STATS")

    (endpoint,) = stats["endpoints"]
    assert (endpoint["num_requests"], endpoint["num_errors"], endpoint["last_error"]) == (3, 1, "400:not this")
    assert endpoint["processing_time"] > 20_000_000
    assert endpoint["average_processing_time"] == endpoint["processing_time"] // 3


async def test_an_error_carries_the_headers_that_micro_clients_look_for(live: tuple[BusUnderTest, Client]) -> None:
    bus, client = live
    await bus.bus.serve("apiserver", "0.1.0", {"garden.api.>": echo})

    response = await client.request("garden.api.echo", b"no", timeout=HANG_SECONDS)

    assert response.headers == {"Nats-Service-Error": "not this", "Nats-Service-Error-Code": "400"}


async def test_all_lines_of_one_request_have_an_id_of_its_own(live: tuple[BusUnderTest, Client]) -> None:
    async def report_id(request: Request) -> bytes:
        before = get_contextvars()["reconcile_id"]
        await asyncio.sleep(0)
        assert get_contextvars()["reconcile_id"] == before
        return before.encode() + request.body

    bus, client = live
    await bus.bus.serve("apiserver", "0.1.0", {"garden.api.>": report_id})

    responses = await asyncio.gather(*(client.request("garden.api.id", b"", timeout=HANG_SECONDS) for _ in range(3)))

    assert [len(response.data) for response in responses] == [16, 16, 16]
    assert len({response.data for response in responses}) == 3
    assert "reconcile_id" not in get_contextvars()


async def test_replicas_share_the_requests_and_one_that_stops_loses_none(live: tuple[BusUnderTest, Client]) -> None:
    bus, client = live
    served = {"bus": 0, "another": 0}

    def counting(name: str) -> Any:
        async def handler(request: Request) -> bytes:
            served[name] += 1
            await asyncio.sleep(0.001)
            return request.body

        return handler

    await bus.bus.serve("apiserver", "0.1.0", {"garden.api.>": counting("bus")})
    await bus.another.serve("apiserver", "0.1.0", {"garden.api.>": counting("another")})
    requested = [
        asyncio.create_task(client.request("garden.api.echo", b"%d" % number, timeout=HANG_SECONDS))
        for number in range(200)
    ]

    async def both_serve() -> None:
        requested.append(
            asyncio.create_task(client.request("garden.api.echo", b"%d" % len(requested), timeout=HANG_SECONDS))
        )
        await asyncio.sleep(0)
        assert served["another"] > 0

    await eventually(both_serve, every=0.01)
    await bus.another.close()

    responses = [(await each).data for each in requested]

    assert responses == [b"%d" % number for number in range(len(requested))]
    assert served["bus"] + served["another"] == len(requested)


async def test_a_service_is_there_again_after_the_server_was_restarted(tmp_path: Path) -> None:
    server = await asyncio.to_thread(start_nats, tmp_path / "nats")
    bus = await on_jetstream(server.url)
    try:
        await bus.bus.serve("apiserver", "0.1.0", {"garden.api.>": echo})
        await asyncio.to_thread(server.restart)
        client = await nats.connect(server.url)  # pyright: ignore[reportUnknownMemberType]
        try:
            (ping,) = await eventually(lambda: request_control(client, "PING.apiserver"))
            assert ping["name"] == "apiserver"
        finally:
            await client.close()
    finally:
        await bus.stack.aclose()
        server.stop()


async def test_stats_hold_what_a_service_reports_of_itself(live: tuple[BusUnderTest, Client]) -> None:
    bus, client = live
    await bus.bus.register(IDENTITY)
    [before] = await request_control(client, "STATS.apiserver")
    counts = {"ann": 1}
    bus.bus.report_stats(lambda: {"counts": counts})
    counts["ann"] = 2
    [after] = await request_control(client, "STATS.apiserver")
    assert ("data" in before, after["data"]) == (False, {"counts": {"ann": 2}})
    [info] = await request_control(client, "INFO.apiserver")
    assert "data" not in info
