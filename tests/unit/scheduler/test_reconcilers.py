import asyncio
from collections import Counter
from typing import Any

import pytest
from structlog.testing import capture_logs

from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.garden.seed_management import REMOVAL_ANNOTATION
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.store import BindResults, UnschedulableResults, UnschedulableShoot
from tests.support.builders import (
    a_cloudprofile,
    a_managed_seed,
    a_project,
    a_region_configmap,
    a_seed,
    a_shoot,
    merged,
)
from tests.support.memory.store import MemoryStore
from tests.support.scheduling import SCHEDULER, FetchedWork, SchedulerUnderTest, shoot_in, stocked

BASE = (a_cloudprofile(), a_project())


async def changed(store: MemoryStore, key: ObjectKey, changes: Document) -> None:
    stored = await store.get(key)
    assert stored is not None
    await store.update(stored, merged(stored.document(), changes))


async def test_a_batch_is_placed_each_placement_counting_for_the_next() -> None:
    names = [f"s{number:03}" for number in range(250)]
    store = await stocked(*BASE, a_seed("a"), a_seed("b"), *(a_shoot(name) for name in names))
    scheduler = SchedulerUnderTest(store)
    await scheduler.handle_batch(*names)
    seeds = Counter([(await shoot_in(store, name)).parts.seed_name for name in names])
    assert seeds == {"a": 125, "b": 125}
    assert sorted(scheduler.ledger.acknowledged) == sorted(scheduler.subject(name) for name in names)
    assert scheduler.counted("attempts", result="bound") == 250


async def test_binding_fills_in_what_the_seed_gives() -> None:
    seed = a_seed(
        spec={
            "dns": {"defaults": [{"domain": "example.com"}]},
            "networks": {"shootDefaults": {"pods": "100.96.0.0/11"}},
        }
    )
    store = await stocked(*BASE, seed, a_shoot(spec={"networking": {"pods": None}}))
    await SchedulerUnderTest(store).handle_batch("apollo")
    spec = (await shoot_in(store, "apollo")).document()["spec"]
    assert (spec["seedName"], spec["dns"]["domain"], spec["networking"]["pods"]) == (
        "aws-eu1",
        "apollo.dev.example.com",
        "100.96.0.0/11",
    )


async def test_a_refused_shoot_is_parked_and_its_timer_stored_before_the_acknowledgement() -> None:
    store = await stocked(*BASE, a_seed(shoots="0"), a_shoot())
    scheduler = SchedulerUnderTest(store)
    await scheduler.handle_batch("apollo")
    operation = (await shoot_in(store, "apollo")).document()["status"]["lastOperation"]
    assert (operation["type"], operation["state"]) == ("Create", "Pending")
    assert operation["description"].startswith("Failed to schedule Shoot: 0/1 seeds are eligible: {aws-eu1 => ")
    subject = scheduler.subject("apollo")
    assert scheduler.ledger.entries == [("timer", subject), ("ack", subject)]
    (timer,) = scheduler.ledger.timers
    assert timer.subject == "garden.later.scheduling.default-scheduler.garden-dev.apollo"
    assert timer.headers["Nats-Schedule"] == "@at 2026-01-02T03:04:07.000Z"
    assert scheduler.counted("refusals", rule="capacity") == 1


async def test_each_decision_is_one_line_with_its_grounds() -> None:
    taints = {"taints": [{"key": "mine"}]}
    hidden = a_seed("h", spec={"settings": {"scheduling": {"visible": False}}})
    store = await stocked(*BASE, hidden, a_seed("s", spec=taints), a_seed("t", shoots="1"), a_shoot("a"), a_shoot("b"))
    scheduler = SchedulerUnderTest(store)
    with capture_logs() as lines:
        await scheduler.handle_batch("a", "b")
    placed, rejected = lines
    class_name = rejected["class"]
    assert [each.equivalence_class for each in await store.unschedulable_classes(SCHEDULER)] == [class_name]
    shared = {"class": class_name, "candidates": 3, "log_level": "info", "deliveries": 1, "queued_ms": 1}
    at_hand = {"uid": placed["uid"], "duration_ms": 0.0}
    assert placed == {
        **shared,
        **at_hand,
        "event": "shoot.scheduled",
        "shoot": "shoot garden-dev/a",
        "outcome": "bound",
        "seed": "t",
        "strategy": "SameRegion",
        "distance": None,
        "usage": 0,
        "eligible": 2,
        "rejections": {"usable": 1, "taints": 1},
    }
    assert (rejected["shoot"], rejected["outcome"], rejected["attempt"]) == ("shoot garden-dev/b", "parked", 1)
    assert (rejected["rule"], rejected["candidates"]) == ("candidates", 3)
    assert rejected["rejections"] == {"usable": 1, "taints": 1, "capacity": 1}
    assert shared.items() <= rejected.items()


async def test_the_wait_grows_with_each_refusal() -> None:
    store = await stocked(*BASE, a_seed(shoots="0"), a_shoot())
    scheduler = SchedulerUnderTest(store)
    for _attempt in range(3):
        await scheduler.handle_batch("apollo")
    assert [timer.headers["Nats-Schedule"][-10:] for timer in scheduler.ledger.timers] == [
        "04:07.000Z",
        "04:09.000Z",
        "04:13.000Z",
    ]


NOT_MINE: list[Document] = [
    {"spec": {"seedName": "aws-eu1"}},
    {"spec": {"schedulerName": "mine"}},
    {"spec": {"provider": {"workers": [{"name": "cp", "controlPlane": {}}]}}},
]


@pytest.mark.parametrize("changes", NOT_MINE)
async def test_what_is_not_its_business_is_acknowledged_and_left_alone(changes: Document) -> None:
    store = await stocked(*BASE, a_seed(), a_shoot(**changes))
    before = await shoot_in(store, "apollo")
    scheduler = SchedulerUnderTest(store)
    await scheduler.handle_batch("apollo", "not-there")
    assert len(scheduler.ledger.acknowledged) == 2
    assert await shoot_in(store, "apollo") == before


async def test_one_that_lost_against_another_scheduler_is_decided_again() -> None:
    store = await stocked(*BASE, a_seed("a", shoots="1"), a_seed("b"), a_shoot("one"), a_shoot("two"))
    quick, slow = SchedulerUnderTest(store), SchedulerUnderTest(store)
    await slow.informer.refresh()
    await quick.handle_batch("one")
    await slow.handle_batch_blindly("two")
    assert (await shoot_in(store, "two")).parts.seed_name == "b"


async def test_a_seed_that_changed_since_is_not_bound_to() -> None:
    store = await stocked(*BASE, a_seed("a"), a_seed("b"), a_shoot())
    scheduler = SchedulerUnderTest(store)
    await scheduler.informer.refresh()
    await changed(store, ObjectKey("seed", "", "a"), {"spec": {"taints": [{"key": "new"}]}})
    settled = asyncio.create_task(scheduler.handle_batch_blindly("apollo"))
    await asyncio.sleep(0.01)
    assert (await shoot_in(store, "apollo")).parts.seed_name == ""
    await scheduler.informer.refresh()
    await settled
    assert (await shoot_in(store, "apollo")).parts.seed_name == "b"


class ShootsThatChange(MemoryStore):
    """Somebody changes the shoot just before it is bound, once."""

    is_changed = False

    async def bind(self, bindings: Any, usage_since: int | None = 0) -> BindResults:
        if not self.is_changed:
            self.is_changed = True
            await changed(self, ObjectKey("shoot", "garden-dev", "apollo"), {"spec": {"region": "eu-central-1"}})
        return await super().bind(bindings, usage_since)


async def test_a_shoot_that_changed_since_is_read_and_decided_again() -> None:
    plain = await stocked(*BASE, a_seed("a"), a_seed("b", spec={"provider": {"region": "eu-central-1"}}), a_shoot())
    plain.__class__ = ShootsThatChange
    await SchedulerUnderTest(plain).handle_batch("apollo")
    assert (await shoot_in(plain, "apollo")).parts.seed_name == "b"


class UnblocksWhileMarking(MemoryStore):
    """A seed is given room just before the refusal is written down, once."""

    has_unblocked = False

    async def mark_unschedulable(self, unschedulable: Any, usage_since: int | None = 0) -> UnschedulableResults:
        if not self.has_unblocked:
            self.has_unblocked = True
            await changed(self, ObjectKey("seed", "", "aws-eu1"), {"status": {"allocatable": {"shoots": "1"}}})
        return await super().mark_unschedulable(unschedulable, usage_since)


async def test_no_gain_falls_between_deciding_and_parking() -> None:
    store = await stocked(*BASE, a_seed(shoots="0"), a_shoot())
    store.__class__ = UnblocksWhileMarking
    scheduler = SchedulerUnderTest(store)
    await scheduler.handle_batch("apollo")
    assert (await shoot_in(store, "apollo")).parts.seed_name == "aws-eu1"
    assert scheduler.ledger.timers == []


class LosesPlacements(MemoryStore):
    """The first shoot of a batch is deleted just before it is bound: its place stays free."""

    async def bind(self, bindings: Any, usage_since: int | None = 0) -> BindResults:
        gone = await self.get(ObjectKey("shoot", "garden-dev", "one"))
        if gone is not None:
            await self.delete(gone)
        return await super().bind(bindings, usage_since)


async def test_a_refusal_never_stands_on_a_placement_that_was_not_made() -> None:
    store = await stocked(*BASE, a_seed(shoots="1"), a_shoot("one"), a_shoot("two"))
    store.__class__ = LosesPlacements
    await SchedulerUnderTest(store).handle_batch("one", "two")
    assert (await shoot_in(store, "two")).parts.seed_name == "aws-eu1"


class Explodes:
    """A user's filter with a mistake."""

    name = "explodes"

    def shoot_input(self, shoot: Document) -> Any:
        return shoot["metadata"]["name"]

    def filter(self, shoot_input: Any, seed: Document) -> str | None:
        if shoot_input == "bad":
            raise ZeroDivisionError
        return None


async def test_an_exception_leaves_its_shoot_queued_with_backoff_and_hurts_no_other() -> None:
    store = await stocked(*BASE, a_seed(), a_shoot("bad"), a_shoot("good"))
    scheduler = SchedulerUnderTest(store, filters=[Explodes()])
    await scheduler.handle_batch("bad", "good", headers={"Gardenbus-Attempt": "2"})
    assert (await shoot_in(store, "good")).parts.seed_name == "aws-eu1"
    assert (await shoot_in(store, "bad")).parts.seed_name == ""
    (timer,) = scheduler.ledger.timers
    assert timer.headers["Nats-Schedule-Target"] == scheduler.subject("bad")
    assert timer.headers["Gardenbus-Attempt"] == "3"
    assert scheduler.counted("exceptions") == 1
    operation = (await shoot_in(store, "bad")).document()["status"]["lastOperation"]
    assert operation["description"] == (
        "Failed to schedule Shoot: the decision failed, and is tried again: "
        "the filter explodes raised ZeroDivisionError in filter of the seed aws-eu1"
    )


class Unreadable(Explodes):
    """A user's filter that cannot read a shoot."""

    def shoot_input(self, shoot: Document) -> Any:
        raise KeyError("purpose")


async def test_a_filter_that_cannot_read_a_shoot_is_named_in_its_status() -> None:
    store = await stocked(*BASE, a_seed(), a_shoot("bad"))
    await SchedulerUnderTest(store, filters=[Unreadable()]).handle_batch("bad")
    description = (await shoot_in(store, "bad")).document()["status"]["lastOperation"]["description"]
    assert "the filter explodes raised KeyError in shoot_input of the shoot bad: 'purpose'" in description


HOSTING = (
    a_project("garden", "garden"),
    a_shoot("x", "garden"),
    a_shoot("y", "garden", spec={"seedName": "a"}),
    a_managed_seed("a", "x"),
    a_managed_seed("b", "y"),
)
"""The shoot x is the seed a, on which the shoot y is the seed b."""


async def settled(scheduler: SchedulerUnderTest, namespace: str, name: str) -> StoredObject:
    await scheduler.informer.refresh()
    key = ObjectKey("shoot", namespace, name)
    await scheduler.shoots.handle_batch([FetchedWork(scheduler.subjects.scheduling(SCHEDULER, key))])
    stored = await scheduler.store.get(key)
    assert stored is not None
    return stored


async def test_a_shoot_is_placed_past_all_the_seeds_that_it_hosts() -> None:
    store = await stocked(a_cloudprofile(), a_seed("a"), a_seed("b"), a_seed("c", shoots="1"), *HOSTING)
    scheduler = SchedulerUnderTest(store)
    assert (await settled(scheduler, "garden", "x")).parts.seed_name == "c"
    assert scheduler.counted("attempts", result="bound") == 1


async def test_the_refusal_of_a_shoot_names_the_seeds_that_it_hosts() -> None:
    store = await stocked(a_cloudprofile(), a_seed("a"), a_seed("b"), a_seed("c", shoots="0"), *HOSTING)
    scheduler = SchedulerUnderTest(store)
    rejected = await settled(scheduler, "garden", "x")
    description = rejected.document()["status"]["lastOperation"]["description"]
    assert description.startswith("Failed to schedule Shoot: 0/1 seeds are eligible: {c => ")
    assert "; left out: {a => it is hosted by this very shoot, b => it is hosted by this very shoot}" in description


async def test_the_seeds_that_one_shoot_hosts_are_open_to_the_others_of_its_batch() -> None:
    store = await stocked(a_cloudprofile(), a_seed("a", shoots="2"), *HOSTING, *BASE[1:], a_shoot("other", "garden"))
    scheduler = SchedulerUnderTest(store)
    await scheduler.informer.refresh()
    keys = [ObjectKey("shoot", "garden", name) for name in ("x", "other")]
    await scheduler.shoots.handle_batch([FetchedWork(scheduler.subjects.scheduling(SCHEDULER, key)) for key in keys])
    x, other = await store.get_many(keys)
    assert x is not None
    assert other is not None
    assert (x.parts.seed_name, other.parts.seed_name) == ("", "a")


async def test_a_seed_that_was_marked_since_is_left_to_those_who_know() -> None:
    store = await stocked(*BASE, a_seed("a"), a_seed("b"), a_shoot())
    scheduler = SchedulerUnderTest(store)
    await scheduler.informer.refresh()
    await changed(store, ObjectKey("seed", "", "a"), {"metadata": {"annotations": {REMOVAL_ANNOTATION: "garden/set"}}})
    settling = asyncio.create_task(scheduler.handle_batch_blindly("apollo"))
    await asyncio.sleep(0.01)
    await scheduler.informer.refresh()
    await settling
    assert (await shoot_in(store, "apollo")).parts.seed_name == "b"


async def test_two_schedulers_never_overfill_a_seed() -> None:
    names = [f"s{number:02}" for number in range(40)]
    store = await stocked(*BASE, a_seed("a", shoots="7"), a_seed("b", shoots="5"), *(a_shoot(name) for name in names))
    schedulers = [SchedulerUnderTest(store) for _replica in range(2)]
    await asyncio.gather(*(scheduler.handle_batch(*names) for scheduler in schedulers))
    seeds = Counter([(await shoot_in(store, name)).parts.seed_name for name in names])
    assert seeds == {"a": 7, "b": 5, "": 28}


class TestUnblocking:
    async def waiting(self, *documents: Document, shoots: int = 3) -> SchedulerUnderTest:
        names = [f"s{number}" for number in range(shoots)]
        store = await stocked(*BASE, *documents, *(a_shoot(name) for name in names))
        scheduler = SchedulerUnderTest(store)
        await scheduler.handle_batch(*names)
        scheduler.ledger.entries.clear()
        return scheduler

    async def unseen(self, scheduler: SchedulerUnderTest) -> int:
        return sum(waiting.unseen for waiting in await scheduler.store.unschedulable_classes(SCHEDULER))

    async def give(self, scheduler: SchedulerUnderTest, changes: Document) -> None:
        await changed(scheduler.store, ObjectKey("seed", "", "aws-eu1"), changes)

    async def test_as_many_are_woken_as_there_are_places(self) -> None:
        scheduler = await self.waiting(a_seed(shoots="0"))
        await self.give(scheduler, {"status": {"allocatable": {"shoots": "2"}}})
        await scheduler.activate()
        assert scheduler.counted("woken") == 2
        assert await self.unseen(scheduler) == 1
        assert [what for what, _subject in scheduler.ledger.entries] == ["timer", "ack"]

    async def test_all_are_woken_where_there_is_no_limit(self) -> None:
        scheduler = await self.waiting(a_seed(shoots="0"))
        await self.give(scheduler, {"status": {"allocatable": None}})
        await scheduler.activate()
        assert scheduler.counted("woken") == 3
        assert [what for what, _subject in scheduler.ledger.entries] == ["ack"]

    async def test_nobody_is_woken_by_a_gain_that_is_not_for_them(self) -> None:
        scheduler = await self.waiting(a_seed(shoots="0"))
        await scheduler.store.create(a_seed("elsewhere", spec={"provider": {"region": "us-east-1"}}))
        await scheduler.activate()
        assert scheduler.counted("woken") == 0
        assert [what for what, _subject in scheduler.ledger.entries] == ["ack"]

    async def test_very_many_classes_are_looked_at_in_parts_and_all_of_them(self) -> None:
        names = [f"n{number}" for number in range(450)]
        own = [a_shoot(name, spec={"seedSelector": {"matchLabels": {"for": name}}}) for name in names]
        store = await stocked(*BASE, a_seed(), *own)
        scheduler = SchedulerUnderTest(store)
        await scheduler.handle_batch(*names)
        await store.create(a_seed("last", metadata={"labels": {"for": "n449"}}))
        await scheduler.activate()
        assert scheduler.counted("woken") == 1

    async def test_a_class_that_cannot_be_read_is_woken_whole(self) -> None:
        scheduler = await self.waiting(a_seed(shoots="0"), shoots=1)
        stored = await shoot_in(scheduler.store, "s0")
        seen, uid, generation = scheduler.cache.seen, stored.uid, stored.generation
        unschedulable_shoot = UnschedulableShoot(
            "garden-dev", "s0", uid, generation, SCHEDULER, "old", b"{}", seen, "no"
        )
        await scheduler.store.mark_unschedulable([unschedulable_shoot])
        await self.give(scheduler, {"status": {"allocatable": {"shoots": "1"}}})
        await scheduler.activate()
        assert scheduler.counted("woken") == 1


async def test_region_configmaps_without_effect_outdate_nothing_else() -> None:
    store = await stocked(*BASE, a_seed(), a_region_configmap("a"), a_region_configmap("b"))
    scheduler = SchedulerUnderTest(store, strategy="MinimalDistance")
    await scheduler.informer.refresh()
    landscape = scheduler.cache.snapshot().landscape
    assert list(landscape.duplicate_region_configmaps()) == ["b"]
    await changed(store, ObjectKey("seed", "", "aws-eu1"), {"status": {"observedGeneration": 5}})
    await scheduler.informer.refresh()
    assert scheduler.cache.snapshot().landscape is landscape


async def test_a_hinted_shoot_is_bound_without_its_message_and_the_message_finds_nothing_to_do() -> None:
    store = await stocked(*BASE, a_seed("a"), a_shoot("s"))
    scheduler = SchedulerUnderTest(store)
    await scheduler.informer.refresh()

    assert await scheduler.bind_early("s") == 1

    assert (await shoot_in(store, "s")).parts.seed_name == "a"
    assert scheduler.ledger.entries == [], "there is nothing to acknowledge"
    await scheduler.handle_batch("s")
    assert scheduler.ledger.acknowledged == [scheduler.subject("s")]
    assert scheduler.counted("attempts", result="bound") == 1
    assert scheduler.counted("attempts", result="obsolete") == 1


async def test_a_hint_is_not_followed_before_the_cache_has_the_seed_that_was_applied_ahead_of_the_shoot() -> None:
    store = await stocked(*BASE, a_seed("b"))
    scheduler = SchedulerUnderTest(store)
    await scheduler.informer.refresh()
    await store.create(a_seed("a"))
    await store.create(a_shoot("s"))

    assert await scheduler.bind_early("s") == 0
    assert not (await shoot_in(store, "s")).parts.seed_name
    assert scheduler.hinted("behind") == 1

    await scheduler.informer.refresh()
    assert await scheduler.bind_early("s") == 1
    assert (await shoot_in(store, "s")).parts.seed_name == "a"


async def test_a_hinted_shoot_that_cannot_be_bound_is_left_to_its_message() -> None:
    store = await stocked(
        *BASE, a_seed("a", shoots="0"), a_shoot("s"), a_shoot("other", spec={"schedulerName": "mine"})
    )
    scheduler = SchedulerUnderTest(store)
    await scheduler.informer.refresh()

    assert await scheduler.bind_early("s", "other", "gone") == 0

    assert scheduler.hinted("queued") == 3
    assert "lastOperation" not in (await shoot_in(store, "s")).document().get("status", {})
    assert not (await shoot_in(store, "other")).parts.seed_name
    assert scheduler.ledger.entries == []


async def test_a_hinted_shoot_that_changes_before_it_is_bound_is_no_conflict_and_left_to_its_message() -> None:
    store = await stocked(*BASE, a_seed(), a_shoot())
    store.__class__ = ShootsThatChange
    scheduler = SchedulerUnderTest(store)
    await scheduler.informer.refresh()

    assert await scheduler.bind_early("apollo") == 0

    assert not (await shoot_in(store, "apollo")).parts.seed_name
    assert scheduler.hinted("queued") == 1
    assert scheduler.counted("attempts", result="conflict") == 0
    assert scheduler.counted("bind_conflicts", reason="changed") == 0


async def test_a_hint_waits_for_the_batch_in_hand_and_counts_what_that_assigned() -> None:
    names = [f"s{number}" for number in range(4)]
    store = await stocked(*BASE, a_seed("a"), a_seed("b"), *(a_shoot(name) for name in (*names, "hinted", "another")))
    scheduler = SchedulerUnderTest(store)
    await scheduler.informer.refresh()

    await asyncio.gather(scheduler.handle_batch_blindly(*names), scheduler.bind_early("hinted", "another"))

    seeds = Counter([(await shoot_in(store, name)).parts.seed_name for name in (*names, "hinted", "another")])
    assert seeds == {"a": 3, "b": 3}
