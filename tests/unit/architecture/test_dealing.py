"""How the tests themselves are dealt out among workers."""

from pathlib import PurePath

import pytest

from tests.support.dealing import LONGEST, dealt

TESTS = [
    *(f"bench/test_scenarios.py::{number}" for number in range(4)),
    *(f"contract/bus/test_outages.py::{number}" for number in range(20)),
    *(f"contract/operating/test_{name}.py::{number}" for name in ("doctor", "tops") for number in range(5)),
    *(f"e2e/test_{name}.py::{number}" for name in ("up", "fleet", "migration") for number in range(4)),
    "e2e/test_documented_sessions.py::0",
    *(f"unit/cli/test_ends.py::{number}" for number in range(100)),
]


def path_of(test: str) -> PurePath:
    return PurePath(test.partition("::")[0])


def parts(workers: int) -> list[list[str]]:
    """What xdist hands to each worker."""
    order = dealt(TESTS, path_of=path_of, workers=workers)
    handed: list[list[str]] = []
    for left in range(workers, 0, -1):
        size = len(order) // left
        handed.append(order[:size])
        order = order[size:]
    return handed


@pytest.mark.parametrize("workers", [2, 3, 6])
def test_every_test_is_run_once(workers: int) -> None:
    assert sorted(test for part in parts(workers) for test in part) == sorted(TESTS)


@pytest.mark.parametrize("workers", [2, 3])
def test_every_worker_has_long_tests_and_ends_with_short_ones(workers: int) -> None:
    for part in parts(workers):
        tiers = ["short" if test.startswith("unit") else "long" for test in part]
        assert tiers == sorted(tiers)
        assert {"short", "long"} == set(tiers)


def test_the_longest_is_the_first_of_a_worker() -> None:
    assert [part for part in parts(3) if path_of(part[0]).name in LONGEST]


def test_modules_and_what_shares_a_landscape_are_not_torn_apart() -> None:
    for part in parts(3):
        for whole in ("contract/operating/", "contract/bus/", "e2e/test_up", "e2e/test_migration"):
            there = [test for test in part if test.startswith(whole)]
            assert there in ([], [test for test in TESTS if test.startswith(whole)])


def test_every_worker_gets_its_share_where_nothing_is_short() -> None:
    tests = [f"e2e/test_up.py::{number}" for number in range(7)]
    assert dealt(tests, path_of=path_of, workers=3) == tests
