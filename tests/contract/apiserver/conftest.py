"""An apiserver on real servers, spoken to as people speak to it: with a plain NATS client."""

import contextlib
import itertools
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import nats
import prometheus_client
import pytest
from nats.aio.client import Client

from gardenbus.apiserver.app import start_apiserver
from gardenbus.apiserver.settings import ApiserverSettings
from gardenbus.common.adapters.nats.jetstream import JetStreamBus, connect
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.ports.bus import ReplayDone, StreamMessage
from gardenbus.common.ports.connections import Connections
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.common.runtime.health import Health
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.relay.ports.outbox import EventEntry
from tests.support.builders import a_cloudprofile
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.servers import Server
from tests.support.stores import StoreUnderTest, on_redis

_prefixes = (f"api{number}" for number in itertools.count())


@dataclass
class Apiserver:
    """One apiserver (and more, when asked for) and a person's connection to it."""

    nats_url: str
    subjects: Subjects
    kit: StoreUnderTest
    client: Client
    contexts: list[ServiceContext[ApiserverSettings]] = field(default_factory=list[ServiceContext[ApiserverSettings]])
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def start(self, **settings: Any) -> JetStreamBus:
        """Start one (more) replica."""
        configured = ApiserverSettings(prefix=self.subjects.prefix, fetch_wait_seconds=0.2, **settings)
        health = Health(prometheus_client.CollectorRegistry())
        context = ServiceContext("apiserver", configured, health=health, clock=SystemClock())
        bus = await self.stack.enter_async_context(connect(self.nats_url, "apiserver", self.subjects.prefix))
        self.contexts.append(context)
        await start_apiserver(context, Connections(self.kit.store, bus, self.subjects))
        return bus

    async def stop(self) -> None:
        for context in self.contexts:
            await context.close()
        await self.stack.aclose()

    async def response(
        self, tail: str, body: object = b"", user: str = "", condition: str = "", dry_run: str = "", validate: str = ""
    ) -> Document:
        """Ask, and give the whole answer."""
        payload = body if isinstance(body, bytes) else json.dumps(body).encode()
        subject = self.subjects.as_user(user, f"api.{tail}") if user else self.subjects.api(tail)
        given = {"Gardenbus-Condition": condition, "Gardenbus-Dry-Run": dry_run, "Gardenbus-Validate": validate}
        headers = {name: value for name, value in given.items() if value} or None
        return json.loads((await self.client.request(subject, payload, timeout=HANG_SECONDS, headers=headers)).data)

    async def request(self, tail: str, body: object = b"", user: str = "") -> Any:
        """Ask, and give the result of an answer that is ok."""
        response = await self.response(tail, body, user)
        assert response["ok"], response["error"]
        return response["result"]

    async def rejection(self, tail: str, body: object = b"", condition: str = "", dry_run: str = "") -> Document:
        """Ask for what is refused, and give the error."""
        response = await self.response(tail, body, condition=condition, dry_run=dry_run)
        assert not response["ok"], response
        return response["error"]

    async def publish(self, tail: str, body: object, headers: Mapping[str, str] | None = None) -> int:
        """Publish durably below the prefix; answers the sequence."""
        payload = body if isinstance(body, bytes) else json.dumps(body).encode()
        ack = await self.client.request(
            f"{self.subjects.prefix}.{tail}", payload, timeout=HANG_SECONDS, headers=dict(headers) if headers else None
        )
        return json.loads(ack.data)["seq"]

    async def report(self, seed: str, key: ObjectKey, body: object, **headers: str) -> int:
        """Publish a report of a seed's gardenlet."""
        named = {f"Gardenbus-{name.capitalize()}": value for name, value in headers.items()}
        return await self.publish(f"report.{seed}.{key.tail}", body, named)

    async def condition(self, key: ObjectKey) -> str:
        """That an object stays as it is now."""
        return f"{key.tail}={(await self.now(key)).version}"

    async def now(self, key: ObjectKey) -> StoredObject:
        """An object, which must be there."""
        stored = await self.kit.store.get(key)
        assert stored is not None, f"{key} not found"
        return stored

    async def until_handled(self) -> None:
        """Wait until no durable request and no report is left."""

        async def nothing_left() -> None:
            for name in ("REQUESTS", "REPORTS"):
                response = await self.client.request(
                    f"$JS.API.STREAM.INFO.{self.subjects.stream(name)}", timeout=HANG_SECONDS
                )
                assert json.loads(response.data)["state"]["messages"] == 0

        await eventually(nothing_left, every=0.02)

    async def rejected(self) -> list[StreamMessage]:
        """All that was rejected."""
        bus = await self.stack.enter_async_context(connect(self.nats_url, "reader", self.subjects.prefix))
        messages: list[StreamMessage] = []
        async with bus.follow(self.subjects.stream("REJECTED"), self.subjects.rejections) as follower:
            async for event in follower:
                if isinstance(event, StreamMessage):
                    messages.append(event)
                elif isinstance(event, ReplayDone):
                    break
        return messages

    async def reason(self) -> str:
        """Why the one thing that was rejected was."""
        await self.until_handled()
        (message,) = await self.rejected()
        return message.headers["Gardenbus-Reason"]

    async def warnings(self) -> list[EventEntry]:
        """The Warning Events that came since this was asked last."""
        return [entries for entries in await self.kit.events() if entries.event.type == "Warning"]


@contextlib.asynccontextmanager
async def an_idle_apiserver(nats_url: str, redis_url: str) -> AsyncGenerator[Apiserver, None]:
    """Streams and store (with the profile of `a_shoot`) for an apiserver, without any replica running."""
    prefix = next(_prefixes)
    subjects = Subjects(prefix)
    kit = on_redis(redis_url, prefix)
    await kit.open()
    await kit.store.create(a_cloudprofile())
    client = await nats.connect(nats_url, max_reconnect_attempts=-1, reconnect_time_wait=0.1)  # pyright: ignore[reportUnknownMemberType]
    apiserver = Apiserver(nats_url, subjects, kit, client)
    async with connect(nats_url, "preparing", prefix):
        pass
    yield apiserver
    await apiserver.stop()
    await client.close()
    await kit.store.close()


@pytest.fixture
async def idle_apiserver(shared_nats_server: Server, shared_redis_server: Server) -> AsyncIterator[Apiserver]:
    """An apiserver on servers that it shares with other tests."""
    async with an_idle_apiserver(shared_nats_server.url, shared_redis_server.url) as apiserver:
        yield apiserver


@pytest.fixture
async def apiserver(idle_apiserver: Apiserver) -> Apiserver:
    """One replica, at work."""
    await idle_apiserver.start()
    return idle_apiserver
