"""`doctor` on real servers: all is well, and each thing that may be wrong with them."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import nats
import pytest
from nats.aio.client import Client

from gardenbus.cli.client.targets import LandscapeTarget
from gardenbus.cli.commands.doctor import examined
from gardenbus.common.adapters.nats.jetstream import JetStreamBus, connect
from gardenbus.common.adapters.redis.connection import RedisConnection
from gardenbus.common.api.identity.accounts import AUTH_CALLOUT, COMES_IN_BY
from gardenbus.common.api.keys import Subjects
from gardenbus.common.errors import NotFound
from gardenbus.common.ports.bus import Handler, Message, Request, ServiceIdentity
from gardenbus.diagnostics.findings import DiagnosticFinding, worst
from tests.contract.operating.conftest import Operator
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.servers import Server

SUBJECTS = Subjects()
QUEUE = "garden.queue.migration.garden-dev.apollo"


@dataclass
class Ward:
    """Servers with the streams of a landscape, and an apiserver that answers what it is told to."""

    nats_server: Server
    redis_server: Server
    bus: JetStreamBus
    client: Client
    redis: RedisConnection
    responses: dict[str, Any]

    async def examine(self) -> dict[str, DiagnosticFinding]:
        """What is found, by check."""
        where = LandscapeTarget(self.nats_server.url, "garden")
        return {finding.check: finding for finding in await examined(where, self.redis_server.url)}

    async def query(self, endpoint: str, question: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Ask JetStream's API."""
        body = json.dumps(question).encode() if question else b""
        response = json.loads((await self.client.request(f"$JS.API.{endpoint}", body, timeout=HANG_SECONDS)).data)
        assert "error" not in response, response
        return response

    async def configure(self, stream: str, **changes: Any) -> None:
        """Change a stream's configuration."""
        config = (await self.query(f"STREAM.INFO.{stream}"))["config"]
        await self.query(f"STREAM.UPDATE.{stream}", {**config, **changes})

    async def lease(self, seed: str, *, ahead_seconds: float = 0) -> None:
        """Publish a heartbeat, by a clock that is ahead."""
        renewed = (datetime.now(UTC) + timedelta(seconds=ahead_seconds)).isoformat()
        await self.bus.publish(Message(SUBJECTS.lease(seed), json.dumps({"spec": {"renewTime": renewed}}).encode()))


@pytest.fixture
async def ward(nats_server: Server, redis_server: Server) -> AsyncIterator[Ward]:
    responses: dict[str, Any] = {
        "census": {"objects.seed": 1, "objects.shoot": 0, "shoots.waiting": 0},
        "list.seed": {"items": [{"metadata": {"name": "aws"}}]},
        "list.shoot": {"items": []},
    }

    async def response(request: Request) -> bytes:
        tail = request.subject.removeprefix("garden.api.")
        if tail not in responses:
            raise NotFound(f"nobody has told what to answer to {tail}")
        return json.dumps({"ok": True, "result": responses[tail]}).encode()

    redis = RedisConnection(redis_server.url)
    client = await nats.connect(nats_server.url)  # pyright: ignore[reportUnknownMemberType]
    async with connect(nats_server.url, "ward") as bus:
        await redis.ensure_library()
        await redis.command("CONFIG", "SET", "appendonly", "yes")
        handlers: dict[str, Handler] = {SUBJECTS.api(">"): response}
        await bus.serve("apiserver", "1.2.3", handlers)
        await bus.work_queue("REQUESTS", "apiserver", ">")
        ward = Ward(nats_server, redis_server, bus, client, redis, responses)
        await ward.lease("aws")
        yield ward
    await client.close()
    await redis.close()


def brief(finding: DiagnosticFinding) -> tuple[str, str]:
    return finding.state, finding.found


async def test_servers_that_are_well_are_found_so(ward: Ward) -> None:
    found = await ward.examine()

    ill = {check: finding for check, finding in found.items() if finding.state in ("warning", "failed")}
    assert ill.keys() == {"queue requests"}, ill  # nobody fetches in this test
    assert brief(found["versions"]) == ("ok", "1.2.3: apiserver")
    assert found["streams"].found == "all 9 are there, configured as they should be"
    assert found["functions"].state == "ok"
    assert found["heartbeats"].found.startswith("1 seeds")


async def test_streams_that_are_missing_or_changed_are_found(ward: Ward) -> None:
    await ward.query("STREAM.DELETE.EVENTS")
    await ward.configure("QUEUES", max_age=600_000_000_000)
    await ward.configure("OBJECTS", max_msgs_per_subject=2)

    found = await ward.examine()

    assert brief(found["stream EVENTS"]) == ("failed", "does not exist")
    assert brief(found["stream OBJECTS"]) == ("failed", "max_msgs_per_subject is 2, not 1")
    assert brief(found["stream QUEUES"]) == ("warning", "max_age is 600000000000: a limit drops work")
    assert "restart" in found["stream EVENTS"].suggestion


async def test_a_consumer_that_gives_up_is_found(ward: Ward) -> None:
    config = (await ward.query("CONSUMER.INFO.REQUESTS.apiserver"))["config"]
    await ward.query(
        "CONSUMER.CREATE.REQUESTS.apiserver.>", {"stream_name": "REQUESTS", "config": {**config, "max_deliver": 3}}
    )

    assert brief((await ward.examine())["consumer apiserver"]) == ("failed", "max_deliver is 3, not -1")


async def test_work_that_nobody_takes_is_found(ward: Ward) -> None:
    await ward.bus.work_queue("QUEUES", "migration", SUBJECTS.queue_of("migration"))
    await ward.bus.publish(Message(QUEUE))
    await ward.bus.publish(Message("garden.queue.scheduling.absent.garden-dev.apollo"))

    found = await ward.examine()

    assert brief(found["queue migration"]) == ("failed", "no consumer, 1 message pending")
    assert "nats consumer rm QUEUES migration" in found["queue migration"].suggestion
    assert found["unclaimed work"].state == "warning"
    assert found["unclaimed work"].found.startswith("1 message that no service consumes: ")
    assert found["unclaimed work"].found.endswith("scheduling.absent.garden-dev.apollo")


@pytest.mark.parametrize("body", [b"", b'{"kind":"Shoot","spec":{"seedName":"aws"}}'])
async def test_work_of_a_scheduler_on_a_shoot_that_is_bound_or_gone_is_left_out(ward: Ward, body: bytes) -> None:
    await ward.bus.publish(Message("garden.queue.scheduling.mine.garden-dev.apollo"))
    await ward.bus.publish(Message("garden.changed.shoot.garden-dev.apollo", body))

    assert "unclaimed work" not in await ward.examine()


async def test_work_that_comes_back_again_and_again_is_found(ward: Ward) -> None:
    queue = await ward.bus.work_queue("QUEUES", "migration", SUBJECTS.queue_of("migration"))
    await ward.bus.publish(Message(QUEUE))
    for _ in range(3):
        (work,) = await queue.fetch(1, HANG_SECONDS)
        await work.release()
    (held,) = await queue.fetch(1, HANG_SECONDS)
    listening = asyncio.create_task(queue.fetch(1, 120))
    try:

        async def found() -> None:
            state, text = brief((await ward.examine())["queue migration"])
            assert (state, "delivered more than once" in text) == ("warning", True), text

        await eventually(found)
    finally:
        await held.ack()
        listening.cancel()


async def test_a_redis_that_would_lose_objects_is_found(ward: Ward) -> None:
    await ward.redis.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    await ward.redis.command("CONFIG", "SET", "appendonly", "no")
    await ward.redis.command("CONFIG", "SET", "maxmemory", "100mb")

    found = await ward.examine()

    assert found["redis eviction"].state == "failed"
    assert found["redis eviction"].suggestion == "redis-cli CONFIG SET maxmemory-policy noeviction"
    assert found["redis persistence"].state == "failed"
    assert "of 100 MiB used" in found["redis memory"].found


async def test_missing_functions_and_an_outbox_that_nobody_empties_are_found(ward: Ward) -> None:
    await ward.redis.command("FUNCTION", "FLUSH")
    seconds, _ = await ward.redis.command("TIME")
    await ward.redis.command("XADD", "garden:outbox", f"{(int(seconds) - 9000) * 1000}-0", "t", "x")

    found = await ward.examine()

    assert found["functions"].state == "failed"
    assert found["outbox"].state == "failed"
    assert found["outbox"].found.startswith("1 changes are to be announced, the oldest for 90")


async def test_silent_gardenlets_and_clocks_that_are_wrong_are_found(ward: Ward) -> None:
    ward.responses["list.seed"]["items"].append({"metadata": {"name": "silent"}})
    await ward.lease("aws", ahead_seconds=20)

    found = await ward.examine()

    assert brief(found["heartbeats"]) == ("failed", "no heartbeat from silent")
    assert found["clocks of gardenlets"].state == "failed"
    assert found["clocks of gardenlets"].found.startswith("aws +")
    assert (found["clock of nats"].state, found["clock of redis"].state) == ("ok", "ok")


async def test_services_of_two_versions_are_found(ward: Ward) -> None:
    async with connect(ward.nats_server.url, "other", manages_streams=False) as other:
        await other.serve("relay", "1.3.0", {})
        versions = (await ward.examine())["versions"]

    assert brief(versions) == ("warning", "1.2.3: apiserver; 1.3.0: relay")


async def test_an_identity_service_that_is_away_is_found_where_it_is_needed(ward: Ward) -> None:
    assert "identity" not in await ward.examine()

    ours = {"prefix": "garden"}
    async with connect(ward.nats_server.url, "needing", manages_streams=False) as needing:
        await needing.register(ServiceIdentity("apiserver", "1.2.3", "", ours))
        await needing.serve("apiserver", "1.2.3", {"needing": no_response}, metadata={COMES_IN_BY: AUTH_CALLOUT})
        assert (await ward.examine())["identity"].state == "failed"
        async with connect(ward.nats_server.url, "identity", manages_streams=False) as identity:
            await identity.register(ServiceIdentity("identity", "1.2.3", "", ours))
            assert brief((await ward.examine())["identity"]) == ("ok", "1 replica runs")


async def no_response(request: Request) -> bytes:
    return b""


async def test_an_api_that_does_not_answer_and_servers_that_are_away_are_found(ward: Ward) -> None:
    ward.responses.clear()
    ward.redis_server.stop()
    found = await ward.examine()
    assert found["api"].state == "failed"
    assert found["redis"].state == "failed"
    assert found["streams"].state == "ok"

    ward.nats_server.stop()
    assert worst((await ward.examine()).values()) == "failed"
    ward.nats_server.start()


async def test_a_landscape_at_work_is_well(operator: Operator) -> None:
    async def well() -> None:
        examined = operator.call("doctor", "-o", "json")
        failed = [each for each in examined.output["findings"] if each["state"] == "failed"]
        assert (examined.code, failed) == (0, []), failed

    await eventually(well)
    shown = operator.call("doctor")
    assert shown.code == 0
    assert "heartbeats" in shown.stdout
