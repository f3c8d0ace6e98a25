"""Order of those who wait: who gets the last place of a batch, and who is queued again first."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from gardenbus.cli.simulate.scheduling import snapshot_of
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.scheduling_order import activation_order
from gardenbus.common.api.garden.shoots import Shoot
from gardenbus.common.api.keys import ObjectKey
from gardenbus.scheduling.equivalence_classes import request_of
from gardenbus.scheduling.free_capacity import FreeCapacity
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot, merged, resolved_as
from tests.support.clocks import FakeClock
from tests.support.memory.store import MemoryStore
from tests.support.scheduling import SchedulerUnderTest, shoot_in, stocked
from tests.support.shared_files import SHARED

BASE = (a_cloudprofile(), a_project())
CASES = SHARED / "spec/profile-cases.json"


def prioritized(name: str, priority: int, **changes: Any) -> Document:
    return merged(a_shoot(name, **changes), {"metadata": resolved_as({"priority": priority})})


async def placed_on(scheduler: SchedulerUnderTest, *names: str) -> Mapping[str, str]:
    return {name: (await shoot_in(scheduler.store, name)).parts.seed_name for name in names}


async def test_the_last_place_of_a_batch_is_that_of_the_highest_priority() -> None:
    shoots = [prioritized("low", -1), a_shoot("normal"), prioritized("high", 7), prioritized("higher", 8)]
    scheduler = SchedulerUnderTest(await stocked(*BASE, a_seed(shoots="1"), *shoots))
    await scheduler.handle_batch("low", "normal", "high", "higher")
    assert await placed_on(scheduler, "low", "normal", "high", "higher") == {
        "low": "",
        "normal": "",
        "high": "",
        "higher": "aws-eu1",
    }


async def test_a_shoot_with_gates_is_left_alone_whatever_queued_it() -> None:
    gated = merged(a_shoot(), {"metadata": resolved_as({"schedulingGates": [{"name": "example.com/quota"}]})})
    scheduler = SchedulerUnderTest(await stocked(*BASE, a_seed(), gated))
    await scheduler.handle_batch("apollo")
    assert await placed_on(scheduler, "apollo") == {"apollo": ""}
    assert len(scheduler.ledger.acknowledged) == 1


async def test_a_place_that_becomes_free_is_promised_to_the_highest_priority_alone() -> None:
    shoots = [a_shoot("normal"), prioritized("low", -1), prioritized("high", 7)]
    scheduler = SchedulerUnderTest(await stocked(*BASE, a_seed(shoots="0"), *shoots))
    await scheduler.handle_batch("normal", "low", "high")
    await give_places(scheduler, 1)
    await scheduler.activate()
    assert await scheduler.waiting() == {"normal", "low"}


async def test_who_waits_for_hours_in_the_low_band_comes_before_the_high_one() -> None:
    clock = FakeClock()
    store = MemoryStore(clock)
    for document in (*BASE, a_seed(shoots="0"), prioritized("low", -1)):
        await store.create(document)
    scheduler = SchedulerUnderTest(store)
    await scheduler.handle_batch("low")
    for each in (clock, scheduler.clock):
        each.advance(5_500)
    await scheduler.store.create(prioritized("high", 7))
    await scheduler.handle_batch("high")
    await give_places(scheduler, 1)
    await scheduler.activate()
    assert await scheduler.waiting() == {"high"}


async def give_places(scheduler: SchedulerUnderTest, places: int) -> None:
    seed = await scheduler.store.get(ObjectKey("seed", "", "aws-eu1"))
    assert seed is not None
    document = merged(seed.document(), {"status": {"allocatable": {"shoots": str(places)}}})
    await scheduler.store.update(seed, document)


@pytest.mark.parametrize(
    "case",
    [each for each in json.loads(CASES.read_text())["cases"] if each["kind"] == "wake"] if CASES.exists() else [],
    ids=lambda case: case["name"],
)
def test_a_worked_case_of_places_has_as_many_of_each_class(case: Document) -> None:
    given, expected = case["given"], case["expect"]
    fits = {each["class"]: set(each["fits"]) for each in given["classes"]}
    seeds = [
        a_seed(name, shoots=str(free), metadata={"labels": {each: "yes" for each in fits if name in fits[each]}})
        for name, free in given["free"].items()
    ]
    free_capacity = FreeCapacity(snapshot_of([*BASE, *seeds]))
    ordered = sorted(
        given["classes"], key=lambda each: activation_order(each["priority"], each["waited"], each["class"])
    )
    promised: dict[str, int] = {}
    for each in ordered:
        shoot = a_shoot(spec={"seedSelector": {"matchLabels": {each["class"]: "yes"}}})
        request = request_of(Shoot.from_document(shoot))
        promised[each["class"]] = free_capacity.promise(request, each["waiting"])
    assert promised == expected["woken"]


def test_promises_count_for_every_resource() -> None:
    stated = {"shoots": "10", "cpu": "4"}
    seed = merged(a_seed(), {"status": {"capacity": stated, "allocatable": stated}})
    free_capacity = FreeCapacity(snapshot_of([*BASE, seed]))
    large = Shoot.from_document(merged(a_shoot(), {"metadata": resolved_as({"requests": {"cpu": 1500}})}))
    assert free_capacity.promise(request_of(large), 9) == 2
    assert free_capacity.promise(request_of(large), 9) == 0
    assert free_capacity.promise(request_of(Shoot.from_document(a_shoot())), 99) == 8
