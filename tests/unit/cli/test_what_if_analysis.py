"""A landscape beside the same one changed."""

import copy
from typing import Any

import pytest

from gardenbus.cli.simulate.what_if import SeedChange, ShootChange, WhatIfChanges, WhatIfResult, compare_schedules
from gardenbus.common.api.document import Document
from gardenbus.common.errors import BadRequest
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot

BASE = [a_cloudprofile(), a_project()]


def on(name: str, seed: str) -> Document:
    return a_shoot(name, spec={"seedName": seed}, status={"seedName": seed})


def compared(*documents: Document, **suppositions: Any) -> WhatIfResult:
    landscape = [*BASE, *documents]
    before = copy.deepcopy(landscape)
    found = compare_schedules(landscape, WhatIfChanges(**suppositions))
    assert landscape == before
    return found


def test_nothing_supposed_changes_nothing() -> None:
    found = compared(a_seed("a", shoots="1"), on("old", "a"), a_shoot("waits"))
    assert (found.shoots, found.waiting_before, found.waiting_after) == ((), 1, 1)
    assert found.seeds == (SeedChange("a", 1, 1, 1),)


def test_an_added_seed_takes_who_waits() -> None:
    found = compared(a_seed("a", shoots="0"), a_shoot("waits"), added=(a_seed("b", shoots="3"),))
    assert found.shoots == (ShootChange("garden-dev/waits", None, "b"),)
    assert (found.waiting_before, found.waiting_after) == (1, 0)
    assert found.seeds == (SeedChange("a", 0, 0, 0), SeedChange("b", None, 1, 3, "added"))


def test_the_shoots_of_a_removed_seed_look_for_another_after_those_that_wait() -> None:
    seeds = a_seed("a", shoots="2"), a_seed("b", shoots="2"), a_seed("c", shoots="1")
    found = compared(*seeds, on("1", "a"), on("2", "a"), on("3", "b"), on("4", "c"), a_shoot("5"), removed=("a",))
    assert [(each.shoot, each.before, each.after) for each in found.shoots] == [
        ("garden-dev/1", "a", None),
        ("garden-dev/2", "a", None),
    ]
    assert found.shoots[0].message == (
        "0/2 seeds are eligible: {b => seed has no capacity left for shoots, c => seed has no capacity left for shoots}"
    )
    assert [(each.seed, each.used_before, each.used_after) for each in found.seeds] == [
        ("a", 2, None),
        ("b", 2, 2),
        ("c", 1, 1),
    ]


def test_a_cordoned_seed_keeps_its_shoots_and_takes_no_more() -> None:
    found = compared(a_seed("a"), a_seed("b"), on("old", "b"), a_shoot("waits"), cordoned=("a",))
    assert found.shoots == (ShootChange("garden-dev/waits", "a", "b"),)
    assert found.seeds == (SeedChange("a", 1, 0, 250, "cordoned"), SeedChange("b", 1, 2, 250))


def test_more_shoots_like_one_fill_the_seeds_and_say_why_not() -> None:
    found = compared(a_seed("a", shoots="3"), on("old", "a"), shoots=10, like="old")
    assert [each.after for each in found.shoots] == ["a", "a", *[None] * 8]
    assert found.shoots[0] == ShootChange("garden-dev/old-like-01", None, "a", is_new=True)
    assert found.waiting_after == 8
    assert found.seeds == (SeedChange("a", 1, 3, 3),)


def test_more_shoots_have_domains_of_their_own_as_the_one_that_they_are_like() -> None:
    seed = a_seed("a", spec={"dns": {"defaults": [{"domain": "example.com"}]}})
    placed = a_shoot("old", spec={"seedName": "a", "dns": {"domain": "old.dev.example.com"}})
    found = compared(seed, placed, shoots=1, like="garden-dev/old")
    assert found.shoots == (ShootChange("garden-dev/old-like-1", None, "a", is_new=True),)


def test_another_strategy_finds_seeds_elsewhere() -> None:
    far = a_seed("far", spec={"provider": {"region": "eu-central-1"}})
    found = compared(far, a_shoot("waits"), strategy="MinimalDistance")
    assert found.shoots == (ShootChange("garden-dev/waits", None, "far"),)
    assert found.strategy == "MinimalDistance"


def test_a_seed_is_replaced_by_another_of_its_name() -> None:
    found = compared(a_seed("a", shoots="1"), on("old", "a"), added=(a_seed("a", shoots="9"),), removed=("a",))
    assert found.shoots == ()
    assert found.seeds == (SeedChange("a", 1, 1, 9, "replaced"),)


@pytest.mark.parametrize(
    ("suppositions", "message"),
    [
        ({"removed": ("x",)}, "there is no seed x"),
        ({"cordoned": ("x",)}, "there is no seed x"),
        ({"added": (a_seed("a"),)}, "seed a exists already: add --remove-seed"),
        ({"shoots": 3, "like": "x"}, "there is no shoot x"),
        ({"shoots": 3, "like": "two"}, "several shoots are called two"),
    ],
)
def test_what_cannot_be_supposed_is_told(suppositions: Any, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        compared(a_seed("a"), a_shoot("two"), a_shoot("two", "garden-own"), **suppositions)
