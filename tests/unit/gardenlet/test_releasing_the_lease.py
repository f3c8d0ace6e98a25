"""The Lease after a stop, whatever the stop cut off: a standby need not wait out the grace period."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from gardenbus.common.api.configuration.gardenlet import LeaseSettings
from gardenbus.common.api.keys import Subjects
from gardenbus.common.ports.bus import Message
from gardenbus.gardenlet.backend.port import FencingToken
from gardenbus.gardenlet.clients.lease_heartbeat import HeldLease, LeaseHeartbeat, observed_lease
from tests.support.clocks import FakeClock
from tests.support.memory.bus import MemoryBus, MemoryServer

SUBJECTS = Subjects("garden")
SUBJECT = SUBJECTS.lease("aws-eu1")


class SilentBus(MemoryBus):
    """A connection on which, from `falls_silent` on, messages arrive and no acknowledgement comes back."""

    falls_silent = False

    async def publish(self, message: Message, *, expected_subject_sequence: int | None = None) -> int:
        sequence = await super().publish(message, expected_subject_sequence=expected_subject_sequence)
        if self.falls_silent:
            await asyncio.Event().wait()
        return sequence


async def _nothing() -> None: ...


async def _well() -> str | None:
    return None


async def _activated(token: FencingToken) -> None: ...


def a_heartbeat(
    bus: MemoryBus, identity: str = "me", on_active: Callable[[FencingToken], Awaitable[None]] = _activated
) -> LeaseHeartbeat:
    return LeaseHeartbeat(
        bus=bus,
        subjects=SUBJECTS,
        seed_name="aws-eu1",
        identity=identity,
        settings=LeaseSettings(),
        clock=bus.server.clock,
        lease=HeldLease(bus.server.clock, LeaseSettings().grace_period),
        probe=_well,
        seed_uid=lambda: "",
        on_active=on_active,
        on_stand_by=_nothing,
    )


def a_bus() -> SilentBus:
    clock = FakeClock()
    return SilentBus(clock, server=MemoryServer(clock))


async def cut_off(heartbeat: LeaseHeartbeat) -> None:
    """Cancel a round that waits for its acknowledgement, as a stop does."""
    task = asyncio.create_task(heartbeat.round())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def holder(bus: MemoryBus) -> tuple[str, int]:
    """Who holds the Lease, and how often it was published."""
    lease = observed_lease(await bus.last(SUBJECTS.stream("LEASES"), SUBJECT))
    return ("nobody ever", 0) if lease is None else (lease.holder, lease.sequence)


async def test_a_lease_that_is_held_is_released() -> None:
    bus = a_bus()
    heartbeat = a_heartbeat(bus)
    assert await heartbeat.round()
    await heartbeat.release()

    assert await holder(bus) == ("", 2)


async def test_a_renewal_that_the_stop_cut_off_is_released() -> None:
    bus = a_bus()
    heartbeat = a_heartbeat(bus)
    await heartbeat.round()
    bus.falls_silent = True
    await cut_off(heartbeat)
    assert await holder(bus) == ("me", 2)
    bus.falls_silent = False
    await heartbeat.release()

    assert await holder(bus) == ("", 3)


async def test_an_acquisition_that_the_stop_cut_off_is_released() -> None:
    bus = a_bus()
    heartbeat = a_heartbeat(bus)
    bus.falls_silent = True
    await cut_off(heartbeat)
    assert await holder(bus) == ("me", 1)
    bus.falls_silent = False
    await heartbeat.release()

    assert await holder(bus) == ("", 2)


async def test_an_acquisition_that_the_stop_cut_off_before_it_was_active_is_released() -> None:
    async def stuck(token: FencingToken) -> None:
        await asyncio.Event().wait()

    bus = a_bus()
    heartbeat = a_heartbeat(bus, on_active=stuck)
    await cut_off(heartbeat)
    await heartbeat.release()

    assert await holder(bus) == ("", 2)


async def test_a_lease_that_another_holds_by_now_is_left_alone() -> None:
    bus = a_bus()
    heartbeat = a_heartbeat(bus)
    await heartbeat.round()
    foreign = msgspec.json.encode({"kind": "Lease", "spec": {"holderIdentity": "somebody else"}})
    await bus.publish(Message(SUBJECT, foreign))
    await heartbeat.release()

    assert await holder(bus) == ("somebody else", 2)


async def test_a_standby_releases_nothing() -> None:
    bus = a_bus()
    active, standby = a_heartbeat(bus), a_heartbeat(bus, "you")
    await active.round()
    assert not await standby.round()
    await standby.release()

    assert await holder(bus) == ("me", 1)


async def test_a_release_that_is_repeated_does_nothing() -> None:
    bus = a_bus()
    heartbeat = a_heartbeat(bus)
    await heartbeat.round()
    await heartbeat.release()
    await heartbeat.release()

    assert await holder(bus) == ("", 2)


def test_a_lease_that_is_not_renewed_is_held_for_the_grace_period_only() -> None:
    clock, grace_period = FakeClock(), LeaseSettings().grace_period
    lease = HeldLease(clock, grace_period)
    assert not lease.is_active
    lease.sequence = 1
    clock.advance(grace_period.total_seconds() - 1)
    assert lease.is_active
    clock.advance(1)
    assert not lease.is_active
