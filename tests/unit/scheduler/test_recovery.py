"""A scheduler on a store that was restored: what was ordered before waits, and what runs elsewhere is not bound."""

from gardenbus.common.api.document import section
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.recovery import InventoryItem
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot
from tests.support.memory.outbox import MemoryOutbox
from tests.support.memory.recovering import begin_recovery
from tests.support.memory.store import MemoryStore
from tests.support.scheduling import SchedulerUnderTest, shoot_in, stocked

BASE = (a_cloudprofile(), a_project(), a_seed("a"), a_seed("b"))


async def recovering(store: MemoryStore) -> tuple[MemoryOutbox, str]:
    """Open the store anew, as one that went back; the relay's side, and the id of the recovery."""
    outbox = await begin_recovery(store)
    recovery = await store.recovery()
    assert recovery is not None
    return outbox, recovery.recovery_id


async def message_of(store: MemoryStore, name: str) -> str:
    return str(section((await shoot_in(store, name)).document(), "status", "lastOperation").get("description"))


async def test_a_shoot_from_before_waits_with_its_reason_until_the_recovery_ends() -> None:
    store = await stocked(*BASE, a_shoot("before"))
    outbox, recovery = await recovering(store)
    scheduler = SchedulerUnderTest(store)
    await scheduler.handle_batch("before")
    assert (await shoot_in(store, "before")).parts.seed_name == ""
    assert "these seeds have not reported yet what they run: a, b" in await message_of(store, "before")
    for seed in ("a", "b"):
        await store.take_inventory(seed, recovery, [])
    assert (await outbox.advance_recovery(recovery, announces=False)).has_ended
    await scheduler.handle_batch("before")
    assert (await shoot_in(store, "before")).parts.seed_name == "a"


async def test_a_shoot_ordered_since_goes_to_a_seed_that_has_sent_its_inventory() -> None:
    store = await stocked(*BASE, a_shoot("before"))
    _, recovery = await recovering(store)
    await store.create(a_shoot("after"))
    await store.create(a_shoot("later"))
    scheduler = SchedulerUnderTest(store)
    await scheduler.handle_batch("after")
    assert (await shoot_in(store, "after")).parts.seed_name == ""
    assert "it has not reported yet what it runs" in await message_of(store, "after")
    await store.take_inventory("b", recovery, [])
    await scheduler.handle_batch("before", "after", "later")
    placed = [(await shoot_in(store, name)).parts.seed_name for name in ("before", "after", "later")]
    assert placed == ["", "b", "b"]


async def test_a_shoot_that_runs_where_the_store_lost_it_is_bound_nowhere_else() -> None:
    store = await stocked(*BASE, a_shoot("apollo"))
    outbox, recovery = await recovering(store)
    apollo = await shoot_in(store, "apollo")
    await store.take_inventory("b", recovery, [InventoryItem(ObjectKey("shoot", "garden-dev", "apollo"), apollo.uid)])
    await store.take_inventory("a", recovery, [])
    await outbox.advance_recovery(recovery, announces=False)
    scheduler = SchedulerUnderTest(store)
    await scheduler.handle_batch("apollo")
    assert (await shoot_in(store, "apollo")).parts.seed_name == ""
    assert "the store has lost that" in await message_of(store, "apollo")
    await store.forget(apollo.key, "b", apollo.uid)
    await scheduler.handle_batch("apollo")
    assert (await shoot_in(store, "apollo")).parts.seed_name == "a"
