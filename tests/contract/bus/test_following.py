"""What a follower promises: every message once, in order, and an honest word about where it stands."""

import asyncio

import pytest

from gardenbus.common.adapters.nats import follower as follower_adapter
from gardenbus.common.ports.bus import FollowRestarted, Message, ReplayDone, StreamMessage
from tests.support.buses import BusUnderTest, next_event, replay
from tests.support.eventually import HANG_SECONDS


async def test_an_empty_stream_is_replayed_at_once(under_test: BusUnderTest):
    async with under_test.bus.follow(under_test.stream("OBJECTS"), []) as follower:
        assert isinstance(await next_event(follower), ReplayDone)


async def test_what_was_there_comes_first_then_what_comes(under_test: BusUnderTest):
    await under_test.announce("a", "b")

    async with under_test.bus.follow(under_test.stream("OBJECTS"), [f"{under_test.subjects.prefix}.changed.>"]) as f:
        assert [message.sequence for message in await replay(f)] == [1, 2]
        await under_test.announce("c", body=b"new")
        event = await next_event(f)

    assert isinstance(event, StreamMessage)
    assert (event.subject, event.sequence, event.body) == (under_test.change("c"), 3, b"new")


async def test_following_after_a_sequence_leaves_out_what_came_before(under_test: BusUnderTest):
    await under_test.announce("a", "b", "c")

    async with under_test.bus.follow(under_test.stream("OBJECTS"), [], after_sequence=2) as follower:
        assert [message.sequence for message in await replay(follower)] == [3]


async def test_following_after_the_end_has_nothing_to_replay(under_test: BusUnderTest):
    await under_test.announce("a")

    async with under_test.bus.follow(under_test.stream("OBJECTS"), [], after_sequence=1) as follower:
        assert await next_event(follower) == ReplayDone(1)
        await under_test.announce("b")
        event = await next_event(follower)
    assert isinstance(event, StreamMessage)


async def test_filters_choose_subjects(under_test: BusUnderTest):
    await under_test.announce("a", "b", "c")

    filters = [under_test.change("a"), under_test.change("c"), under_test.change("a")]
    async with under_test.bus.follow(under_test.stream("OBJECTS"), filters) as follower:
        assert [message.sequence for message in await replay(follower)] == [1, 3]


async def test_a_filter_wider_than_the_stream_means_all_of_it(under_test: BusUnderTest):
    await under_test.announce("a")

    async with under_test.bus.follow(under_test.stream("OBJECTS"), [f"{under_test.subjects.prefix}.>"]) as follower:
        assert len(await replay(follower)) == 1


async def test_the_last_of_each_subject_may_be_asked_for(under_test: BusUnderTest):
    subject = f"{under_test.subjects.prefix}.event.shoot.ns.a"
    for text in (b"1", b"2", b"3"):
        await under_test.bus.publish(Message(subject, text))

    async with under_test.bus.follow(under_test.stream("EVENTS"), [], last_per_subject=True) as follower:
        assert [message.body for message in await replay(follower)] == [b"3"]
    async with under_test.bus.follow(under_test.stream("EVENTS"), []) as follower:
        assert [message.body for message in await replay(follower)] == [b"1", b"2", b"3"]


async def test_headers_alone_may_be_asked_for(under_test: BusUnderTest):
    await under_test.bus.publish(Message(under_test.subjects.lease("a"), b"body", {"Gardenbus-Fence": "1"}))

    async with under_test.bus.follow(under_test.stream("LEASES"), [], headers_only=True) as follower:
        (message,) = await replay(follower)
    assert message.body == b""
    assert message.headers["Gardenbus-Fence"] == "1"


async def test_a_long_replay_is_complete_and_in_order(under_test: BusUnderTest):
    for start in range(0, 6000, 1000):
        await under_test.announce(*(f"s{number}" for number in range(start, start + 1000)), body=b"x" * 3000)

    async with under_test.bus.follow(under_test.stream("OBJECTS"), []) as follower:
        assert [message.sequence for message in await replay(follower)] == list(range(1, 6001))


async def test_a_reader_that_takes_its_time_misses_nothing(under_test: BusUnderTest):
    seen: list[int] = []
    async with under_test.bus.follow(under_test.stream("OBJECTS"), []) as follower:
        writing = asyncio.create_task(_announce_slowly(under_test))
        async with asyncio.timeout(HANG_SECONDS):
            async for event in follower:
                if isinstance(event, StreamMessage):
                    seen.append(event.sequence)
                    if len(seen) % 500 == 0:
                        await asyncio.sleep(0.05)
                if len(seen) == 3000:
                    break
        await writing
    assert seen == list(range(1, 3001))


async def _announce_slowly(under_test: BusUnderTest) -> None:
    for start in range(0, 3000, 300):
        await under_test.announce(*(f"s{number}" for number in range(start, start + 300)), body=b"x" * 3000)


async def test_silence_is_short_while_all_is_well(under_test: BusUnderTest):
    async with under_test.bus.follow(under_test.stream("OBJECTS"), []) as follower:
        await replay(follower)
        assert follower.silent_seconds < HANG_SECONDS


async def test_a_stream_created_anew_is_followed_from_its_start(
    under_test: BusUnderTest, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(follower_adapter, "HEARTBEAT_SECONDS", 1.0)
    await under_test.announce("a", "b")
    async with under_test.bus.follow(under_test.stream("OBJECTS"), [], after_sequence=1) as follower:
        assert [message.sequence for message in await replay(follower)] == [2]

        await under_test.recreate("OBJECTS")
        await under_test.announce("c")

        assert isinstance(await next_event(follower), FollowRestarted)
        assert [message.subject for message in await replay(follower)] == [under_test.change("c")]
