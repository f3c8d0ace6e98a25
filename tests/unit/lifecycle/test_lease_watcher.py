"""The watch of Leases: each that arrives is handled under a reconcile_id of its own."""

import asyncio

from structlog.contextvars import get_contextvars

from gardenbus.common.api.configuration.controller_manager import LifecycleConfiguration
from gardenbus.common.api.keys import Subjects
from gardenbus.common.ports.bus import Message
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.lifecycle.watch.leases import LeaseWatcher
from tests.support.eventually import eventually
from tests.support.memory.bus import MemoryBus


async def test_each_lease_has_a_reconcile_id_of_its_own() -> None:
    subjects, clock, ids = Subjects("garden"), SystemClock(), list[str]()
    bus = MemoryBus(clock)
    leases = LeaseWatcher(
        bus,
        subjects,
        clock,
        LifecycleConfiguration(),
        holder="lifecycle-1",
        on_change=lambda: ids.append(get_contextvars()["reconcile_id"]),
    )
    following = asyncio.create_task(leases.follow())
    await leases.caught_up.wait()
    for seed in ("aws-cork", "aws-dublin"):
        await bus.publish(Message(subject=subjects.lease(seed), body=b""))

    async def observed() -> None:
        assert len(ids) == 3, "the end of the replay, and a Lease of each seed that says nothing"

    await eventually(observed)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    assert len(set(ids)) == 3
    assert "reconcile_id" not in get_contextvars()
