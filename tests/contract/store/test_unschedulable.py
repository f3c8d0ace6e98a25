"""Shoots that fit nowhere: parking, what counts as a gain, and waking."""

from typing import Any

import pytest

from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.store import UnblockIndexes, UnschedulableClass, UnschedulableResult, UnschedulableShoot
from gardenbus.relay.ports.outbox import QueueEntry
from tests.support.builders import (
    a_cloudprofile,
    a_condition,
    a_namespaced_cloudprofile,
    a_project,
    a_region_configmap,
    a_seed,
    a_shoot,
    merged,
    resolved_as,
)
from tests.support.stores import REPORTER, StoreUnderTest, an_unschedulable_shoot, stored

APOLLO = ObjectKey("shoot", "garden-dev", "apollo")
SCHEDULER = "default-scheduler"
UNBLOCKING = f"waking._.{SCHEDULER}"


async def unblock_indexes(kit: StoreUnderTest) -> UnblockIndexes:
    return (await kit.store.usage()).unblock_indexes


async def test_a_new_shoot_is_queued_for_its_scheduler(kit: StoreUnderTest) -> None:
    await kit.created(a_shoot())
    await kit.created(a_shoot("mine", spec={"schedulerName": "mine"}))
    assert await kit.work() == [
        f"scheduling.{SCHEDULER}.garden-dev.apollo",
        "scheduling.mine.garden-dev.mine",
    ]


async def test_a_pending_shoot_is_queued_again_when_its_spec_changes_and_not_by_its_status(kit: StoreUnderTest) -> None:
    shoot = await kit.created(a_shoot())
    await kit.fresh_entries()
    shoot = await kit.changed(shoot, merged(shoot.document(), {"status": {"a": 1}, "metadata": {"labels": {"a": "b"}}}))
    assert not await kit.work()
    shoot = await kit.changed(shoot, merged(shoot.document(), {"spec": {"purpose": "testing"}}))
    assert await kit.work() == [f"scheduling.{SCHEDULER}.garden-dev.apollo"]
    await kit.changed(shoot, shoot.document(), bump_generation=True)
    assert await kit.work() == [f"scheduling.{SCHEDULER}.garden-dev.apollo"]


async def test_a_shoot_of_another_priority_is_queued_in_its_band(kit: StoreUnderTest) -> None:
    shoot = await kit.created(merged(a_shoot(), {"metadata": resolved_as({"priority": 7})}))
    assert await kit.work() == [f"scheduling.{SCHEDULER}.+1.garden-dev.apollo"]
    shoot = await kit.changed(shoot, merged(shoot.document(), {"metadata": resolved_as({"priority": -7})}))
    assert await kit.work() == [f"scheduling.{SCHEDULER}.-1.garden-dev.apollo"]
    await kit.marked_unschedulable(shoot)
    await kit.created(a_seed())
    await kit.fresh_entries()
    (waiting,) = await kit.store.unschedulable_classes(SCHEDULER, with_ages=True)
    assert waiting.since
    assert [each.band for each in await kit.store.unschedulable_shoots(SCHEDULER)] == ["-1"]
    assert await kit.store.activate(SCHEDULER, waiting.equivalence_class, 1) == 1
    assert await kit.work() == [f"scheduling.{SCHEDULER}.-1.garden-dev.apollo"]
    await kit.outbox.requeue_pending()
    assert await kit.work() == [f"scheduling.{SCHEDULER}.-1.garden-dev.apollo"]
    await kit.changed(await kit.now(APOLLO), a_shoot())
    assert await kit.work() == [f"scheduling.{SCHEDULER}.garden-dev.apollo"]


async def test_a_shoot_with_gates_is_queued_with_the_write_that_takes_the_last_one_away(kit: StoreUnderTest) -> None:
    gates = [{"name": "a"}, {"name": "b"}]
    shoot = await kit.created(merged(a_shoot(), {"metadata": resolved_as({"schedulingGates": gates})}))
    assert await kit.work() == []
    assert await kit.store.pending(SCHEDULER) == 0
    fewer = merged(shoot.document(), {"metadata": resolved_as({"schedulingGates": gates[:1]})})
    shoot = await kit.changed(shoot, fewer, bump_generation=True)
    assert await kit.work() == []
    await kit.changed(shoot, a_shoot())
    assert await kit.work() == [f"scheduling.{SCHEDULER}.garden-dev.apollo"]
    assert await kit.store.pending(SCHEDULER) == 1


async def test_a_shoot_waits_since_its_first_failure_whatever_the_reason_is_by_now(kit: StoreUnderTest) -> None:
    shoot = await kit.created(a_shoot())
    for message in ("none is ready", 'full "startTime":"2020-01-01T00:00:00Z"', "%1 full"):
        kit.clock.advance(60)
        await kit.marked_unschedulable(shoot, message=message)

    operation = (await kit.now(APOLLO)).document()["status"]["lastOperation"]

    assert operation["description"] == "%1 full"
    assert (operation["startTime"], operation["lastUpdateTime"]) == ("2026-01-02T03:05:05Z", "2026-01-02T03:07:05Z")
    assert [each.since for each in await kit.store.unschedulable_shoots()] == ["2026-01-02T03:05:05Z"]


async def test_a_parked_shoot_shows_why_and_says_so_in_an_event(kit: StoreUnderTest) -> None:
    shoot = await kit.created(a_shoot(status={"kept": 1}))
    await kit.fresh_entries()
    kit.clock.advance(60)
    assert await kit.marked_unschedulable(shoot, message='no seed "fits"') == UnschedulableResult("parked", 1)
    waiting = await kit.now(APOLLO)
    assert waiting.document()["status"] == {
        "kept": 1,
        "lastOperation": {
            "type": "Create",
            "state": "Pending",
            "progress": 0,
            "description": 'no seed "fits"',
            "lastUpdateTime": "2026-01-02T03:05:05Z",
            "startTime": "2026-01-02T03:05:05Z",
        },
    }
    assert waiting.generation == shoot.generation
    assert waiting.version > shoot.version
    changed, announced = await kit.fresh_entries()
    assert (getattr(changed, "verb", ""), getattr(changed, "with_binding", None)) == ("modified", False)
    event = getattr(announced, "event", None)
    assert event is not None
    assert (event.type, event.reason, event.message) == ("Warning", "SchedulingFailed", 'no seed "fits"')
    assert (event.about, event.uid, event.reporter) == (APOLLO, shoot.uid, REPORTER)


async def test_the_same_refusal_again_writes_nothing_and_counts_the_attempts(kit: StoreUnderTest) -> None:
    shoot = await kit.created(a_shoot())
    await kit.marked_unschedulable(shoot)
    waiting = await kit.now(APOLLO)
    await kit.fresh_entries()
    kit.clock.advance(60)
    assert await kit.marked_unschedulable(waiting) == UnschedulableResult("parked", 2)
    assert await kit.marked_unschedulable(waiting) == UnschedulableResult("parked", 3)
    assert await kit.now(APOLLO) == waiting
    assert not await kit.entries()
    assert await kit.marked_unschedulable(waiting, message="another text") == UnschedulableResult("parked", 4)
    assert (await kit.now(APOLLO)).version > waiting.version


async def test_a_shoot_that_waits_for_other_reasons_each_time_has_one_event_that_counts(kit: StoreUnderTest) -> None:
    shoot = await kit.created(a_shoot())
    for number in range(1, 17):
        await kit.marked_unschedulable(shoot, message=f"{number} of 20 seeds are full")
    announced = await kit.events()
    assert [(event.count, event.event.message) for event in announced] == [
        (number, f"{number} of 20 seeds are full") for number in (1, 2, 4, 8, 16)
    ]
    assert len({event.event_id for event in announced}) == 1


async def test_attempts_start_again_with_another_generation(kit: StoreUnderTest) -> None:
    shoot = await kit.created(a_shoot())
    await kit.marked_unschedulable(shoot)
    await kit.marked_unschedulable(shoot)
    shoot = await kit.now(APOLLO)
    changed = await kit.changed(shoot, merged(shoot.document(), {"spec": {"purpose": "testing"}}))
    assert await kit.marked_unschedulable(shoot) == UnschedulableResult("done", 0), (
        "it was decided on another generation"
    )
    assert await kit.marked_unschedulable(changed) == UnschedulableResult("parked", 1)


async def test_a_spec_change_ends_the_waiting_and_keeps_the_last_word(kit: StoreUnderTest) -> None:
    shoot = await kit.created(a_shoot())
    await kit.marked_unschedulable(shoot)
    waiting = await kit.now(APOLLO)
    changed = await kit.changed(waiting, merged(waiting.document(), {"spec": {"purpose": "testing"}}))
    assert not await kit.store.unschedulable_classes(SCHEDULER)
    assert changed.pending == waiting.pending
    assert changed.document()["status"]["lastOperation"]["state"] == "Pending"


async def test_a_refusal_that_a_reader_writes_back_stays_the_stores(kit: StoreUnderTest) -> None:
    shoot = await kit.created(a_shoot())
    await kit.marked_unschedulable(shoot)
    waiting = await kit.now(APOLLO)
    assert await kit.store.update(waiting, waiting.document()) == waiting
    await kit.changed(waiting, merged(waiting.document(), {"status": {"conditions": []}}))
    await kit.created(a_seed())
    assert await kit.bound(await kit.now(APOLLO), "aws-eu1") == "bound"
    assert (await kit.now(APOLLO)).document()["status"] == {"conditions": []}


async def test_a_bind_ends_the_waiting_and_takes_the_refusal_away(kit: StoreUnderTest) -> None:
    await kit.created(a_seed())
    shoot = await kit.created(a_shoot())
    await kit.marked_unschedulable(shoot)
    await kit.bound(shoot, "aws-eu1")
    assert "status" not in (await kit.now(APOLLO)).document()
    assert not await kit.store.unschedulable_classes(SCHEDULER)
    census = await kit.store.census()
    assert (census["shoots.pending"], census["shoots.waiting"]) == (0, 0)


async def test_who_is_no_longer_pending_is_not_parked(kit: StoreUnderTest) -> None:
    await kit.created(a_seed())
    placed = await kit.created(a_shoot("placed", spec={"seedName": "aws-eu1"}))
    deleting = await kit.created(a_shoot("deleting", metadata={"finalizers": ["mine"]}))
    deleting = stored(await kit.store.delete(deleting))
    other = await kit.created(a_shoot("other", spec={"schedulerName": "mine"}))
    gone = await kit.created(a_shoot("gone"))
    await kit.store.delete(gone)
    again = await kit.created(a_shoot("gone"))
    seen = await unblock_indexes(kit)
    await kit.fresh_entries()
    reply = await kit.store.mark_unschedulable(
        [an_unschedulable_shoot(shoot, seen=seen) for shoot in (placed, deleting, other, gone, again)]
    )
    assert reply.outcomes == [UnschedulableResult("done", 0)] * 4 + [UnschedulableResult("parked", 1)]
    assert reply.usage == await kit.store.usage()
    assert [entry.key.name for entry in await kit.changes()] == ["gone"]


async def test_a_gain_since_the_snapshot_means_look_again(kit: StoreUnderTest) -> None:
    shoot = await kit.created(a_shoot())
    seen = await unblock_indexes(kit)
    await kit.created(a_seed())
    await kit.fresh_entries()
    assert await kit.marked_unschedulable(shoot, seen=seen) == UnschedulableResult("again", 0)
    assert await kit.now(APOLLO) == shoot
    assert not await kit.store.unschedulable_classes(SCHEDULER)
    assert not await kit.entries()
    assert await kit.marked_unschedulable(shoot) == UnschedulableResult("parked", 1)


async def test_freed_usage_since_the_snapshot_means_look_again(kit: StoreUnderTest) -> None:
    await kit.created(a_seed())
    placed = await kit.created(a_shoot("placed", spec={"seedName": "aws-eu1"}))
    shoot = await kit.created(a_shoot())
    seen = await unblock_indexes(kit)
    marked = stored(await kit.store.delete(placed))
    assert await unblock_indexes(kit) == seen
    await kit.changed(marked, merged(marked.document(), {"metadata": {"finalizers": []}}))
    assert await kit.marked_unschedulable(shoot, seen=seen) == UnschedulableResult("again", 0)


@pytest.mark.parametrize(
    "document",
    [a_seed("new"), a_cloudprofile("new"), a_namespaced_cloudprofile(), a_project("new"), a_region_configmap()],
    ids=lambda document: str(document["kind"]),
)
async def test_what_may_admit_somebody_is_a_gain_and_wakes_the_schedulers(
    kit: StoreUnderTest, document: Document
) -> None:
    shoot = await kit.created(a_shoot())
    await kit.marked_unschedulable(shoot)
    before = await unblock_indexes(kit)
    await kit.fresh_entries()
    await kit.created(document)
    assert await unblock_indexes(kit) == UnblockIndexes(before.objects + 1, before.usage)
    entries = await kit.fresh_entries()
    assert [getattr(entry, "unblock_index", None) for entry in entries] == [before.objects + 1, None]
    assert getattr(entries[1], "tail", "") == UNBLOCKING


@pytest.mark.parametrize(
    ("change", "unblocks"),
    [
        ({"spec": {"taints": []}}, True),
        ({"metadata": {"labels": {"a": "b"}}}, True),
        ({"status": {"allocatable": {"shoots": "3"}}}, True),
        ({"status": {"allocatable": {"shoots": None}}}, True),
        ({"status": {"allocatable": {"shoots": "1"}}}, False),
        ({"status": {"lastOperation": {"lastUpdateTime": "2026-01-02T04:04:05Z"}}}, False),
        ({"metadata": {"annotations": {"a": "b"}}}, False),
        # the loss of a seed may let a shoot fit that only this one held up
        ({"status": {"conditions": [a_condition("GardenletReady", "Unknown")]}}, True),
        ({"metadata": {"annotations": {"shoot.gardener.cloud/emergency-stop-reconciliations": "true"}}}, True),
        ({"spec": {"settings": {"scheduling": {"visible": False}}}}, True),
    ],
)
async def test_a_seed_that_changes_is_a_gain_when_somebody_may_fit_now(
    kit: StoreUnderTest, change: Document, unblocks: bool
) -> None:
    seed = await kit.created(a_seed(shoots="2", spec={"taints": [{"key": "a"}]}))
    shoot = await kit.created(a_shoot())
    await kit.marked_unschedulable(shoot)
    before = await unblock_indexes(kit)
    await kit.fresh_entries()
    await kit.changed(seed, merged(seed.document(), change))
    assert (await unblock_indexes(kit)).objects - before.objects == unblocks
    assert await kit.work() == [UNBLOCKING] * unblocks


@pytest.mark.parametrize("finalizers", [[], ["gardener"]])
async def test_the_deletion_of_an_open_seed_is_one_gain_when_it_is_asked_for(
    kit: StoreUnderTest, finalizers: list[str]
) -> None:
    seed = await kit.created(a_seed(metadata={"finalizers": finalizers}))
    shoot = await kit.created(a_shoot())
    await kit.marked_unschedulable(shoot)
    await kit.fresh_entries()
    marked = await kit.store.delete(seed)
    assert await unblock_indexes(kit) == UnblockIndexes(2, 0)
    entries = await kit.fresh_entries()
    assert [getattr(entry, "unblock_index", None) for entry in entries] == [2, None]
    assert getattr(entries[1], "tail", "") == UNBLOCKING
    if finalizers:
        marked = stored(marked)
        await kit.changed(marked, merged(marked.document(), {"metadata": {"finalizers": []}}))
    assert await unblock_indexes(kit) == UnblockIndexes(2, 0)


async def test_a_region_configmap_that_goes_is_a_gain_also_when_finalizers_held_it(kit: StoreUnderTest) -> None:
    first = await kit.created(a_region_configmap())
    await kit.store.delete(first)
    assert await unblock_indexes(kit) == UnblockIndexes(2, 0)
    second = await kit.created(a_region_configmap(metadata={"finalizers": ["mine"]}))
    marked = stored(await kit.store.delete(second))
    assert await unblock_indexes(kit) == UnblockIndexes(3, 0)
    await kit.changed(marked, merged(marked.document(), {"metadata": {"finalizers": []}}))
    assert await unblock_indexes(kit) == UnblockIndexes(4, 0)


async def test_a_seed_that_becomes_ready_is_a_gain(kit: StoreUnderTest) -> None:
    seed = await kit.created(a_seed(ready=False))
    before = await unblock_indexes(kit)
    assert before == UnblockIndexes(0, 0), "a seed that is not ready admits nobody"
    await kit.changed(seed, merged(seed.document(), {"status": a_seed()["status"]}))
    assert await unblock_indexes(kit) == UnblockIndexes(1, 0)


async def test_binds_statuses_and_other_kinds_are_no_gain(kit: StoreUnderTest) -> None:
    await kit.created(a_seed())
    profile = await kit.created(a_cloudprofile())
    shoot, waiting = await kit.created(a_shoot()), await kit.created(a_shoot("waiting"))
    await kit.marked_unschedulable(waiting)
    before = await unblock_indexes(kit)
    await kit.fresh_entries()
    await kit.bound(shoot, "aws-eu1")
    await kit.created(a_region_configmap("plain", metadata={"labels": None}))
    await kit.created({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "garden-dev"}})
    await kit.changed(profile, merged(profile.document(), {"status": {"a": 1}}))
    placed = await kit.now(APOLLO)
    await kit.changed(placed, merged(placed.document(), {"status": {"seedName": "aws-eu1"}}))
    assert await unblock_indexes(kit) == before
    assert not await kit.work()


async def test_nobody_is_woken_when_nobody_waits(kit: StoreUnderTest) -> None:
    await kit.created(a_seed())
    assert not await kit.work()


async def test_only_schedulers_with_waiting_shoots_are_woken(kit: StoreUnderTest) -> None:
    shoot, mine = await kit.created(a_shoot()), await kit.created(a_shoot("mine", spec={"schedulerName": "mine"}))
    await kit.created(a_shoot("other", spec={"schedulerName": "other"}))
    await kit.marked_unschedulable(shoot)
    await kit.marked_unschedulable(mine, scheduler_name="mine")
    await kit.fresh_entries()
    await kit.created(a_seed())
    assert sorted(await kit.work()) == [UNBLOCKING, "waking._.mine"]


async def many(kit: StoreUnderTest, count: int, **changes: Any) -> list[StoredObject]:
    """Shoots that wait, in one class unless said otherwise."""
    shoots = [await kit.created(a_shoot(f"shoot-{number:03}")) for number in range(count)]
    seen = await unblock_indexes(kit)
    items: list[UnschedulableShoot] = [an_unschedulable_shoot(shoot, seen=seen, **changes) for shoot in shoots]
    for start in range(0, count, 100):
        await kit.store.mark_unschedulable(items[start : start + 100])
    return shoots


async def test_classes_say_what_is_waited_for_and_how_many_may_fit_now(kit: StoreUnderTest) -> None:
    one, two, three = await many(kit, 3)
    await kit.marked_unschedulable(three, equivalence_class="large", descriptor=b'{"size":9}')
    assert sorted(await kit.store.unschedulable_classes(SCHEDULER), key=lambda entry: entry.equivalence_class) == [
        UnschedulableClass("large", b'{"size":9}', 1, 0),
        UnschedulableClass("small", b'{"size":1}', 2, 0),
    ]
    await kit.created(a_seed())
    await kit.marked_unschedulable(two)
    assert sorted(await kit.store.unschedulable_classes(SCHEDULER), key=lambda entry: entry.equivalence_class) == [
        UnschedulableClass("large", b'{"size":9}', 1, 1),
        UnschedulableClass("small", b'{"size":1}', 2, 1),
    ]
    assert not await kit.store.unschedulable_classes("mine")
    counted = await kit.store.unschedulable_classes(SCHEDULER, with_descriptors=False)
    assert sorted((entry.descriptor, entry.count, entry.unseen) for entry in counted) == [(b"", 1, 1), (b"", 2, 1)]
    assert (await kit.store.census())["shoots.waiting_unseen"] == 2
    assert one.key.name == "shoot-000"


async def test_a_wake_queues_those_refused_before_the_latest_gain_and_no_others(kit: StoreUnderTest) -> None:
    _, _, three = await many(kit, 3)
    await kit.created(a_seed())
    await kit.marked_unschedulable(three)
    await kit.fresh_entries()
    assert await kit.store.activate(SCHEDULER, "small", 100) == 2
    assert await kit.work() == [
        f"scheduling.{SCHEDULER}.garden-dev.shoot-000",
        f"scheduling.{SCHEDULER}.garden-dev.shoot-001",
    ]
    assert await kit.store.unschedulable_classes(SCHEDULER) == [UnschedulableClass("small", b'{"size":1}', 1, 0)]
    assert await kit.store.activate(SCHEDULER, "small", 100) == 0
    assert (await kit.store.census())["shoots.pending"] == 3


async def test_a_shoot_is_woken_with_the_trace_of_its_latest_refusal(kit: StoreUnderTest) -> None:
    one, two, three, four = [await kit.created(a_shoot(f"shoot-{number}")) for number in range(4)]
    first, second = (f"00-{digit * 32}-{digit * 16}-01" for digit in "12")
    for shoot in (one, two, three):
        await kit.marked_unschedulable(shoot, trace=first)
    await kit.marked_unschedulable(two, trace=second, equivalence_class="small")
    await kit.marked_unschedulable(three)
    await kit.marked_unschedulable(four)
    await kit.created(a_seed())
    await kit.fresh_entries()
    assert await kit.store.activate(SCHEDULER, "small", 100) == 4
    work = {each.tail[-1]: each.trace for each in await kit.fresh_entries() if isinstance(each, QueueEntry)}
    assert work == {"0": first, "1": second, "2": "", "3": ""}
    await kit.marked_unschedulable(await kit.now(one.key))
    await kit.created(a_seed("another"))
    await kit.fresh_entries()
    await kit.store.activate(SCHEDULER, "small", 100)
    assert [each.trace for each in await kit.fresh_entries() if isinstance(each, QueueEntry)] == [""]


async def test_a_wake_takes_at_most_its_limit_over_several_batches(kit: StoreUnderTest) -> None:
    await many(kit, 130)
    await kit.created(a_seed())
    await kit.fresh_entries()
    assert await kit.store.activate(SCHEDULER, "small", 0) == 0
    assert await kit.store.activate(SCHEDULER, "small", 120) == 120
    work = await kit.work()
    assert len(set(work)) == 120
    assert await kit.store.activate(SCHEDULER, "small", 120) == 10
    assert not await kit.store.unschedulable_classes(SCHEDULER)
    assert await kit.store.activate(SCHEDULER, "small", 120) == 0


async def test_a_woken_shoot_counts_its_attempts_on_and_says_nothing_new(kit: StoreUnderTest) -> None:
    shoot = await kit.created(a_shoot())
    await kit.marked_unschedulable(shoot)
    await kit.created(a_seed())
    await kit.store.activate(SCHEDULER, "small", 1)
    await kit.fresh_entries()
    assert await kit.marked_unschedulable(shoot) == UnschedulableResult("parked", 2)
    assert not await kit.entries()


async def test_a_shoot_that_goes_away_waits_no_longer(kit: StoreUnderTest) -> None:
    one, two = await many(kit, 2)
    one = await kit.now(one.key)
    await kit.store.delete(one)
    assert [entry.count for entry in await kit.store.unschedulable_classes(SCHEDULER)] == [1]
    two = await kit.now(two.key)
    await kit.store.delete(two)
    assert not await kit.store.unschedulable_classes(SCHEDULER)
    await kit.fresh_entries()
    await kit.created(a_seed())
    assert not await kit.work()


async def test_those_who_wait_are_told_with_their_refusals_the_longest_waiting_first(kit: StoreUnderTest) -> None:
    first = await kit.created(a_shoot("first"))
    await kit.marked_unschedulable(first, message="no seed is large enough")
    kit.clock.advance(60)
    await kit.created(a_seed("gained"))
    second = await kit.created(a_shoot("second", spec={"schedulerName": "mine"}))
    await kit.marked_unschedulable(second, message="no seed here", scheduler_name="mine", equivalence_class="other")
    await kit.marked_unschedulable(second, message="no seed here", scheduler_name="mine", equivalence_class="other")

    found = await kit.store.unschedulable_shoots()

    assert [(shoot.key.name, shoot.scheduler_name, shoot.message, shoot.attempts) for shoot in found] == [
        ("first", SCHEDULER, "no seed is large enough", 1),
        ("second", "mine", "no seed here", 2),
    ]
    assert [shoot.since for shoot in found] == ["2026-01-02T03:04:05Z", "2026-01-02T03:05:05Z"]
    assert [shoot.key.name for shoot in await kit.store.unschedulable_shoots("mine")] == ["second"]
    assert [shoot.key.name for shoot in await kit.store.unschedulable_shoots(limit=1)] == ["first"]
    assert not await kit.store.unschedulable_shoots("nobody")
