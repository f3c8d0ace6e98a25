"""Loads of a Kubernetes API, the same for both: ConfigMaps of 2.5 KB, created, read, listed and watched."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from gardenbus.bench.peers.api_servers import NAMESPACE, ApiServer
from gardenbus.bench.peers.readings import ApiReading
from gardenbus.bench.stats import latencies
from gardenbus.common.api.document import Document

CONFIGMAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
CLIENTS = 50
LARGEST_LIST_BYTES = 2**30
_WATCH_SECONDS = 600.0


class ApiSize(NamedTuple):
    """Size of each load in one turn: objects, reads of one, lists of all, watches, and changes that they see."""

    objects: int = 2000
    reads: int = 4000
    lists: int = 5
    watches: int = 50
    changes: int = 200


async def take_turn(server: ApiServer, turn: int, size: ApiSize) -> list[ApiReading]:
    """All loads on one server, one after the other. Raises GardenbusError, BenchFailed."""
    client = server.client

    async def create(number: int) -> None:
        await client.create(CONFIGMAPS, _configmap(turn, number), manager="bench")

    async def read(number: int) -> None:
        await client.request("GET", f"{CONFIGMAPS}/{_name(turn, number % size.objects)}")

    async def list_all(_number: int) -> None:
        await client.content(CONFIGMAPS, most_bytes=LARGEST_LIST_BYTES)

    return [
        await _measured(server, "create", size.objects, lambda: _by_clients(size.objects, CLIENTS, create)),
        await _measured(server, "GET", size.reads, lambda: _by_clients(size.reads, CLIENTS, read)),
        await _measured(server, "LIST", size.lists, lambda: _by_clients(size.lists, 1, list_all)),
        await _watched(server, turn, size),
    ]


async def _watched(server: ApiServer, turn: int, size: ApiSize) -> ApiReading:
    """Changes by one client, seen by all watches. Latencies are from the request to the event, watch by watch."""
    client, sent, seen = server.client, dict[str, float](), list[float]()
    _, version = await client.list_all(CONFIGMAPS)
    all_seen = asyncio.Event()

    async def watch() -> None:
        events = client.events(CONFIGMAPS, timeout_seconds=_WATCH_SECONDS, resourceVersion=version)
        async for event in events:
            moment = sent.get(str(event["object"].get("data", {}).get("change")))
            if moment is None:
                continue
            seen.append(time.monotonic() - moment)
            if len(seen) == size.watches * size.changes:
                all_seen.set()

    async def change() -> None:
        for number in range(size.changes):
            text = f"{turn}-{number}"
            sent[text] = time.monotonic()
            await client.merge_patch(
                f"{CONFIGMAPS}/{_name(turn, number % size.objects)}", {"data": {"change": text}}, manager="bench"
            )
        await all_seen.wait()

    async with asyncio.TaskGroup() as tasks:
        watches = [tasks.create_task(watch()) for _ in range(size.watches)]
        reading = await _measured(server, "watch event", size.watches * size.changes, change)
        for each in watches:
            each.cancel()
    return reading._replace(latency_ms=latencies(seen))


async def _measured(server: ApiServer, load: str, count: int, act: Callable[[], Awaitable[None]]) -> ApiReading:
    before, began = server.cpu_seconds(), time.monotonic()
    await act()
    seconds, after = time.monotonic() - began, server.cpu_seconds()
    costs: Mapping[str, float] = {name: 1e6 * (after[name] - before[name]) / count for name in after}
    return ApiReading(server.name, load, count / seconds, costs)


async def _by_clients(count: int, clients: int, call: Callable[[int], Awaitable[None]]) -> None:
    """Make `count` calls, by so many clients that each wait for their response."""
    numbers = iter(range(count))

    async def one() -> None:
        for number in numbers:
            await call(number)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(clients):
            tasks.create_task(one())


def _name(turn: int, number: int) -> str:
    return f"bench-{turn}-{number}"


def _configmap(turn: int, number: int) -> Document:
    metadata = {"name": _name(turn, number), "labels": {"turn": str(turn)}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"content": "x" * 2500}}
