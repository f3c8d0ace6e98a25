"""A scheduler's view of usage when the store comes back on an older copy."""

import asyncio

import pytest

from gardenbus.common.api.document import StoredObject
from gardenbus.common.ports.store import SeedBinding
from gardenbus.scheduler.housekeeping import Housekeeping
from gardenbus.scheduler.watch.usage_refresh import record_usage
from gardenbus.scheduling.cache import SchedulingCache
from tests.support.builders import a_seed, a_shoot
from tests.support.clocks import FakeClock
from tests.support.memory.outbox import MemoryOutbox
from tests.support.memory.store import MemoryStore
from tests.support.scheduling import InstantInformer


async def bound(store: MemoryStore, name: str, seed: str) -> SeedBinding:
    shoot = await store.create(a_shoot(name))
    assert isinstance(shoot, StoredObject)
    return SeedBinding(shoot.key.namespace, name, shoot.uid, shoot.generation, seed, None)


@pytest.mark.parametrize("with_reply", [True, False])
async def test_usage_that_was_lost_with_the_store_is_forgotten_even_if_as_much_came_since(with_reply: bool) -> None:
    clock = FakeClock()
    store = MemoryStore(clock)
    for seed in ("one", "two"):
        await store.create(a_seed(seed))
    cache = SchedulingCache(InstantInformer(store), "SameRegion")
    housekeeping = Housekeeping(store=store, cache=cache, clock=clock, stopping=asyncio.Event())
    copy = store.copied()
    lost = await store.bind([await bound(store, "a", "one")])
    cache.record_usage(lost.usage)
    assert cache.snapshot().usage == {"one": 1}

    store.restore_copy(copy)
    relay = MemoryOutbox(store)
    await relay.lead(5)
    await relay.open(0, 0)
    since = await store.bind([await bound(store, "b", "two")], cache.usage_version)
    if with_reply:
        await record_usage(store, cache, since.usage)
    else:
        cache.record_usage(since.usage)
        await housekeeping.refresh_usage()
    assert cache.snapshot().usage == {"two": 1}
