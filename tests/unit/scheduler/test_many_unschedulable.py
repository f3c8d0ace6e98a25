"""Thousands of shoots of high priority that fit nowhere hold up nobody: decisions are counted, one for each class."""

from collections.abc import Generator
from contextlib import contextmanager
from unittest.mock import patch

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.scheduler import decisions
from gardenbus.scheduling.assignment import decide
from gardenbus.scheduling.equivalence_classes import SchedulingRequest
from gardenbus.scheduling.results import SchedulingResult
from gardenbus.scheduling.snapshot import Snapshot
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot, merged, resolved_as
from tests.support.memory.store import MemoryStore
from tests.support.scheduling import SchedulerUnderTest, shoot_in, stocked

MANY = 600
WAITING = [f"high-{number}" for number in range(MANY)]
SEEDS = [merged(a_seed(name, shoots="900"), {"status": {"allocatable": {"cpu": "4"}}}) for name in ("a", "b", "c")]
BASE = (a_cloudprofile(), a_project(), *SEEDS)
NEAR_DB = {"affinity": {"shootAffinity": {"required": [{"group": "db", "topologyKey": "seed"}]}}}
APART = {
    "groups": ["db"],
    "affinity": {"shootAntiAffinity": {"required": [{"group": "db", "topologyKey": "region"}]}},
}
CASES: dict[str, Document] = {
    "too much is requested": {"requests": {"cpu": 9_000}},
    "no member is there": NEAR_DB,
    "a member is everywhere": APART,
}


def of_high_priority(name: str, requirements: Document) -> Document:
    return merged(a_shoot(name), {"metadata": resolved_as({"priority": 100, **requirements})})


@contextmanager
def counted_decisions() -> Generator[list[SchedulingRequest]]:
    decided: list[SchedulingRequest] = []

    def counting(request: SchedulingRequest, snapshot: Snapshot) -> SchedulingResult:
        decided.append(request)
        return decide(request, snapshot)

    with patch.object(decisions, "decide", counting):
        yield decided


async def a_garden(requirements: Document) -> MemoryStore:
    """Many shoots that fit nowhere; of those that keep one another off, one is placed."""
    store = await stocked(*BASE, *(of_high_priority(name, requirements) for name in WAITING))
    if requirements is APART:
        await store.create(of_high_priority("first", APART))
        await SchedulerUnderTest(store).handle_batch("first")
    return store


async def remove(store: MemoryStore, name: str) -> None:
    await store.delete(await shoot_in(store, name))
    left = await store.get(ObjectKey("shoot", "garden-dev", name))
    if left is not None:
        await store.update(left, merged(left.document(), {"metadata": {"finalizers": []}}))


@pytest.mark.parametrize("case", CASES)
async def test_a_shoot_that_fits_is_bound_behind_many_that_do_not_with_one_decision_a_class(case: str) -> None:
    store = await a_garden(CASES[case])
    await store.create(a_shoot("ordinary"))
    scheduler = SchedulerUnderTest(store)
    with counted_decisions() as decided:
        await scheduler.handle_batch(*WAITING, "ordinary")
    assert (await shoot_in(store, "ordinary")).parts.seed_name
    assert await scheduler.waiting() == set(WAITING)
    assert len(decided) <= 4  # each class, and once more what was in a round with the bind


@pytest.mark.parametrize("case", CASES)
async def test_a_shoot_that_leaves_queues_none_of_those_again_that_fit_no_better(case: str) -> None:
    store = await a_garden(CASES[case])
    for name in ("ordinary", "another"):
        await store.create(a_shoot(name))
    scheduler = SchedulerUnderTest(store)
    await scheduler.handle_batch(*WAITING, "ordinary", "another")
    await remove(store, "ordinary")
    await scheduler.activate()
    assert await scheduler.waiting() == set(WAITING)


async def test_the_member_that_many_wait_for_queues_them_again() -> None:
    store = await a_garden(NEAR_DB)
    scheduler = SchedulerUnderTest(store)
    await scheduler.handle_batch(*WAITING)
    await store.create(of_high_priority("db", {"groups": ["db"]}))
    await scheduler.handle_batch("db")
    await scheduler.activate()
    assert await scheduler.waiting() == set()
    await scheduler.handle_batch(*WAITING)
    home = (await shoot_in(store, "db")).parts.seed_name
    assert {(await shoot_in(store, name)).parts.seed_name for name in WAITING} == {home}


async def test_the_member_that_keeps_many_off_queues_them_again_as_it_leaves() -> None:
    store = await a_garden(APART)
    scheduler = SchedulerUnderTest(store)
    await scheduler.handle_batch(*WAITING)
    await remove(store, "first")
    await scheduler.activate()
    activated = set(WAITING) - await scheduler.waiting()
    assert activated
    await scheduler.handle_batch(*sorted(activated))
    assert [name for name in WAITING if (await shoot_in(store, name)).parts.seed_name] == [min(activated)]
