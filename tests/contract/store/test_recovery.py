"""A store that was restored or rebuilt binds, moves and removes nothing on what it only half knows."""

import pytest

from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.garden.seed_management import REMOVAL_ANNOTATION
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Forbidden, NotFound
from gardenbus.common.ports.bus import StreamPosition
from gardenbus.common.ports.recovery import InventoryItem, Recovery
from gardenbus.common.ports.store import RequestOrigin, UnknownObject, WritePrecondition
from gardenbus.relay.ports.outbox import EventEntry, ObjectEntry, QueueEntry, RecoveryStart
from tests.support.builders import a_seed, a_shoot, merged
from tests.support.stores import StoreUnderTest

APOLLO = ObjectKey("shoot", "garden-dev", "apollo")
HERE, THERE = "aws-eu1", "aws-eu2"
REQUESTS = StreamPosition(17, 40)
START = RecoveryStart("it lacked what the bus had", "REQUESTS", REQUESTS)


async def restarted(kit: StoreUnderTest, start: RecoveryStart = START) -> str:
    """Open the store as one that went back; returns the id of its recovery, "" without one."""
    await kit.close_for_writes()
    await kit.outbox.open(0, 0, start)
    recovery = await kit.store.recovery()
    return recovery.recovery_id if recovery else ""


async def responded(kit: StoreUnderTest, recovery: str, *seeds: str) -> None:
    for seed in seeds:
        assert (await kit.store.take_inventory(seed, recovery, [])).is_current


async def waiting(kit: StoreUnderTest, seed: str = HERE) -> StoredObject:
    """A landscape of two seeds and a shoot that waits for one."""
    await kit.created(merged(a_seed(seed), {"status": {"allocatable": {"shoots": "1"}}}))
    await kit.created(a_seed(THERE))
    return await kit.created(a_shoot())


async def required(kit: StoreUnderTest) -> Recovery:
    recovery = await kit.store.recovery()
    assert recovery is not None
    return recovery


async def test_a_shoot_from_before_is_bound_nowhere_until_the_recovery_ends(kit: StoreUnderTest) -> None:
    shoot = await waiting(kit)
    recovery = await restarted(kit)
    assert await kit.bound(shoot, HERE) == "recovering"
    assert await kit.store.is_recovering(APOLLO)
    assert (await required(kit)).silent == (HERE, THERE)
    await responded(kit, recovery, HERE, THERE)
    assert await kit.bound(shoot, HERE) == "recovering", "a lease period has not passed"
    assert not (await kit.outbox.advance_recovery("", announces=False)).has_ended
    assert (await kit.outbox.advance_recovery(recovery, announces=False)).has_ended
    assert await kit.store.recovery() is None
    assert not await kit.store.is_recovering(APOLLO)
    assert await kit.bound(shoot, HERE) == "bound"


async def test_no_time_ends_it_while_a_seed_is_silent_but_an_operators_word_does(kit: StoreUnderTest) -> None:
    shoot = await waiting(kit)
    recovery = await restarted(kit)
    await responded(kit, recovery, HERE)
    await kit.pass_time(0.1)
    progress = await kit.outbox.advance_recovery(recovery, announces=False)
    assert not progress.has_ended
    assert progress.recovery is not None
    assert progress.recovery.silent == (THERE,)
    assert THERE in progress.recovery.text
    with pytest.raises(NotFound):
        await kit.store.go_on_without([THERE, "nowhere"], "ann")
    assert (await required(kit)).silent == (THERE,)
    without = await kit.store.go_on_without([THERE], "ann")
    assert without is not None
    assert without.responses == {HERE: "queried", THERE: "ann"}
    assert (await kit.outbox.advance_recovery("", announces=False)).has_ended
    assert await kit.bound(shoot, HERE) == "bound"
    assert await kit.store.go_on_without([THERE], "ann") is None


async def test_a_shoot_that_was_ordered_since_goes_to_a_seed_that_has_answered(kit: StoreUnderTest) -> None:
    await waiting(kit)
    recovery = await restarted(kit)
    put_back = await kit.created(a_shoot("put-back"), origin=RequestOrigin(17, 40, 3))
    ordered = await kit.created(a_shoot("ordered"), origin=RequestOrigin(17, 41))
    requested = await kit.created(a_shoot("requested"), origin=RequestOrigin(17, 40, 2**31))
    assert await kit.bound(ordered, HERE) == "seed-silent"
    with pytest.raises(Forbidden, match="has not reported yet what it runs"):
        await kit.store.create(a_shoot("named", spec={"seedName": HERE}))
    await responded(kit, recovery, HERE)
    assert await kit.bound(put_back, HERE) == "recovering"
    assert await kit.bound(ordered, THERE) == "seed-silent"
    assert await kit.bound(ordered, HERE) == "bound"
    await responded(kit, recovery, THERE)
    assert await kit.bound(requested, THERE) == "bound"
    assert [await kit.store.is_recovering(each.key) for each in (put_back, ordered)] == [True, False]


async def test_what_the_histories_know_of_requests_was_ordered_before_too(kit: StoreUnderTest) -> None:
    await kit.created(a_seed(HERE))
    await kit.store.observe_stream("REQUESTS", 17, last_sequence=90)
    recovery = await restarted(kit, START._replace(position=StreamPosition(18, 3)))
    await responded(kit, recovery, HERE)
    before = await kit.created(a_shoot("before"), origin=RequestOrigin(17, 90))
    after = await kit.created(a_shoot("after"), origin=RequestOrigin(18, 1))
    assert await kit.bound(before, HERE) == "recovering"
    assert await kit.bound(after, HERE) == "bound"


async def test_a_placed_shoot_does_not_move_and_no_seed_passes_for_empty(kit: StoreUnderTest) -> None:
    await waiting(kit)
    placed = await kit.created(a_shoot("placed", spec={"seedName": HERE}))
    recovery = await restarted(kit)
    await responded(kit, recovery, HERE, THERE)
    with pytest.raises(Forbidden, match="before the store was restored"):
        await kit.store.update(placed, merged(placed.document(), {"spec": {"seedName": THERE}}))
    empty = await kit.now(ObjectKey("seed", "", THERE))
    with pytest.raises(Forbidden, match="is not known yet"):
        await kit.store.delete(empty, preconditions=[WritePrecondition("usage", THERE, "not empty")])
    marked = merged(empty.document(), {"metadata": {"annotations": {REMOVAL_ANNOTATION: "garden/grove"}}})
    with pytest.raises(Forbidden, match="is not known yet"):
        await kit.store.update(empty, marked)
    await kit.outbox.advance_recovery(recovery, announces=False)
    await kit.store.update(empty, marked)
    await kit.store.update(placed, merged(placed.document(), {"metadata": {"labels": {"new": "one"}}}))


async def test_an_inventory_names_what_the_store_has_lost_and_that_takes_its_place(kit: StoreUnderTest) -> None:
    shoot = await waiting(kit)
    gone = await kit.created(a_shoot("gone"))
    await kit.store.delete(gone)
    stored_there = await kit.created(a_shoot("stored", spec={"seedName": THERE}))
    recovery = await restarted(kit)
    before = await kit.store.usage()
    items = [InventoryItem(APOLLO, shoot.uid), InventoryItem(gone.key, gone.uid)]
    result = await kit.store.take_inventory(HERE, recovery, items)
    assert (result.unknown, result.unnamed) == (1, 0)
    assert await kit.store.unknown_objects() == [UnknownObject(key=APOLLO, uid=shoot.uid, seed=HERE)]
    assert (
        await kit.store.take_inventory(THERE, recovery, [InventoryItem(stored_there.key, stored_there.uid)])
    ).unknown == 0
    await kit.outbox.advance_recovery(recovery, announces=False)
    assert await kit.store.recovery() is None

    assert (await kit.store.usage(before.version)).seeds == {HERE: 1}
    other = await kit.created(a_shoot("other"))
    assert await kit.bound(other, HERE) == "full", "what runs there has its place"
    assert await kit.bound(shoot, THERE) == "runs-elsewhere"
    with pytest.raises(Forbidden, match="a seed runs it"):
        await kit.store.update(shoot, merged(shoot.document(), {"spec": {"seedName": THERE}}))
    assert await kit.bound(shoot, HERE) == "bound", "there it runs"
    assert await kit.store.unknown_objects() == []
    assert (await kit.store.usage(before.version)).seeds == {HERE: 1}


async def test_an_unknown_shoot_may_come_to_its_seed_during_the_recovery_and_frees_it_when_forgotten(
    kit: StoreUnderTest,
) -> None:
    shoot = await waiting(kit)
    recovery = await restarted(kit)
    await kit.store.take_inventory(HERE, recovery, [InventoryItem(APOLLO, shoot.uid)])
    indexes = (await kit.store.usage()).unblock_indexes
    await kit.store.forget(APOLLO, HERE, shoot.uid)
    usage = await kit.store.usage()
    assert usage.seeds == {HERE: 0}
    assert usage.unblock_indexes.usage > indexes.usage
    assert await kit.bound(shoot, HERE) == "recovering"
    await kit.store.take_inventory(THERE, recovery, [InventoryItem(APOLLO, shoot.uid)])
    assert await kit.bound(shoot, THERE) == "bound"


async def test_an_inventory_keeps_the_manifest_that_was_sent_before(kit: StoreUnderTest) -> None:
    await kit.created(a_seed(HERE))
    recovery = await restarted(kit)
    held = UnknownObject(key=APOLLO, uid="7", seed=HERE, manifest={"kind": "Shoot"})
    await kit.store.reannounce_object(APOLLO, HERE, "7", held)
    await kit.store.take_inventory(HERE, recovery, [InventoryItem(APOLLO, "7")])
    found = await kit.store.unknown_object(APOLLO, HERE)
    assert found is not None
    assert found.manifest == held.manifest


async def test_an_inventory_for_another_recovery_is_no_answer(kit: StoreUnderTest) -> None:
    await kit.created(a_seed(HERE))
    assert not (await kit.store.take_inventory(HERE, "", [])).is_current
    first = await restarted(kit)
    await responded(kit, first, HERE)
    second = await restarted(kit)
    assert second not in ("", first)
    assert not (await kit.store.take_inventory(HERE, first, [InventoryItem(APOLLO, "7")])).is_current
    assert (await required(kit)).silent == (HERE,)
    assert await kit.store.unknown_objects() == []


async def test_a_recovery_goes_on_over_a_restart_without_a_cause(kit: StoreUnderTest) -> None:
    await kit.created(a_seed(HERE))
    recovery = await restarted(kit)
    await responded(kit, recovery, HERE)
    assert await restarted(kit, RecoveryStart()) == recovery
    assert (await required(kit)).silent == ()


async def test_a_restart_without_a_cause_begins_none(kit: StoreUnderTest) -> None:
    shoot = await waiting(kit)
    assert await restarted(kit, RecoveryStart()) == ""
    assert await kit.bound(shoot, HERE) == "bound"


async def test_seeds_are_announced_with_the_recovery_and_the_silent_ones_again(kit: StoreUnderTest) -> None:
    await waiting(kit)
    await kit.fresh_entries()
    recovery = await restarted(kit)
    assert (await kit.outbox.head(10)).recovery_id == recovery
    entries = await kit.fresh_entries()
    assert [entry.key.name for entry in entries if isinstance(entry, ObjectEntry)] == [HERE, THERE]
    assert [entry.event.reason for entry in entries if isinstance(entry, EventEntry)] == ["RecoveryStarted"]
    await responded(kit, recovery, HERE)
    await kit.fresh_entries()
    await kit.outbox.advance_recovery("", announces=True)
    assert [entry.key.name for entry in await kit.fresh_entries() if isinstance(entry, ObjectEntry)] == [THERE]


async def test_an_answer_and_the_end_unblock_what_waits(kit: StoreUnderTest) -> None:
    shoot = await waiting(kit)
    recovery = await restarted(kit)
    await kit.marked_unschedulable(shoot)
    await kit.fresh_entries()
    await responded(kit, recovery, HERE)
    assert await kit.work() == ["waking._.default-scheduler"]
    await kit.store.go_on_without([THERE], "ann")
    assert await kit.work() == ["waking._.default-scheduler"]
    await kit.outbox.advance_recovery(recovery, announces=False)
    entries = await kit.fresh_entries()
    assert [entry.tail for entry in entries if isinstance(entry, QueueEntry)] == ["waking._.default-scheduler"]
    assert [entry.event.reason for entry in entries if isinstance(entry, EventEntry)] == ["RecoveryFinished"]


async def test_a_seed_that_comes_back_to_a_store_that_lost_it_has_to_answer_as_well(kit: StoreUnderTest) -> None:
    await kit.created(a_seed(HERE))
    recovery = await restarted(kit)
    await responded(kit, recovery, HERE)
    await kit.created(a_seed(THERE))
    assert not (await kit.outbox.advance_recovery(recovery, announces=False)).has_ended
    assert (await required(kit)).silent == (THERE,)


async def test_removals_are_remembered_while_it_lasts(kit: StoreUnderTest) -> None:
    shoot = await waiting(kit)
    await kit.store.delete(shoot)
    recovery = await restarted(kit)
    floor = StreamPosition(10**18, 0)
    assert await kit.outbox.collect_tombstones("9999", floor) == 0
    await responded(kit, recovery, HERE, THERE)
    await kit.outbox.advance_recovery(recovery, announces=False)
    assert await kit.outbox.collect_tombstones("9999", floor) == 1
