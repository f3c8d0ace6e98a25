"""NATS comes back from an older copy: what people and gardenlets say from then on counts at once."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from nats.errors import Error as NatsError

from gardenbus.common.adapters.nats.jetstream import connect
from gardenbus.common.api.keys import Header, ObjectKey
from gardenbus.common.controller.stream_incarnation import StreamIncarnation
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.bus import QueueMessage
from tests.contract.apiserver.conftest import Apiserver, an_idle_apiserver
from tests.support.builders import a_project, a_seed, merged
from tests.support.eventually import eventually
from tests.support.servers import Server

DEV = ObjectKey("project", "", "dev")
SEED = ObjectKey("seed", "", "s1")
T = TypeVar("T")


@pytest.fixture
async def apiserver(nats_server: Server, redis_server: Server) -> AsyncIterator[Apiserver]:
    """An apiserver at work, on servers of its own."""
    async with an_idle_apiserver(nats_server.url, redis_server.url) as apiserver:
        await apiserver.start()
        yield apiserver


async def copy_streams(server: Server, to: Path) -> None:
    """Copy what a stopped NATS has on disk."""
    await asyncio.to_thread(server.stop)
    shutil.copytree(server.directory / "jetstream", to)
    await asyncio.to_thread(server.start)


async def put_back(server: Server, copy: Path) -> None:
    """Start NATS on an older copy of what it had on disk."""
    await asyncio.to_thread(server.stop)
    shutil.rmtree(server.directory / "jetstream")
    shutil.copytree(copy, server.directory / "jetstream")
    await asyncio.to_thread(server.start)


async def published(apiserver: Apiserver, tail: str, body: object) -> None:
    """Publish as soon as the server is there, and wait until it is taken."""

    async def accepted() -> None:
        try:
            await apiserver.publish(tail, body)
        except (NatsError, KeyError) as error:
            raise AssertionError(str(error)) from error

    await eventually(accepted)
    await handled(apiserver)


async def handled(apiserver: Apiserver) -> None:
    async def check() -> None:
        try:
            await apiserver.until_handled()
        except NatsError as error:
            raise AssertionError(str(error)) from error

    await eventually(check)


def project(step: int) -> dict[str, Any]:
    confirmed = {"confirmation.gardener.cloud/deletion": "true"}
    return merged(a_project(spec={"description": str(step)}), {"metadata": {"annotations": confirmed}})


async def description(apiserver: Apiserver) -> str:
    return (await apiserver.now(DEV)).document()["spec"]["description"]


async def test_requests_count_at_once(apiserver: Apiserver, nats_server: Server, tmp_path: Path) -> None:
    await published(apiserver, "apply", project(0))
    await copy_streams(nats_server, tmp_path / "older")
    for step in range(1, 10):
        await published(apiserver, "apply", project(step))
    await put_back(nats_server, tmp_path / "older")

    await published(apiserver, "apply", project(100))
    assert await description(apiserver) == "100"
    await published(apiserver, "apply", project(101))
    assert await description(apiserver) == "101"
    (loss,) = (await apiserver.request("lost"))["items"]
    assert (loss["stream"], loss["last"]) == (apiserver.subjects.stream("REQUESTS"), 10)
    assert loss["first"] in {2, 3}  # the next request may be there before anybody looks
    await published(apiserver, "delete", project(101))
    assert await apiserver.kit.store.get(DEV) is None


async def test_answered_requests_count_at_once(apiserver: Apiserver, nats_server: Server, tmp_path: Path) -> None:
    await published(apiserver, "apply", project(0))
    await copy_streams(nats_server, tmp_path / "older")
    for step in range(1, 10):
        await published(apiserver, "apply", project(step))
    await put_back(nats_server, tmp_path / "older")

    async def responds() -> None:
        try:
            await apiserver.request("apply", project(100))
        except NatsError as error:
            raise AssertionError(str(error)) from error

    await eventually(responds)
    assert await description(apiserver) == "100"
    await published(apiserver, "apply", project(101))
    assert await description(apiserver) == "101"


async def test_what_the_copy_still_holds_does_not_undo_what_came_after_it(
    apiserver: Apiserver, nats_server: Server, tmp_path: Path
) -> None:
    await published(apiserver, "apply", project(0))
    for context in apiserver.contexts:
        await context.close()
    await apiserver.publish("apply", project(1))
    await copy_streams(nats_server, tmp_path / "older")
    await apiserver.start()
    for step in range(2, 10):
        await published(apiserver, "apply", project(step))
    assert await description(apiserver) == "9"
    await put_back(nats_server, tmp_path / "older")
    await handled(apiserver)
    assert await description(apiserver) == "9"
    await published(apiserver, "apply", project(100))
    assert await description(apiserver) == "100"
    assert await apiserver.rejected() == []


async def test_reports_count_at_once(apiserver: Apiserver, nats_server: Server, tmp_path: Path) -> None:
    seed = await apiserver.kit.created(a_seed("s1"))
    headers = {"Gardenbus-Uid": seed.uid}

    async def report(step: int) -> None:
        body = {"status": {"kubernetesVersion": f"1.{step}.0"}}

        async def accepted() -> None:
            try:
                await apiserver.publish(f"report.s1.{SEED.tail}", body, headers)
            except (NatsError, KeyError) as error:
                raise AssertionError(str(error)) from error

        await eventually(accepted)
        await handled(apiserver)

    await report(1)
    await copy_streams(nats_server, tmp_path / "older")
    for step in range(2, 10):
        await report(step)
    await put_back(nats_server, tmp_path / "older")
    await report(30)
    status = (await apiserver.now(SEED)).document()["status"]
    assert status["kubernetesVersion"] == "1.30.0", json.dumps(status)


async def responds(call: Callable[[], Awaitable[T]]) -> T:
    async def responded() -> T:
        try:
            return await call()
        except (NatsError, KeyError, Unavailable) as error:
            raise AssertionError(str(error)) from error

    return await eventually(responded)


async def test_what_was_fetched_before_a_stream_went_back_is_older_than_what_it_stores_since(
    nats_server: Server, redis_server: Server, tmp_path: Path
) -> None:
    async with (
        an_idle_apiserver(nats_server.url, redis_server.url) as idle,
        connect(nats_server.url, "apiserver", idle.subjects.prefix) as bus,
    ):
        stream = idle.subjects.stream("REPORTS")
        queue = await bus.work_queue(stream, "apiserver", f"{idle.subjects.prefix}.report.>")
        incarnation = StreamIncarnation(bus, idle.kit.store, stream)

        async def fetched() -> QueueMessage:
            sequence = await responds(lambda: idle.publish(f"report.s1.{SEED.tail}", {}))
            while True:
                for each in await responds(lambda: queue.fetch(10, 1)):
                    if each.message.sequence == sequence:
                        return each

        observed = await fetched()
        (first,) = await incarnation.of([observed])
        await queue.ack_many([observed])
        await copy_streams(nats_server, tmp_path / "older")
        held = await fetched()
        await responds(incarnation.position)
        await put_back(nats_server, tmp_path / "older")
        second = (await responds(incarnation.position)).created
        assert second > first
        since = [await fetched(), await fetched()]
        assert (await incarnation.of(since), since[0].message.sequence) == ([second] * 2, held.message.sequence)
        assert (held.is_held_over, await incarnation.of([held])) == (True, [first])
        await asyncio.to_thread(nats_server.restart)
        assert await responds(lambda: incarnation.of([held, *since])) == [first, second, second]
        assert since[1].is_held_over


async def test_a_stream_that_grew_past_what_it_had_lost_is_noticed_whichever_message_is_looked_at_first(
    nats_server: Server, redis_server: Server, tmp_path: Path
) -> None:
    async with (
        an_idle_apiserver(nats_server.url, redis_server.url) as idle,
        connect(nats_server.url, "apiserver", idle.subjects.prefix) as bus,
    ):
        stream = idle.subjects.stream("REPORTS")
        queue = await bus.work_queue(stream, "apiserver", f"{idle.subjects.prefix}.report.>")
        one, another = (StreamIncarnation(bus, idle.kit.store, stream) for _ in range(2))

        async def fetched(count: int) -> list[QueueMessage]:
            for _ in range(count):
                await responds(lambda: idle.publish(f"report.s1.{SEED.tail}", {}))
            found: list[QueueMessage] = []
            while len(found) < count:
                found += await responds(lambda: queue.fetch(count, 1))
            return sorted(found, key=lambda each: each.message.sequence)

        await copy_streams(nats_server, tmp_path / "older")
        taken = await fetched(3)
        (first,) = set(await responds(lambda: one.of(taken)))
        await queue.ack_many(taken)
        await put_back(nats_server, tmp_path / "older")
        grown = await fetched(5)
        assert [each.message.sequence for each in grown] == [1, 2, 3, 4, 5]
        await asyncio.gather(one.refresh(), another.refresh())
        (second,) = set(await another.of(grown[3:]))
        assert second > first
        assert await one.of(grown[:3]) == [second] * 3


async def test_a_gardenlet_that_takes_a_restored_lease_is_heard(
    apiserver: Apiserver, nats_server: Server, tmp_path: Path
) -> None:
    seed = await apiserver.kit.created(a_seed("s1"))
    bus = await apiserver.stack.enter_async_context(connect(apiserver.nats_url, "gardenlet", apiserver.subjects.prefix))
    created = (await bus.position(apiserver.subjects.stream("LEASES"))).created

    async def report(step: int) -> None:
        async def acquired() -> int:
            try:
                return await apiserver.publish("lease.s1", {})
            except (NatsError, KeyError) as error:
                raise AssertionError(str(error)) from error

        token = f"{created}.{await eventually(acquired)}"
        body = {"status": {"kubernetesVersion": f"1.{step}.0"}}
        await apiserver.publish(
            f"report.s1.{SEED.tail}", body, {"Gardenbus-Uid": seed.uid, Header.FENCING_TOKEN: token}
        )
        await handled(apiserver)

    await report(1)
    await copy_streams(nats_server, tmp_path / "older")
    for step in range(2, 10):
        await report(step)
    await put_back(nats_server, tmp_path / "older")
    await report(30)
    assert (await apiserver.now(SEED)).document()["status"]["kubernetesVersion"] == "1.30.0"
    assert await apiserver.rejected() == []
