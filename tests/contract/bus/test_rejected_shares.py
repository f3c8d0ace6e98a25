"""The stream of rejected messages: a share for each sender, on both adapters."""

from gardenbus.common.adapters.nats.streams import REJECTED_PER_SENDER
from gardenbus.common.ports.bus import Message
from tests.support.buses import BusUnderTest


async def test_one_sender_cannot_push_out_what_others_had_rejected(under_test: BusUnderTest) -> None:
    bus, subjects = under_test.bus, under_test.subjects
    theirs = subjects.rejected(subjects.as_user("ann", "apply"))
    junk = subjects.rejected(subjects.apply)
    await bus.publish(Message(theirs, b"ann's"))
    for start in range(0, REJECTED_PER_SENDER + 500, 500):
        await bus.publish_many([Message(junk, b"%d" % number) for number in range(start, start + 500)])

    counts = await bus.subjects(under_test.stream("REJECTED"), ">")
    assert counts == {theirs: 1, junk: REJECTED_PER_SENDER}
    kept = await bus.last(under_test.stream("REJECTED"), theirs)
    assert kept is not None
    assert kept.body == b"ann's"


async def test_what_a_former_version_rejects_is_still_kept(under_test: BusUnderTest) -> None:
    await under_test.bus.publish(Message(under_test.subjects.rejected_before, b"old"))
    assert await under_test.bus.subjects(under_test.stream("REJECTED"), ">") == {under_test.subjects.rejected_before: 1}
