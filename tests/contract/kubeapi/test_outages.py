"""Outages on real servers: nothing is accepted that is not stored, cached reads go on, and watchers miss nothing."""

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from gardenbus.common.adapters.nats.jetstream import connect
from gardenbus.common.adapters.redis.connection import RedisConnection
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.kubeapi.watch import updater
from gardenbus.relay.adapters.redis_outbox import RedisOutbox
from tests.contract.kubeapi.conftest import MAPS, KubeLandscape, a_kube_landscape, a_map
from tests.support.eventually import eventually
from tests.support.http_watching import HttpWatcher, following
from tests.support.redis_replicas import RedisReplicas, start_redis_replicas
from tests.support.servers import Server

MERGE = {"Content-Type": "application/merge-patch+json"}


async def everything_is_unavailable(landscape: KubeLandscape, *, but_lists: bool = False) -> None:
    """Assert that writes, and reads of the newest, come again, and that what is cached is served."""
    requests = [
        landscape.request("POST", MAPS, json=a_map("unstored")),
        landscape.request("PUT", f"{MAPS}/first", json=a_map("first", unstored="x")),
        landscape.request("PATCH", f"{MAPS}/first", json={"data": {"unstored": "x"}}, headers=MERGE),
        landscape.request("DELETE", f"{MAPS}/first"),
        landscape.request("DELETE", MAPS),
        landscape.request("GET", f"{MAPS}/first"),
    ]
    requests += [] if but_lists else [landscape.request("GET", MAPS)]
    for response in await asyncio.gather(*requests):
        assert (response.status, response.retry_after) == (503, "1"), response
        assert (response.body["kind"], response.body["reason"]) == ("Status", "ServiceUnavailable")
    cached = await landscape.request("GET", f"{MAPS}/first", params={"resourceVersion": "0"})
    assert cached.status == 200
    assert await landscape.names("0") == ["first"]


async def nothing_of_it_is_stored(landscape: KubeLandscape) -> None:
    await landscape.until_created("second")
    assert await landscape.names() == ["first", "second"]
    first = await landscape.request("GET", f"{MAPS}/first")
    assert "unstored" not in first.body.get("data", {})


async def agrees(landscape: KubeLandscape, watcher: HttpWatcher) -> None:
    """Wait until a client has what is stored, and nothing else."""

    async def is_equal() -> None:
        assert watcher.versions == await landscape.versions()

    await eventually(is_equal)
    assert watcher.out_of_order == []


async def test_without_the_bus(landscape: KubeLandscape, nats_server: Server) -> None:
    async with following(landscape.watcher()) as watcher:
        await agrees(landscape, watcher)
        await asyncio.to_thread(nats_server.kill)
        await everything_is_unavailable(landscape)
        assert await landscape.page("/readyz/nats") == (500, "internal server error: not connected\n")
        assert await landscape.page("/livez") == (200, "ok")
        assert watcher.cuts == 0, "a watch goes on"
        await asyncio.to_thread(nats_server.start)
        await nothing_of_it_is_stored(landscape)
        await agrees(landscape, watcher)


async def test_without_an_apiserver(landscape: KubeLandscape) -> None:
    async with following(landscape.watcher()) as watcher:
        await agrees(landscape, watcher)
        await landscape.stop("apiserver")
        await everything_is_unavailable(landscape, but_lists=True)
        assert await landscape.names() == ["first"], "lists need relays alone"
        assert watcher.cuts == 0, "a watch goes on"
        await landscape.start_apiserver()
        await nothing_of_it_is_stored(landscape)
        await agrees(landscape, watcher)


async def test_without_redis_and_with_a_store_that_was_opened_anew(
    landscape: KubeLandscape, redis_server: Server
) -> None:
    async with following(landscape.watcher()) as watcher:
        await agrees(landscape, watcher)
        before = watcher.expirations
        await asyncio.to_thread(redis_server.kill)
        await everything_is_unavailable(landscape)
        assert watcher.expirations == before
        await asyncio.to_thread(redis_server.start)
        await nothing_of_it_is_stored(landscape)
        await agrees(landscape, watcher)
        assert watcher.expirations > before, "the client was told to list again"


async def test_with_an_older_store(
    landscape: KubeLandscape, redis_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(updater, "REOPENED_SECONDS", 0.5)
    async with following(landscape.watcher()) as watcher:
        await agrees(landscape, watcher)
        redis_server.pause()
        shutil.copytree(redis_server.directory, tmp_path / "older")
        redis_server.resume()
        await landscape.until_created("younger")
        await agrees(landscape, watcher)
        await asyncio.to_thread(redis_server.kill)
        shutil.rmtree(redis_server.directory)
        shutil.copytree(tmp_path / "older", redis_server.directory)
        await asyncio.to_thread(redis_server.start)
        await landscape.until_created("second")

        async def is_restored() -> None:
            assert await landscape.names() == ["first", "second", "younger"]

        await eventually(is_restored)  # from its announcement
        await agrees(landscape, watcher)


async def test_with_announcements_that_began_anew(landscape: KubeLandscape, nats_server: Server) -> None:
    async with following(landscape.watcher()) as watcher, connect(nats_server.url, "operator") as bus:
        for number in range(20):  # the stream is longer than it will be
            response = await landscape.request(
                "PATCH", f"{MAPS}/first", json={"data": {"number": f"{number}"}}, headers=MERGE
            )
            assert response.status == 200
            await landscape.names()
        await bus.request("$JS.API.STREAM.DELETE.OBJECTS", b"")
        response = await landscape.request("GET", MAPS)
        assert (response.status, response.retry_after) == (503, "1"), response
        await landscape.until_created("second")
        assert await landscape.names() == ["first", "second"]
        await agrees(landscape, watcher)


async def test_with_a_relay_that_lags(landscape: KubeLandscape, redis_server: Server) -> None:
    async with following(landscape.watcher()) as watcher:
        await agrees(landscape, watcher)
        await landscape.stop("relay")
        response = await landscape.request("GET", MAPS)
        assert (response.status, response.retry_after) == (503, "1"), "there is no relay"
        connection = RedisConnection(redis_server.url)
        slow = RedisOutbox(connection, SystemClock(), leader="slow")
        assert (await slow.lead(60)).leading
        await landscape.start_relay()
        created = await landscape.request("POST", MAPS, json=a_map("second"))
        assert created.status == 201, "it is stored"
        response = await landscape.request("GET", MAPS)
        assert (response.status, response.retry_after) == (503, "1")
        version = {"resourceVersion": created.body["metadata"]["resourceVersion"]}
        response = await landscape.request("GET", MAPS, params=version)
        assert (response.status, response.retry_after) == (504, "1")
        assert await landscape.names("0") == ["first"]
        assert [*watcher.versions] == ["dev/first"]
        await slow.resign()
        await connection.close()
        assert await landscape.names() == ["first", "second"]
        await agrees(landscape, watcher)


async def test_a_replica_that_has_just_started_serves_what_there_is(landscape: KubeLandscape) -> None:
    for path in (f"{MAPS}/first", MAPS):
        await landscape.stop("kubeapi")
        await landscape.start_kubeapi()
        response = await landscape.request("GET", path, params={"resourceVersion": "0"})
        assert response.status == 200, response


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[RedisReplicas]:
    with ExitStack() as stack:
        yield start_redis_replicas(stack, tmp_path)


@pytest.mark.long
async def test_over_a_failover(nats_server: Server, replicas: RedisReplicas, tmp_path: Path) -> None:
    async def are_complete() -> None:
        assert await asyncio.to_thread(replicas.are_complete)

    await eventually(are_complete)
    servers = {"nats_url": nats_server.url, "redis_url": replicas.url, "redis_replicas": 1}
    async with a_kube_landscape(servers, tmp_path) as landscape, following(landscape.watcher()) as watcher:
        await agrees(landscape, watcher)
        before, old = watcher.expirations, replicas.primary()
        await asyncio.to_thread(old.kill)
        response = await landscape.request("POST", MAPS, json=a_map("unstored"))
        assert (response.status, response.retry_after) == (503, "1"), response
        assert await landscape.names("0") == ["first"]
        await landscape.until_created("second")
        assert await asyncio.to_thread(replicas.primary) is not old
        await agrees(landscape, watcher)
        assert watcher.expirations > before
