"""Requests of people and gardenlets, on a server that says who they are, with a real apiserver and store behind it."""

import itertools
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import prometheus_client
import pytest

from gardenbus.apiserver.app import start_apiserver
from gardenbus.apiserver.settings import ApiserverSettings
from gardenbus.common.adapters.nats import jetstream
from gardenbus.common.adapters.nats.connection import Connection
from gardenbus.common.adapters.nats.jetstream import JetStreamBus
from gardenbus.common.adapters.nats.messages import publish_command
from gardenbus.common.api.document import Document, encode
from gardenbus.common.api.identity.principals import Principal, principal_of
from gardenbus.common.api.identity.roles import landscape_roles
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.bus import ReplayDone, StreamMessage
from gardenbus.common.ports.connections import Connections
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.common.runtime.health import Health
from gardenbus.common.runtime.service import ServiceContext
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.identities import SUBJECTS, Guarded, guarded
from tests.support.servers import Server
from tests.support.stores import StoreUnderTest, on_redis, stored

_prefixes = (f"authz{number}" for number in itertools.count())


def a_secret(name: str, namespace: str) -> Document:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"password": "c2VjcmV0"}}


def a_member(user: str, role: str) -> Document:
    return {"kind": "User", "name": user, "role": role}


class Scene:
    """A guarded server, an apiserver that authorizes, and connections of anybody."""

    def __init__(self, landscape: Guarded, kit: StoreUnderTest, stack: AsyncExitStack) -> None:
        self.landscape = landscape
        self.kit = kit
        self._stack = stack
        self._connections: dict[str, Connection] = {}

    async def bus(self, principal: Principal, *, manages_streams: bool = False) -> JetStreamBus:
        """A bus of somebody's."""
        credentials = self.landscape.credentials(principal)
        opened = jetstream.connect(
            self.landscape.server.url, principal.user, credentials=credentials, manages_streams=manages_streams
        )
        return await self._stack.enter_async_context(opened)

    async def start(self) -> None:
        """Start the apiserver."""
        settings = ApiserverSettings(prefix=SUBJECTS.prefix, fetch_wait_seconds=0.2, authorization="enforce")
        health = Health(prometheus_client.CollectorRegistry())
        context = ServiceContext("apiserver", settings, health=health, clock=SystemClock())
        await self.bus(Principal("service", "relay"), manages_streams=True)
        bus = await self.bus(Principal("service", "apiserver"))
        await start_apiserver(context, Connections(self.kit.store, bus, SUBJECTS))
        self._stack.push_async_callback(context.close)

    async def connection(self, user: str) -> Connection:
        """The connection of somebody outside the services."""
        if user not in self._connections:
            self._connections[user] = await self.landscape.connect(principal_of(user))
        return self._connections[user]

    async def response(self, user: str, tail: str, body: object = None, *, named: str = "") -> Document:
        """The response to a request; `named`: the user whom the subject names."""
        subject = SUBJECTS.as_user(named or user, f"api.{tail}")
        connection = await self.connection(user)
        payload = b"" if body is None else encode(body)
        return json.loads((await connection.request_raw(subject, payload, timeout_seconds=HANG_SECONDS)).body)

    async def code(self, user: str, tail: str, body: object = None) -> int:
        """The code of the response."""
        response = await self.response(user, tail, body)
        return 200 if response["ok"] else response["error"]["code"]

    async def publish(self, user: str, verb: str, document: Document) -> None:
        """Publish a durable request."""
        connection = await self.connection(user)
        await connection.request_raw(SUBJECTS.as_user(user, verb), encode(document), timeout_seconds=HANG_SECONDS)

    async def rejections(self) -> list[str]:
        """Why durable requests were rejected."""
        bus = await self.bus(Principal("operator", "operator"))
        reasons: list[str] = []
        async with bus.follow(SUBJECTS.stream("REJECTED"), SUBJECTS.rejections) as follower:
            async for event in follower:
                if isinstance(event, ReplayDone):
                    break
                if isinstance(event, StreamMessage):
                    reasons.append(event.headers["Gardenbus-Reason"])
        return reasons

    async def stored(self, kind: str, namespace: str, name: str) -> Any:
        """What is stored, None if nothing is."""
        return await self.kit.store.get(ObjectKey(kind, namespace, name))


@pytest.fixture
async def scene(tmp_path: Path, shared_redis_server: Server) -> AsyncIterator[Scene]:
    """Projects a and b, with a member and a viewer, and a shoot of each on a seed of its own."""
    kit = on_redis(shared_redis_server.url, next(_prefixes))
    await kit.open()
    async with guarded(tmp_path) as landscape, AsyncExitStack() as stack:
        stack.push_async_callback(kit.store.close)
        scene = Scene(landscape, kit, stack)
        for document in (
            landscape_roles({"root": "operator"}),
            a_cloudprofile(),
            a_project("a", "garden-a", spec={"members": [a_member("ann", "admin"), a_member("vera", "viewer")]}),
            a_project("b", "garden-b", spec={"members": [a_member("bob", "admin")]}),
        ):
            await kit.store.create(document)
        for project in ("a", "b"):
            seed = stored(await kit.store.create(a_seed(f"seed-{project}")))
            await kit.store.create(a_secret("cloud", f"garden-{project}"))
            dns = {"providers": [{"type": "aws", "secretName": "cloud"}]}
            await kit.store.create(
                a_shoot("apollo", f"garden-{project}", spec={"dns": dns, "seedName": f"seed-{project}"}),
                scheduling_generation=seed.scheduling_generation,
            )
        await scene.start()
        yield scene


async def test_a_member_of_one_project_neither_reads_nor_writes_in_another(scene: Scene) -> None:
    assert await scene.code("ann", "get.secret.garden-a.cloud") == 200
    assert await scene.code("ann", "apply", a_secret("new", "garden-a")) == 200
    for tail in ("get.secret.garden-b.cloud", "get.shoot.garden-b.apollo", "list.secret.garden-b", "list.shoot"):
        assert await scene.code("ann", tail) == 403, tail
    assert await scene.code("ann", "apply", a_secret("new", "garden-b")) == 403
    assert await scene.code("ann", "delete.secret.garden-b.cloud") == 403
    assert await scene.stored("secret", "garden-b", "new") is None


async def test_a_viewer_writes_nothing(scene: Scene) -> None:
    assert await scene.code("vera", "list.shoot.garden-a") == 200
    assert await scene.code("vera", "apply", a_secret("new", "garden-a")) == 403
    assert await scene.code("vera", "patch.shoot.garden-a.apollo", {"metadata": {"labels": {"a": "b"}}}) == 403


async def test_what_is_refused_of_durable_requests_is_rejected_and_says_what_would_be_needed(scene: Scene) -> None:
    await scene.publish("ann", "apply", a_secret("durable", "garden-a"))
    await scene.publish("ann", "apply", a_secret("durable", "garden-b"))
    await scene.publish("vera", "delete", a_secret("cloud", "garden-a"))
    await scene.publish("ann", "apply", a_shoot("placed", "garden-a", spec={"seedName": "seed-a"}))

    async def handled() -> None:
        assert await scene.stored("secret", "garden-a", "durable") is not None
        assert len(await scene.rejections()) == 3

    await eventually(handled)
    reasons = await scene.rejections()
    assert all(reason.startswith("Forbidden: ") for reason in reasons)
    assert any('user "vera" cannot delete secrets in namespace "garden-a"' in reason for reason in reasons)
    assert any('user "ann" cannot apply secrets in namespace "garden-b"' in reason for reason in reasons)
    assert any("cannot change spec.seedName" in reason for reason in reasons)
    assert await scene.stored("secret", "garden-b", "durable") is None
    assert await scene.stored("secret", "garden-a", "cloud") is not None
    assert await scene.stored("shoot", "garden-a", "placed") is None


async def test_a_gardenlet_reads_the_secrets_of_its_own_shoots_alone(scene: Scene) -> None:
    assert await scene.code("seed:seed-a", "get.secret.garden-a.cloud") == 200
    assert await scene.code("seed:seed-a", "get.secret.garden-b.cloud") == 403
    assert await scene.code("seed:seed-a", "get.shoot.garden-b.apollo") == 403
    assert await scene.code("seed:seed-a", "list.secret.garden-a") == 403
    assert await scene.code("seed:seed-a", "list.shoot", {"fieldSelector": "spec.seedName=seed-a"}) == 200


async def test_nobody_asks_in_the_name_of_somebody_else(scene: Scene) -> None:
    ann = await scene.connection("ann")
    subjects = (SUBJECTS.as_user("root", "delete"), SUBJECTS.as_user("root", "api.delete.secret.garden-b.cloud"))
    await ann.send([publish_command(subject, encode(a_secret("cloud", "garden-b"))) for subject in subjects])
    response = await scene.response("ann", "whoami")
    assert response["result"]["user"] == "ann"
    assert (await scene.response("root", "whoami"))["result"]["role"] == "operator"
    assert await scene.stored("secret", "garden-b", "cloud") is not None
    log = (scene.landscape.server.directory / "server.log").read_text()
    assert log.count("Publish Violation") == len(subjects)


async def test_a_new_member_is_let_in_with_the_next_request(scene: Scene) -> None:
    assert await scene.code("carl", "list.shoot.garden-a") == 403
    members = [a_member("ann", "admin"), a_member("carl", "viewer")]
    assert await scene.code("root", "patch.project._.a", {"spec": {"members": members}}) == 200
    assert await scene.code("carl", "list.shoot.garden-a") == 200
    assert await scene.code("vera", "list.shoot.garden-a") == 403
