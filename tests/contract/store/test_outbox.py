"""The relay's side: the fence, leadership, pages, trimming, and repair after one side went back."""

import asyncio

import pytest

from gardenbus.common.adapters.redis import store as redis_store
from gardenbus.common.api.document import UNKNOWN_LAST_APPLIED, Document, StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Conflict, Unavailable
from gardenbus.common.ports.bus import StreamPosition
from gardenbus.common.ports.store import VERSION_LEAP, EventRecord, RequestOrigin, Superseded, UnblockIndexes
from gardenbus.relay.ports.outbox import EventEntry, Leadership, ObjectEntry, Restored, Shown
from tests.support.builders import NOW, a_project, a_seed, a_shoot, a_shoot_state, merged
from tests.support.eventually import HANG_SECONDS
from tests.support.stores import StoreUnderTest, a_binding, an_unschedulable_shoot, stored

APOLLO = ObjectKey("shoot", "garden-dev", "apollo")
SCHEDULER = "default-scheduler"


def announced(message: str = "hello") -> EventRecord:
    return EventRecord(APOLLO, "uid", "Warning", "Tested", message, "tester")


async def test_a_store_that_nobody_opened_refuses_every_read_and_write(closed: StoreUnderTest) -> None:
    await closed.open()
    seed = await closed.created(a_seed())
    shoot = await closed.created(a_shoot())
    seen = (await closed.store.usage()).unblock_indexes
    await closed.close_for_writes()
    store = closed.store
    for rejected in (
        store.get(seed.key),
        store.get_many_partial([seed.key]),
        store.list_page("seed"),
        store.usage(),
        store.shoots_on("aws-eu1"),
        store.dependents(seed.uid),
        store.exists_uid(seed.uid),
        store.unschedulable_classes(SCHEDULER),
        store.unschedulable_shoots(),
        store.pending(SCHEDULER),
        store.census(),
        store.bind_record(shoot.key),
        store.create(a_project()),
        store.update(seed, merged(seed.document(), {"status": {"a": 1}})),
        store.update(seed, seed.document(), last_applied=b"{}"),
        store.delete(seed),
        store.bind([a_binding(shoot, "aws-eu1")]),
        store.mark_unschedulable([an_unschedulable_shoot(shoot, seen=seen)]),
        store.activate(SCHEDULER, "small", 1),
        store.record_event(announced()),
        store.accept_fencing_token("aws-eu1", 1, 1),
        store.reannounce_object(seed.key, "aws-eu1"),
    ):
        with pytest.raises(Unavailable, match="fenced"):
            await rejected
    await closed.open()
    assert await store.get(seed.key) == seed
    assert len((await store.list_page("seed")).objects) == 1
    assert await store.delete(seed) is None


async def test_versions_leap_when_the_store_opens_above_what_either_side_knows(closed: StoreUnderTest) -> None:
    await closed.open(version=5000, unblock_index=7)
    seed = await closed.created(a_seed())
    assert seed.version > 5000 + VERSION_LEAP
    usage = await closed.store.usage()
    assert usage.unblock_indexes == UnblockIndexes(8, 0)
    await closed.open(version=9_000_000, unblock_index=99)
    next_one = await closed.created(a_seed("next"))
    assert next_one.version == seed.version + 1, "it was open already"
    await closed.close_for_writes()
    await closed.open()
    assert (await closed.created(a_seed("last"))).version > next_one.version + VERSION_LEAP
    reopened = await closed.store.usage(usage.version)
    assert reopened.version >= usage.version + VERSION_LEAP
    assert not reopened.follows(usage.version)


async def test_a_copy_that_is_opened_twice_gives_no_version_out_again(closed: StoreUnderTest) -> None:
    """A relay opens a copy and dies before it announces anything; the same copy comes back once more."""
    await closed.open(version=5000)
    lost, usage = await closed.created(a_seed("lost")), await closed.store.usage()
    await closed.close_for_writes()
    closed.clock.advance(2)
    await closed.reset_versions()
    await closed.open(version=5000)
    assert (await closed.created(a_seed("later"))).version > lost.version + VERSION_LEAP
    assert not (await closed.store.usage(usage.version)).follows(usage.version)


async def test_usage_of_two_openings_soon_after_each_other_is_told_apart(closed: StoreUnderTest) -> None:
    """A store is opened, lost, and opened once more before half a second has passed."""
    await closed.open()
    usage = await closed.store.usage()
    await closed.close_for_writes()
    closed.clock.advance(0.05)
    await closed.reset_versions()
    await closed.open()
    assert not (await closed.store.usage(usage.version)).follows(usage.version)


async def test_an_outbox_that_is_full_refuses_writes(kit: StoreUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    seed = await kit.created(a_seed())
    monkeypatch.setattr(redis_store, "OUTBOX_MAX", 1)
    for write in (kit.store.create(a_project()), kit.store.delete(seed), kit.store.record_event(announced())):
        with pytest.raises(Unavailable, match="outbox is full"):
            await write
    await kit.fresh_entries()
    assert await kit.store.delete(seed) is None


async def test_one_relay_leads_until_it_resigns_or_its_time_is_over(kit: StoreUnderTest) -> None:
    other = kit.another_relay()
    assert await other.lead(60) == Leadership(leading=False, is_open=False)
    await other.resign()
    assert await kit.outbox.lead(0.05) == Leadership(leading=True, is_open=True, is_continued=True)
    await kit.pass_time(0.06)
    assert await other.lead(60) == Leadership(leading=True, is_open=True)
    assert not (await kit.outbox.lead(60)).leading
    await other.resign()
    assert await kit.outbox.lead(0.05) == Leadership(leading=True, is_open=True)
    await kit.pass_time(0.06)
    assert (await kit.outbox.lead(60)).is_continued, "nobody else has led since"


async def test_who_does_not_lead_changes_nothing(kit: StoreUnderTest) -> None:
    await kit.created(a_shoot())
    entries = await kit.entries()
    other = kit.another_relay()
    for call in (
        other.trim(entries[-1].entry, {"OBJECTS": StreamPosition(1, 1)}),
        other.advance(entries[-1].entry, {"OBJECTS": StreamPosition(1, 1)}, 10),
        other.open(1, 1),
        other.restore(Restored(APOLLO, "uid", 10**9, None)),
        other.restore_many([Restored(APOLLO, "uid", 10**9, None)] * 2),
        other.head(10),
        other.reannounce(0),
        other.requeue_pending(),
        other.collect_tombstones(NOW, StreamPosition(1, 1)),
    ):
        with pytest.raises(Conflict, match="leads"):
            await call
    assert await kit.entries() == entries
    assert await kit.outbox.positions() == {}


async def test_a_page_holds_the_oldest_news_in_order_and_the_objects_as_they_are_now(kit: StoreUnderTest) -> None:
    seed = await kit.created(a_seed(), last_applied=b"{}")
    changed = await kit.changed(seed, merged(seed.document(), {"status": {"a": 1}}))
    project = await kit.created(a_project())
    await kit.store.delete(project)
    page = await kit.outbox.head(2)
    assert [(entry.version, entry.verb) for entry in page.entries if isinstance(entry, ObjectEntry)] == [
        (seed.version, "added"),
        (changed.version, "modified"),
    ]
    current = page.objects[seed.key]
    assert current is not None
    assert current.encoded() == changed.encoded()
    page = await kit.outbox.head(100)
    assert len(page.entries) == 4
    assert page.objects.keys() == {seed.key, project.key}
    assert page.objects[project.key] is None
    last = page.entries[-1]
    assert isinstance(last, ObjectEntry)
    assert page.removed == {project.key: last.version}
    again = await kit.created(a_project())
    await kit.store.delete(again)
    assert (await kit.outbox.head(4)).removed == {project.key: again.version + 1}


async def test_a_trim_forgets_up_to_an_entry_and_remembers_the_positions(kit: StoreUnderTest) -> None:
    for name in ("a", "b", "c"):
        await kit.created(a_project(name))
    entries = await kit.entries()
    assert len({entry.entry for entry in entries}) == 3
    place = StreamPosition(1_767_323_045_123_456_789, 42)
    await kit.outbox.trim(entries[1].entry, {"OBJECTS": place})
    assert await kit.entries() == [entries[2]]
    assert await kit.outbox.positions() == {"OBJECTS": place}
    await kit.outbox.trim(None, {"BINDINGS": StreamPosition(1, 2)})
    assert await kit.entries() == [entries[2]]
    assert await kit.outbox.positions() == {"OBJECTS": place, "BINDINGS": StreamPosition(1, 2)}
    await kit.outbox.trim(entries[2].entry, {"OBJECTS": StreamPosition(2, 1)})
    assert not await kit.entries()
    assert (await kit.outbox.positions())["OBJECTS"] == StreamPosition(2, 1)


async def test_to_advance_is_to_trim_and_to_read_what_comes_after(kit: StoreUnderTest) -> None:
    for name in ("a", "b", "c", "d"):
        await kit.created(a_project(name))
    entries = await kit.entries()
    position = StreamPosition(1, 42)
    page = await kit.outbox.advance(entries[1].entry, {"OBJECTS": position}, 1)
    assert page.entries == [entries[2]]
    assert page.objects.keys() == {ObjectKey("project", "", "c")}
    assert await kit.entries() == entries[2:]
    assert await kit.outbox.positions() == {"OBJECTS": position}
    assert not (await kit.outbox.advance(entries[3].entry, {}, 1)).entries
    assert not await kit.entries()


async def test_waiting_for_news_ends_when_some_come_and_after_a_while(kit: StoreUnderTest) -> None:
    await kit.outbox.wait(0.01)
    waiting = asyncio.create_task(kit.outbox.wait(HANG_SECONDS))
    await asyncio.sleep(0.02)
    assert not waiting.done()
    await kit.created(a_project())
    async with asyncio.timeout(HANG_SECONDS / 2):
        await waiting
        await kit.outbox.wait(HANG_SECONDS)
    await kit.entries()
    await kit.outbox.wait(0.01)


async def test_the_same_event_again_raises_its_count_and_keeps_its_first_time(kit: StoreUnderTest) -> None:
    await kit.store.record_event(announced())
    kit.clock.advance(60)
    await kit.store.record_event(announced())
    await kit.store.record_event(announced("another"))
    first, second, other = await kit.events()
    assert (first.count, second.count, other.count) == (1, 2, 1)
    assert first.event == second.event == announced()
    assert first.event_id == second.event_id != other.event_id
    assert (first.first_at, first.at) == (NOW, NOW)
    assert (second.first_at, second.at) == (NOW, "2026-01-02T03:05:05Z")
    assert isinstance(other, EventEntry)


async def test_an_event_that_happens_often_is_announced_less_and_less_often(kit: StoreUnderTest) -> None:
    for _ in range(200):
        await kit.store.record_event(announced())
    assert [event.count for event in await kit.events()] == [1, 2, 4, 8, 16, 32, 64, 128, 192]


async def test_a_gardenlets_fencing_number_never_goes_back(kit: StoreUnderTest) -> None:
    accept = kit.store.accept_fencing_token
    assert await accept("one", 5, 10)
    assert await accept("one", 5, 10), "the same gardenlet again"
    assert not await accept("one", 5, 9)
    assert await accept("one", 5, 100)
    assert not await accept("one", 5, 10)
    assert await accept("two", 5, 1), "each seed has its own"
    assert await accept("one", 6, 1), "another incarnation of the stream"
    assert not await accept("one", 5, 10**12)


async def test_a_fencing_number_that_leases_has_lost_makes_way(kit: StoreUnderTest) -> None:
    accept = kit.store.accept_fencing_token
    assert await accept("one", 5, 100)
    assert not await accept("one", 5, 30, last=StreamPosition(5, 100)), "the stream has it still"
    assert not await accept("one", 5, 30, last=StreamPosition(5, 29)), "nor can it have given out this one"
    assert await accept("one", 5, 30, last=StreamPosition(5, 30))
    assert not await accept("one", 5, 100), "it was replaced"
    assert not await accept("one", 5, 29)
    assert await accept("one", 5, 30)
    assert await accept("one", 5, 101)


async def test_a_seed_is_fenced_from_its_first_fencing_number_on(kit: StoreUnderTest) -> None:
    assert not await kit.store.has_fencing_token("one")
    await kit.store.accept_fencing_token("one", 5, 10)
    assert await kit.store.has_fencing_token("one")
    assert not await kit.store.has_fencing_token("two")


async def test_an_object_is_announced_again_with_who_must_forget_it(kit: StoreUnderTest) -> None:
    shoot = await kit.created(a_shoot())
    gone = await kit.created(a_project())
    await kit.store.delete(gone)
    removal = (await kit.changes())[-1]
    assert await kit.store.reannounce_object(APOLLO, "aws-eu1")
    assert await kit.store.reannounce_object(gone.key, "aws-eu1")
    assert await kit.store.reannounce_object(gone.key, "aws-eu1", gone.uid)
    there, tombstone, again = await kit.changes()
    assert (there.verb, there.version, there.uid) == ("modified", shoot.version, shoot.uid)
    assert (tombstone.verb, tombstone.version, tombstone.uid) == ("deleted", removal.version, gone.uid)
    assert (again.verb, again.version, again.uid) == ("deleted", removal.version, gone.uid)
    assert all(entry.with_binding and entry.left == ("aws-eu1",) for entry in (there, tombstone, again))


async def test_of_what_nobody_remembers_no_removal_is_announced(kit: StoreUnderTest) -> None:
    gone = await kit.created(a_project())
    await kit.store.delete(gone)
    await kit.changes()

    assert not await kit.store.reannounce_object(ObjectKey("shoot", "garden-dev", "never"), "aws-eu1", "some-uid")
    assert not await kit.store.reannounce_object(ObjectKey("shoot", "garden-dev", "never"), "aws-eu1")
    assert not await kit.store.reannounce_object(gone.key, "aws-eu1", "of another one")
    assert await kit.changes() == []


async def test_nothing_is_said_of_what_is_not_ones_own_to_who_names_it(kit: StoreUnderTest) -> None:
    for seed in ("aws-eu1", "aws-eu2", "aws-eu3"):
        await kit.created(a_seed(seed))
    shoot = await kit.created(a_shoot(spec={"seedName": "aws-eu1"}))
    gone = await kit.created(a_shoot("gone", spec={"seedName": "aws-eu1"}))
    never = ObjectKey("shoot", "garden-dev", "never")
    await kit.store.delete(gone)
    await kit.store.update(shoot, merged(shoot.document(), {"spec": {"seedName": "aws-eu2"}}))
    await kit.changes()

    for key in (APOLLO, gone.key, never, ObjectKey("seed", "", "aws-eu1")):
        for uid in ("", "another"):
            assert not await kit.store.reannounce_object(key, "aws-eu3", uid, is_own=False)
    assert await kit.changes() == []
    for seed, key, uid in (
        ("aws-eu2", APOLLO, ""),
        ("aws-eu1", APOLLO, ""),
        ("aws-eu1", gone.key, ""),
        ("aws-eu3", APOLLO, shoot.uid),
        ("aws-eu3", gone.key, gone.uid),
    ):
        assert await kit.store.reannounce_object(key, seed, uid, is_own=False), (seed, key, uid)
    assert len(await kit.changes()) == 5


def from_the_bus(document: Document, version: int, uid: str = "from-the-bus") -> Restored:
    metadata = {"uid": uid, "resourceVersion": str(version), "generation": 3, "creationTimestamp": NOW}
    whole = merged(document, {"metadata": metadata})
    key = ObjectKey(document["kind"].lower(), whole["metadata"].get("namespace", ""), whole["metadata"]["name"])
    return Restored(key, uid, version, whole)


async def test_what_the_bus_knows_better_comes_back_with_all_its_indexes(closed: StoreUnderTest) -> None:
    await closed.outbox.lead(86_400)
    restore = closed.outbox.restore
    assert await restore(from_the_bus(a_seed(shoots=1), 10, "seed"))
    placed = a_shoot(
        "placed",
        spec={"seedName": "aws-eu1"},
        status={"seedName": "old"},
        metadata={"finalizers": ["gardener"], "labels": {"name.seed.gardener.cloud/aws-eu1": "true"}},
    )
    assert await restore(from_the_bus(placed, 11, "placed"))
    rejected = {"type": "Create", "state": "Pending", "description": "no seed fits", "lastUpdateTime": NOW}
    assert await restore(from_the_bus(a_shoot(status={"lastOperation": rejected}), 12, "apollo"))
    assert await restore(from_the_bus(a_project(), 13, "project"))
    assert not await restore(from_the_bus(a_project(spec={"x": 1}), 13, "project"))
    await closed.open(version=13, unblock_index=4)
    assert not await closed.entries(), "restoring is no news"
    assert await closed.store.shoots_on("aws-eu1") == await closed.store.shoots_on("old")
    assert (await closed.store.usage()).seeds == {"aws-eu1": 1, "old": 1}
    apollo = await closed.now(APOLLO)
    assert (apollo.uid, apollo.version, apollo.generation, apollo.created_at) == ("apollo", 12, 3, NOW)
    assert apollo.document()["status"]["lastOperation"] == rejected
    assert await closed.bound(apollo, "aws-eu1") == "full"
    assert await closed.store.exists_uid("seed")
    with pytest.raises(Exception, match="garden-dev"):
        await closed.store.create(a_project("thief", "garden-dev"))
    assert (await closed.store.census())["shoots.pending"] == 1
    seed = await closed.now(ObjectKey("seed", "", "aws-eu1"))
    await closed.changed(seed, merged(seed.document(), {"status": {"allocatable": {"shoots": "2"}}}))
    assert await closed.bound(apollo, "aws-eu1") == "bound"
    assert "status" not in (await closed.now(APOLLO)).document()


async def test_a_restored_object_replaces_the_older_one_that_stood_there(kit: StoreUnderTest) -> None:
    await kit.created(a_seed())
    shoot = await kit.created(a_shoot(spec={"seedName": "aws-eu1"}), last_applied=b"{}")
    other = await kit.created(a_shoot("other"))
    await kit.marked_unschedulable(other)
    later = shoot.version + 1000
    assert not await kit.outbox.restore(from_the_bus(a_shoot(), shoot.version, shoot.uid))
    assert await kit.outbox.restore(from_the_bus(a_shoot(), later, "new"))
    assert await kit.outbox.restore(from_the_bus(a_shoot("other"), later + 1, other.uid))
    assert not await kit.store.shoots_on("aws-eu1")
    assert not await kit.store.exists_uid(shoot.uid)
    assert await kit.store.exists_uid("new")
    restored = await kit.now(APOLLO)
    assert (restored.parts.seed_name, restored.last_applied) == ("", UNKNOWN_LAST_APPLIED)
    assert not await kit.store.unschedulable_classes(SCHEDULER)
    await kit.fresh_entries()
    await kit.outbox.requeue_pending()
    assert sorted(await kit.work()) == [f"scheduling.{SCHEDULER}.garden-dev.{name}" for name in ("apollo", "other")]


async def test_many_come_back_in_order_each_answered_on_its_own(closed: StoreUnderTest) -> None:
    await closed.outbox.lead(86_400)
    assert await closed.outbox.restore_many([]) == []
    seed, project = from_the_bus(a_seed(), 10, "seed"), from_the_bus(a_project(), 11, "project")
    assert await closed.outbox.restore_many([seed, project]) == [True, True]
    shoots = [from_the_bus(a_shoot(spec={"seedName": "aws-eu1"}), 12 + number, "apollo") for number in (2, 0, 1, 3)]
    removal = Restored(APOLLO, "apollo", 20, None)
    responses = await closed.outbox.restore_many([seed, *shoots, removal, from_the_bus(a_shoot(), 19)])
    assert responses == [False, True, False, False, True, True, False], (
        "what is older than what stands there is not taken"
    )
    await closed.open(version=20)
    assert await closed.store.get(APOLLO) is None
    assert not await closed.store.shoots_on("aws-eu1")
    assert (await closed.now(project.key)).version == 11


async def test_what_was_applied_to_a_restored_object_is_unknown_unless_the_store_still_has_it(
    closed: StoreUnderTest,
) -> None:
    await closed.outbox.lead(86_400)
    assert await closed.outbox.restore(from_the_bus(a_shoot(), 10, "u"))
    await closed.open()
    assert (await closed.now(APOLLO)).last_applied == UNKNOWN_LAST_APPLIED
    kept = await closed.created(a_project(), last_applied=b'{"kind":"Project"}')
    assert await closed.outbox.restore(from_the_bus(a_project(spec={"x": 1}), kept.version + 10, kept.uid))
    assert (await closed.now(kept.key)).last_applied == b'{"kind":"Project"}'


async def test_thousands_come_back_in_one_call(closed: StoreUnderTest) -> None:
    await closed.outbox.lead(86_400)
    lost = [
        from_the_bus(a_shoot(f"s{number}", spec={"seedName": "s"}), 10 + number, f"u{number}") for number in range(2000)
    ]
    assert all(await closed.outbox.restore_many(lost))
    await closed.open()
    assert len(await closed.store.shoots_on("s")) == 2000


async def test_a_removal_that_only_the_bus_knows_of_is_carried_out(kit: StoreUnderTest) -> None:
    await kit.created(a_seed())
    shoot = await kit.created(a_shoot(spec={"seedName": "aws-eu1"}))
    later = shoot.version + 1000
    assert await kit.outbox.restore(Restored(APOLLO, shoot.uid, later, None))
    assert await kit.store.get(APOLLO) is None
    assert not (await kit.store.list_page("shoot")).objects
    assert not await kit.store.shoots_on("aws-eu1")
    assert not await kit.store.exists_uid(shoot.uid)
    assert not await kit.outbox.restore(from_the_bus(a_shoot(), later)), "it is older than the removal"
    never = ObjectKey("project", "", "never")
    assert await kit.outbox.restore(Restored(never, "gone", later + 1, None))
    assert not await kit.outbox.restore(Restored(never, "gone", later + 1, None))
    await kit.fresh_entries()
    await kit.outbox.reannounce(later - 1)
    assert [(entry.key, entry.verb, entry.left) for entry in await kit.changes()] == [
        (APOLLO, "deleted", ("aws-eu1",)),
        (never, "deleted", ()),
    ]


async def test_everything_above_a_version_can_be_announced_again(kit: StoreUnderTest) -> None:
    await kit.created(a_seed())
    first = await kit.created(a_project("first"))
    gone = await kit.created(a_project("gone"))
    shoot = await kit.created(a_shoot(spec={"seedName": "aws-eu1"}))
    await kit.store.delete(gone)
    second = await kit.created(a_project("second"))
    first = await kit.changed(first, merged(first.document(), {"status": {"a": 1}}))
    await kit.fresh_entries()
    await kit.outbox.reannounce(shoot.version - 1)
    changes = await kit.changes()
    assert [(entry.key, entry.verb) for entry in changes] == [
        (shoot.key, "modified"),
        (second.key, "modified"),
        (first.key, "modified"),
        (gone.key, "deleted"),
    ]
    assert [entry.version for entry in changes[:3]] == [shoot.version, second.version, first.version]
    assert all(entry.with_binding for entry in changes)
    assert changes[0].uid == shoot.uid


async def test_what_is_announced_again_is_each_key_once_as_it_is_now(kit: StoreUnderTest) -> None:
    gone, back = await kit.created(a_project("gone")), await kit.created(a_project("back"))
    await kit.store.delete(gone)
    await kit.store.delete(back)
    back = await kit.created(a_project("back"))
    await kit.fresh_entries()
    await kit.outbox.reannounce(0)
    assert [(entry.key, entry.verb, entry.uid) for entry in await kit.changes()] == [
        (back.key, "modified", back.uid),
        (gone.key, "deleted", gone.uid),
    ]


async def test_a_refusal_that_a_restore_took_away_is_written_again(kit: StoreUnderTest) -> None:
    shoot = await kit.created(a_shoot())
    await kit.marked_unschedulable(shoot)
    marked_unschedulable = await kit.now(APOLLO)
    assert await kit.outbox.restore(from_the_bus(a_shoot(), marked_unschedulable.version + 1000, shoot.uid))
    restored = await kit.now(APOLLO)
    assert restored.pending == b""
    assert (await kit.marked_unschedulable(restored)).outcome == "parked"
    assert (await kit.now(APOLLO)).pending == marked_unschedulable.pending


async def test_a_long_repeat_goes_through_page_by_page(kit: StoreUnderTest) -> None:
    keys = [(await kit.created(a_project(f"p{number:04}"))).key for number in range(1001)]
    await kit.fresh_entries()
    await kit.outbox.reannounce(0)
    assert [entry.key for entry in await kit.changes()] == keys


async def test_all_pending_shoots_of_all_schedulers_can_be_queued_again(kit: StoreUnderTest) -> None:
    await kit.created(a_seed())
    await kit.created(a_shoot("placed", spec={"seedName": "aws-eu1"}))
    deleting = await kit.created(a_shoot("deleting", metadata={"finalizers": ["a"]}))
    stored(await kit.store.delete(deleting))
    waiting = await kit.created(a_shoot("waiting"))
    await kit.marked_unschedulable(waiting)
    await kit.created(a_shoot("mine", spec={"schedulerName": "mine"}))
    for number in range(600):
        await kit.created(a_shoot(f"shoot-{number}"))
    await kit.fresh_entries()
    await kit.outbox.requeue_pending()
    work = await kit.work()
    assert set(work) == {
        f"scheduling.{SCHEDULER}.garden-dev.waiting",
        "scheduling.mine.garden-dev.mine",
        *(f"scheduling.{SCHEDULER}.garden-dev.shoot-{number}" for number in range(600)),
    }


async def test_an_object_that_comes_back_over_its_grave_still_outranks_older_requests(kit: StoreUnderTest) -> None:
    shoot = await kit.created(a_shoot(), origin=RequestOrigin(1, 5))
    removed = await kit.store.delete(shoot, origin=RequestOrigin(1, 7))
    assert removed is None
    assert await kit.outbox.restore(from_the_bus(a_shoot(), shoot.version + 1000, "back"))
    back = await kit.now(APOLLO)
    document = merged(back.document(), {"spec": {"purpose": "production"}})
    assert isinstance(await kit.store.update(back, document, origin=RequestOrigin(1, 6)), Superseded)
    assert isinstance(await kit.store.update(back, document, origin=RequestOrigin(1, 8)), StoredObject)


async def test_what_is_shown_though_it_is_gone_or_elsewhere_is_obsolete(kit: StoreUnderTest) -> None:
    for seed in ("aws-eu1", "aws-eu2", "aws-eu3"):
        await kit.created(a_seed(seed))
    moving = a_shoot(spec={"seedName": "aws-eu2"}, status={"seedName": "aws-eu1"})
    shoot = await kit.created(moving)
    state = await kit.created(a_shoot_state("apollo"))
    gone = await kit.created(a_shoot("gone", spec={"seedName": "aws-eu1"}))
    deleting = stored(await kit.store.delete(gone))
    await kit.changed(deleting, merged(deleting.document(), {"metadata": {"finalizers": []}}))
    first = ObjectKey("seed", "", "aws-eu1")
    shown = {
        Shown(shoot.key): False,
        Shown(gone.key): True,
        Shown(shoot.key, "aws-eu1"): False,
        Shown(shoot.key, "aws-eu2"): False,
        Shown(shoot.key, "aws-eu3"): True,
        Shown(gone.key, "aws-eu1"): True,
        Shown(state.key, "aws-eu2"): False,
        Shown(state.key, "aws-eu3"): True,
        Shown(first, "aws-eu1"): False,
        Shown(first, "aws-eu2"): True,
        Shown(ObjectKey("seed", "", "never"), "never"): True,
        Shown(ObjectKey("managedseed", "garden", "never"), "aws-eu1"): True,
    }
    assert dict(zip(shown, await kit.outbox.obsolete(list(shown)), strict=True)) == shown
    assert await kit.outbox.obsolete([]) == []


async def test_nothing_is_obsolete_by_a_store_that_nobody_has_opened(closed: StoreUnderTest) -> None:
    with pytest.raises(Unavailable, match="fenced"):
        await closed.outbox.obsolete([Shown(APOLLO)])
