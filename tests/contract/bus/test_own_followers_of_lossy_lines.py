"""An agent's follower on a connection that loses what the server sent, while it looks at its consumers."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from gardenbus.common.adapters.nats import own_follower
from gardenbus.common.adapters.nats.connection import Connection
from gardenbus.common.adapters.nats.messages import RawMessage
from gardenbus.common.adapters.nats.own_follower import OwnFollower
from gardenbus.common.ports.bus import Message, ReplayDone, StreamMessage
from tests.support.buses import BusUnderTest, next_event
from tests.support.servers import Server

SEED = "aws-cork"
BINDING, VIEW = "binding", "view"


class LossyConnection(Connection):
    """Loses each message whose body is named, once, and calls back before the first question about a consumer."""

    def __init__(self) -> None:
        super().__init__()
        self.losing: set[bytes] = set()
        self.before_info: Callable[[], Awaitable[None]] | None = None

    async def _process_msg(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes | None) -> None:
        if data in self.losing:
            self.losing.remove(data)
        else:
            await super()._process_msg(sid, subject, reply, data, headers)

    async def request_raw(
        self, subject: str, body: bytes, *, header: bytes = b"", timeout_seconds: float
    ) -> RawMessage:
        if ".CONSUMER.INFO." in subject and (callback := self.before_info) is not None:
            self.before_info = None
            await callback()
        return await super().request_raw(subject, body, header=header, timeout_seconds=timeout_seconds)


@pytest.fixture
async def agent(nats_server: Server) -> AsyncIterator[LossyConnection]:
    connection = LossyConnection()
    await connection.open(nats_server.url, "agent", on_reconnect=lambda: None)
    yield connection
    await connection.close()


async def test_what_one_consumer_received_while_another_was_looked_at_is_not_missed(
    own: BusUnderTest, agent: LossyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_follower, "HEARTBEAT_SECONDS", 0.5)
    prefix = own.subjects.prefix
    follower = OwnFollower(
        agent,
        own.stream("BINDINGS"),
        {f"{prefix}.{family}.{SEED}.>": family for family in (BINDING, VIEW)},
        after_sequence=None,
        last_per_subject=True,
        headers_only=False,
    )

    async def announce(family: str, *names: str) -> None:
        for name in names:
            await own.bus.publish(Message(f"{prefix}.{family}.{SEED}.dev.{name}", name.encode()))

    async def views_come() -> None:
        await announce(VIEW, "v2", "v3", "v4")
        await asyncio.sleep(0.2)  # both v2 and v4 arrive, so that v3 is missed

    await follower.open()
    await announce(BINDING, "b1")
    await announce(VIEW, "v1")
    assert isinstance(await next_event(follower), ReplayDone)
    assert {await body(follower) for _ in range(2)} == {"b1", "v1"}
    agent.losing = {b"b2", b"v3"}
    agent.before_info = views_come
    await announce(BINDING, "b2")
    found = [await body(follower) for _ in range(4)]
    assert [each for each in found if each.startswith("v")] == ["v2", "v3", "v4"]
    assert "b2" in found
    follower.close()


async def body(follower: OwnFollower) -> str:
    event = await next_event(follower)
    assert isinstance(event, StreamMessage), event
    return event.body.decode()
