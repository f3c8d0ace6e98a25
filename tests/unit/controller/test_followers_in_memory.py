"""Followers of the memory bus restart where JetStream's do (tests/contract/bus/test_outages.py)."""

import pytest

from gardenbus.common.api.keys import Subjects
from gardenbus.common.ports.bus import FollowRestarted, Message
from tests.support.buses import next_event, replay
from tests.support.clocks import FakeClock
from tests.support.memory.bus import MemoryBus

SUBJECT = Subjects().binding("s1", "ns", "a")


@pytest.mark.parametrize("others", [0, 3], ids=["shorter", "grown since"])
async def test_what_was_removed_before_a_follower_began_is_no_news_of_a_server_that_came_back_older(
    others: int,
) -> None:
    bus = MemoryBus(FakeClock())
    await bus.publish(Message(SUBJECT))
    older = bus.server.copy_streams()
    await bus.publish(Message(Subjects().binding("s2", "ns", "b")))
    await bus.purge("BINDINGS", SUBJECT)
    async with bus.follow("BINDINGS", [SUBJECT], last_per_subject=True) as follower:
        assert await replay(follower) == []
        bus.server.restore_streams(older)
        for number in range(others):
            await bus.publish(Message(Subjects().binding("s2", "ns", f"c{number}")))
        assert isinstance(await next_event(follower), FollowRestarted)
        assert [message.subject for message in await replay(follower)] == [SUBJECT]
