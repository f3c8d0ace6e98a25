"""Many who ask where the stream stands share an answer that is never older than their question."""

import asyncio

from gardenbus.common.controller.shared_query import SharedQuery
from gardenbus.common.ports.bus import StreamPosition

TURNS = 10
"""Of the event loop, that it takes to tell a position."""


class SlowStream:
    """The part of a bus that tells a position, slowly; it moves on with each message."""

    def __init__(self) -> None:
        self.sequence = 0
        self.requested = 0

    async def position(self) -> StreamPosition:
        self.requested += 1
        position = StreamPosition(1, self.sequence)
        for _ in range(TURNS):
            await asyncio.sleep(0)
        return position


async def test_nobody_gets_a_position_from_before_the_question() -> None:
    stream = SlowStream()
    latest = SharedQuery(stream.position)

    async def query() -> None:
        stream.sequence += 1
        existing = stream.sequence
        assert (await latest.get()).sequence >= existing

    async with asyncio.TaskGroup() as group:
        for _ in range(100):
            group.create_task(query())
            await asyncio.sleep(0)

    assert stream.requested < 2 * 100 / TURNS
