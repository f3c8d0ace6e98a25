"""Messages that no stream stores."""

import asyncio

from tests.support.buses import BusUnderTest, until_true
from tests.support.eventually import HANG_SECONDS
from tests.support.servers import Server


async def received(under_test: BusUnderTest, subject: str, *groups: str) -> list[list[bytes]]:
    """What the subscribers of these groups get from now on."""
    bodies: list[list[bytes]] = [[] for _ in groups]
    for group, got in zip(groups, bodies, strict=True):
        await under_test.another.subscribe(subject, group, got.append)
    ready: list[bytes] = []  # the server has these subscriptions once it hands over what comes by a later one
    await under_test.another.subscribe(f"{subject}.ready", "ready", ready.append)
    async with asyncio.timeout(HANG_SECONDS):
        while not ready:
            under_test.bus.notify(f"{subject}.ready", b"")
            await asyncio.sleep(0.01)
    return bodies


async def test_one_subscriber_of_each_group_gets_a_notification(under_test: BusUnderTest) -> None:
    subject = under_test.subjects.scheduling_hint("mine")
    bodies = await received(under_test, subject, "a", "a", "b")

    for number in range(20):
        under_test.bus.notify(subject, b"%d" % number)

    async def all_there() -> bool:
        return sum(map(len, bodies)) == 40

    await until_true(all_there)
    everything = [b"%d" % number for number in range(20)]
    assert sorted(bodies[0] + bodies[1]) == sorted(everything)
    assert bodies[2] == everything


async def test_a_notification_goes_to_the_subscribers_of_its_subject_alone(under_test: BusUnderTest) -> None:
    mine, other = (under_test.subjects.scheduling_hint(name) for name in ("mine", "other"))
    (got,) = await received(under_test, mine, "a")

    under_test.bus.notify(other, b"other")
    under_test.bus.notify(mine, b"mine")

    async def is_there() -> bool:
        return bool(got)

    await until_true(is_there)
    assert got == [b"mine"]


async def test_nobody_needs_to_be_there(under_test: BusUnderTest) -> None:
    subject = under_test.subjects.scheduling_hint("mine")
    under_test.bus.notify(subject, b"lost")
    await under_test.bus.position(under_test.stream("OBJECTS"))  # the server has taken it by now
    (got,) = await received(under_test, subject, "a")
    under_test.bus.notify(subject, b"seen")

    async def is_there() -> bool:
        return bool(got)

    await until_true(is_there)
    assert got == [b"seen"]


async def test_a_subscription_outlives_the_server_and_what_is_sent_meanwhile_is_dropped(
    own: BusUnderTest, nats_server: Server
) -> None:
    subject = own.subjects.scheduling_hint("mine")
    (got,) = await received(own, subject, "a")

    nats_server.kill()
    await until_true(lambda: has_lost_its_server(own))
    own.bus.notify(subject, b"dropped")
    nats_server.start()
    async with asyncio.timeout(HANG_SECONDS):
        while not got:
            own.bus.notify(subject, b"seen")
            await asyncio.sleep(0.05)

    assert set(got) == {b"seen"}


async def has_lost_its_server(under_test: BusUnderTest) -> bool:
    return not (under_test.bus.connected or under_test.another.connected)
