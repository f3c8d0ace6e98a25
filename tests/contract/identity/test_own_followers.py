"""An agent follows its part of a stream by consumers of its own, whatever happens to connection, stream and server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from gardenbus.common.adapters.nats import jetstream, own_follower
from gardenbus.common.adapters.nats.jetstream import JetStreamBus
from gardenbus.common.adapters.nats.messages import publish_command
from gardenbus.common.adapters.nats.streams import LARGEST_LEASE
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.errors import BadRequest, Conflict, GardenbusError
from gardenbus.common.ports.bus import Follower, FollowRestarted, Message, ReplayDone, StreamMessage
from tests.support.buses import next_event
from tests.support.eventually import HANG_SECONDS
from tests.support.identities import SUBJECTS, Guarded, guarded

GARDENLET = Principal("gardenlet", "aws-cork")
FILTERS = (SUBJECTS.bindings_of("aws-cork"), SUBJECTS.views_of("aws-cork"))


class Scene:
    """A guarded server with its streams, and buses of the relay and of agents."""

    def __init__(self, landscape: Guarded, stack: AsyncExitStack) -> None:
        self.landscape = landscape
        self._stack = stack
        self.relay: JetStreamBus

    async def bus(self, principal: Principal = GARDENLET, *, manages_streams: bool = False) -> JetStreamBus:
        """A bus of somebody's."""
        credentials = self.landscape.credentials(principal)
        opened = jetstream.connect(
            self.landscape.server.url, principal.user, credentials=credentials, manages_streams=manages_streams
        )
        return await self._stack.enter_async_context(opened)

    async def bind(self, *names: str, seed: str = "aws-cork", family: str = "binding") -> None:
        """Announce bindings, or what a seed sees."""
        for name in names:
            await self.relay.publish(Message(f"garden.{family}.{seed}.dev.{name}", name.encode()))

    def violations(self) -> list[str]:
        """What the server refused."""
        log = (self.landscape.server.directory / "server.log").read_text()
        return [line for line in log.splitlines() if "iolation" in line]


@pytest.fixture
async def scene(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> AsyncIterator[Scene]:
    """What is missing is missed soon; sessions are as long as the test says."""
    monkeypatch.setattr(own_follower, "HEARTBEAT_SECONDS", 0.5)
    session: timedelta = getattr(request, "param", timedelta(hours=1))
    async with guarded(tmp_path, session=session) as landscape, AsyncExitStack() as stack:
        scene = Scene(landscape, stack)
        scene.relay = await scene.bus(Principal("service", "relay"), manages_streams=True)
        yield scene
        assert not scene.violations()


async def _until_replayed(follower: Follower) -> list[str]:
    """Bodies until the replay is done."""
    found: list[str] = []
    while not isinstance(event := await next_event(follower), ReplayDone):
        if isinstance(event, StreamMessage):
            found.append(event.body.decode())
    return found


async def _next_body(follower: Follower) -> str:
    event = await next_event(follower)
    assert isinstance(event, StreamMessage), event
    return event.body.decode()


async def test_the_last_of_each_subject_comes_first_then_what_comes(scene: Scene) -> None:
    await scene.bind("a", "b", "a")
    await scene.bind("state", family="view")
    await scene.bind("foreign", seed="aws-dublin")
    bus = await scene.bus()
    async with bus.follow("BINDINGS", FILTERS, last_per_subject=True) as follower:
        assert sorted(await _until_replayed(follower)) == ["a", "b", "state"]
        await scene.bind("c")
        assert await _next_body(follower) == "c"
        await scene.bind("later", family="view")
        assert await _next_body(follower) == "later"


@pytest.mark.parametrize("scene", [timedelta(seconds=3)], indirect=True)
async def test_nothing_is_missed_while_sessions_end(scene: Scene) -> None:
    """Three sessions long, a message each 20 ms: all come, in order, and none of it is a replay."""
    bus = await scene.bus()
    names = [f"s{number}" for number in range(400)]

    async def announce() -> None:
        for name in names:
            await scene.bind(name)
            await asyncio.sleep(0.02)

    async with bus.follow("BINDINGS", FILTERS, last_per_subject=True) as follower:
        await _until_replayed(follower)
        announcing = asyncio.create_task(announce())
        assert [await _next_body(follower) for _ in names] == names
        await announcing


async def test_a_message_that_another_process_fetched_is_not_missed(scene: Scene) -> None:
    bus, thief = await scene.bus(), await scene.landscape.connect(GARDENLET)
    async with bus.follow("BINDINGS", FILTERS, last_per_subject=True) as follower:
        await _until_replayed(follower)
        await scene.bind("a")
        assert await _next_body(follower) == "a"
        request = msgspec.json.encode({"batch": 1, "expires": 2_000_000_000})
        for name in ("b", "c"):
            subject = "IN.API.CONSUMER.MSG.NEXT.BINDINGS.aws-cork"
            await thief.send([publish_command(subject, request, reply=thief.new_inbox())])
            await thief.flush_fully()
            await scene.bind(name)
        assert [await _next_body(follower), await _next_body(follower)] == ["b", "c"]


async def test_the_younger_of_two_processes_follows_and_the_older_one_notices(scene: Scene) -> None:
    older, younger = await scene.bus(), await scene.bus()
    async with older.follow("BINDINGS", FILTERS, last_per_subject=True) as first:
        await _until_replayed(first)
        await scene.bind("a")
        async with younger.follow("BINDINGS", FILTERS, last_per_subject=True) as second:
            assert await _until_replayed(second) == ["a"]
            with pytest.raises(Conflict, match="another process follows BINDINGS as aws-cork"):
                await _until_replayed(first)
            await scene.bind("b")
            assert await _next_body(second) == "b"


async def test_the_older_process_does_not_take_back_what_a_younger_one_is_about_to_make(scene: Scene) -> None:
    """The older one listens as its consumers are removed, and made by the other: either could come first."""
    buses = [await scene.bus(), await scene.bus()]
    for _ in range(8):
        async with buses[0].follow("BINDINGS", FILTERS, last_per_subject=True) as first:
            await _until_replayed(first)
            older = asyncio.create_task(_until_replayed(first))
            await asyncio.sleep(0.05)
            async with buses[1].follow("BINDINGS", FILTERS, last_per_subject=True) as second:
                younger = asyncio.create_task(_until_replayed(second))
                with pytest.raises(Conflict, match="another process follows"):
                    await asyncio.wait_for(older, HANG_SECONDS)
                await younger


async def test_a_stream_that_is_made_anew_is_told_from_the_start(scene: Scene) -> None:
    operator = await scene.bus(Principal("operator", "operator"))
    await scene.bind("a", "b")
    bus = await scene.bus()
    async with bus.follow("BINDINGS", FILTERS, last_per_subject=True) as follower:
        await _until_replayed(follower)
        await operator.request("$JS.API.STREAM.DELETE.BINDINGS", b"")
        await scene.relay.ensure_streams()
        await scene.bind("c")
        assert isinstance(await next_event(follower), FollowRestarted)
        assert await _until_replayed(follower) == ["c"]


async def test_a_server_that_starts_again_is_told_from_the_start(scene: Scene) -> None:
    await scene.bind("a")
    bus = await scene.bus()
    async with bus.follow("BINDINGS", FILTERS, last_per_subject=True) as follower:
        await _until_replayed(follower)
        await asyncio.to_thread(scene.landscape.server.kill)
        await asyncio.to_thread(scene.landscape.server.start)
        assert isinstance(await next_event(follower), FollowRestarted)
        assert await _until_replayed(follower) == ["a"]


async def test_nobody_follows_what_is_not_granted(scene: Scene) -> None:
    bus = await scene.bus()
    for filters in ((SUBJECTS.bindings_of("aws-dublin"),), ("garden.binding.>",), ()):
        with pytest.raises(BadRequest, match="seed:aws-cork may follow"):
            async with bus.follow("BINDINGS", filters):
                pass


async def test_a_lease_is_read_by_its_own_subject_and_none_is_large(scene: Scene) -> None:
    bus = await scene.bus()
    subject = SUBJECTS.lease("aws-cork")
    assert await bus.last("LEASES", subject) is None
    await bus.publish(Message(subject, b"held"))
    with pytest.raises(GardenbusError, match="message size exceeds maximum allowed"):
        await bus.publish(Message(subject, bytes(LARGEST_LEASE + 1)))
    found = await bus.last("LEASES", subject)
    assert found is not None
    assert (found.body, found.sequence) == (b"held", 1)


async def test_a_request_for_more_messages_than_a_batch_is_rejected(scene: Scene) -> None:
    bus = await scene.bus()
    await scene.bind("a")
    async with bus.follow("BINDINGS", FILTERS[:1], last_per_subject=True) as follower:
        assert await _until_replayed(follower) == ["a"]
        subject = f"{bus.connection.jetstream_api}.CONSUMER.MSG.NEXT.BINDINGS.aws-cork"
        body = msgspec.json.encode({"batch": own_follower.BATCH + 1, "no_wait": True})
        rejected = await bus.connection.request_raw(subject, body, timeout_seconds=HANG_SECONDS)
        assert (rejected.status, rejected.description) == (409, f"Exceeded MaxRequestBatch of {own_follower.BATCH}")
