"""Writes of one turn leave as one request with what follows a write, and each caller learns what became of its own."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from gardenbus.common.adapters.redis.multiplexed_connection import Command
from gardenbus.common.adapters.redis.replicated_writes import ReplicatedWrites, Written
from gardenbus.common.errors import Unavailable

WAIT: Command = ("WAIT", 2, 500)


class RecordingServer:
    """Answers each command with its name, and remembers the requests."""

    def __init__(self) -> None:
        self.requests: list[Sequence[Command]] = []
        self.accepted: list[Sequence[Any]] = []
        self.problem: Unavailable | None = None
        self.is_away = False

    async def execute(self, commands: Sequence[Command]) -> list[Any]:
        self.requests.append(commands)
        await asyncio.sleep(0)
        if self.is_away:
            raise Unavailable("it is away")
        return [command[0] for command in commands]

    async def accept(self, replies: Sequence[Any]) -> None:
        self.accepted.append(replies)
        if self.problem is not None:
            raise self.problem


@pytest.fixture
def server() -> RecordingServer:
    return RecordingServer()


@pytest.fixture
def writes(server: RecordingServer) -> ReplicatedWrites:
    return ReplicatedWrites(server.execute, lambda: [WAIT], server.accept)


async def test_what_is_written_in_one_turn_is_waited_for_once(
    server: RecordingServer, writes: ReplicatedWrites
) -> None:
    found = await asyncio.gather(writes.write([("A",), ("B",)]), writes.write([("C",)]))
    assert found == [Written(["A", "B"], None), Written(["C"], None)]
    assert server.requests == [[("A",), ("B",), ("C",), WAIT]]
    assert server.accepted == [["WAIT"]]


async def test_what_is_written_later_is_waited_for_by_itself(server: RecordingServer, writes: ReplicatedWrites) -> None:
    await writes.write([("A",)])
    await writes.write([("B",)])
    assert server.requests == [[("A",), WAIT], [("B",), WAIT]]


async def test_replies_that_do_not_count_come_with_the_reason(
    server: RecordingServer, writes: ReplicatedWrites
) -> None:
    server.problem = Unavailable("1 of 2 replicas have it")
    found = await asyncio.gather(writes.write([("A",)]), writes.write([("B",)]))
    assert found == [Written(["A"], server.problem), Written(["B"], server.problem)]


async def test_each_caller_learns_that_the_server_is_away(server: RecordingServer, writes: ReplicatedWrites) -> None:
    server.is_away = True
    found = await asyncio.gather(writes.write([("A",)]), writes.write([("B",)]), return_exceptions=True)
    assert [str(each) for each in found] == ["it is away"] * 2
    assert found[0] is not found[1]
    server.is_away = False
    assert await writes.write([("C",)]) == Written(["C"], None)


async def test_what_nobody_waits_for_any_more_never_leaves(server: RecordingServer, writes: ReplicatedWrites) -> None:
    given_up, kept = (asyncio.create_task(writes.write([(name,)])) for name in ("A", "B"))
    asyncio.get_running_loop().call_soon(given_up.cancel)
    await asyncio.sleep(0)
    assert await kept == Written(["B"], None)
    assert given_up.cancelled()
    assert server.requests == [[("B",), WAIT]]


async def test_each_caller_gets_an_error_that_nobody_expected(server: RecordingServer) -> None:
    async def broken(_replies: Sequence[Any]) -> None:
        raise ValueError("no number")

    writes = ReplicatedWrites(server.execute, lambda: [WAIT], broken)
    found = await asyncio.gather(writes.write([("A",)]), writes.write([("B",)]), return_exceptions=True)
    assert [str(each) for each in found if isinstance(each, ValueError)] == ["no number", "no number"]
