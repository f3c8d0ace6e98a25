"""Requests that wait for the apiserver: a sender has a share of the stream, and is told when it is used up."""

import json

import pytest

from gardenbus.common.adapters.nats import streams
from gardenbus.common.errors import TooManyRequests
from gardenbus.common.ports.bus import Message
from tests.contract.bus.test_streams import change, configuration
from tests.support.buses import BusUnderTest
from tests.support.eventually import eventually

SHARE = 100


@pytest.fixture(autouse=True)
def small_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(streams.SHARE_OF_EACH, "max_msgs_per_subject", SHARE)


async def waiting(jetstream: BusUnderTest) -> dict[str, int]:
    """Messages in REQUESTS by sender."""
    body = json.dumps({"subjects_filter": ">"}).encode()
    response = await jetstream.bus.request(f"$JS.API.STREAM.INFO.{jetstream.stream('REQUESTS')}", body)
    found = json.loads(response)["state"].get("subjects", {})
    return {subject.split(".")[-2]: count for subject, count in found.items()}


async def test_beyond_its_share_a_sender_is_refused_and_others_are_not(jetstream: BusUnderTest) -> None:
    await jetstream.bus.ensure_streams()
    eve, ann = (Message(jetstream.subjects.as_user(user, "apply"), b"{}") for user in ("eve", "ann"))
    for _ in range(SHARE):
        await jetstream.bus.publish(eve)
    for _ in range(3):
        with pytest.raises(TooManyRequests, match=r"as\.eve\.apply wait for the apiserver: send this again later"):
            await jetstream.bus.publish(eve)
    await jetstream.bus.publish(ann)
    assert await waiting(jetstream) == {"eve": SHARE, "ann": 1}


async def test_requests_sent_together_are_refused_beyond_it_too_and_go_on_when_there_is_room(
    jetstream: BusUnderTest,
) -> None:
    await jetstream.bus.ensure_streams()
    eve = Message(jetstream.subjects.as_user("eve", "apply"), b"{}")
    queue = await jetstream.bus.work_queue(jetstream.stream("REQUESTS"), "apiserver", ">")
    for _ in range(3):
        await jetstream.bus.publish_many([eve] * 30)
    with pytest.raises(TooManyRequests):
        await jetstream.bus.publish_many([eve] * 30)
    assert await waiting(jetstream) == {"eve": SHARE}  # each is acknowledged for itself: those before it are stored
    taken = await queue.fetch(SHARE, 5)
    await queue.ack_many(taken)

    async def room() -> None:
        assert not await waiting(jetstream)

    await eventually(room)
    await jetstream.bus.publish(eve)


async def test_a_stream_that_has_more_already_loses_nothing_and_gets_the_share_when_it_has_less(
    jetstream: BusUnderTest,
) -> None:
    await change(jetstream, "REQUESTS", max_msgs_per_subject=-1, discard="old", discard_new_per_subject=False)
    eve = Message(jetstream.subjects.as_user("eve", "apply"), b"{}")
    await jetstream.bus.publish_many([eve] * (3 * SHARE))
    await jetstream.bus.ensure_streams()
    assert await waiting(jetstream) == {"eve": 3 * SHARE}
    queue = await jetstream.bus.work_queue(jetstream.stream("REQUESTS"), "apiserver", ">")
    await queue.ack_many(await queue.fetch(3 * SHARE, 5))

    async def shared() -> None:
        await jetstream.bus.ensure_streams()
        found = await configuration(jetstream, "REQUESTS")
        assert (found["max_msgs_per_subject"], found["discard"]) == (SHARE, "new")
        assert found["discard_new_per_subject"]

    await eventually(shared)
