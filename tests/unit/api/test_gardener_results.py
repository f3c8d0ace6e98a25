"""The apiserver rejects what Gardener's rejects, change by change, but for the differences that are named."""

import os
from collections.abc import Iterable, Sequence

import pytest

from gardenbus.common.api.document import Document, section
from tests.support.gardener_comparison import Compared, compared, fields_of_gardener, recorded_cases
from tests.support.gardener_results import (
    FILES,
    OF_STORED,
    Case,
    cases_of,
    differences,
    rejection,
)

PROGRAM = os.environ.get("GARDENER_RULES", "")
"""The program that asks Gardener's own strategies, where there is one."""

LEAST_SAME_PATHS = 0.75
LEAST_EXPLAINED_PATHS = 0.96
LEAST_SAME_ORDER = 0.8
"""Of the changes that both sides reject."""


def with_label(document: Document) -> Document:
    metadata = document["metadata"]
    return {**document, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), "unrelated": "yes"}}}


@pytest.mark.parametrize("name", FILES)
def test_each_change_has_the_result_that_gardener_gives(name: str) -> None:
    wrong: list[str] = []
    for case in cases_of(name):
        found = rejection(case.document, case.old)
        if (bool(found) is case.is_rejected) is bool(case.differs):
            wrong.append(f"{case.name}: rejected by Gardener {case.is_rejected}, here {found[:120]!r} {case.differs}")
    assert not wrong


@pytest.mark.parametrize("name", FILES)
def test_what_is_stored_with_a_mistake_can_be_changed_elsewhere(name: str) -> None:
    """A name cannot be wrong in a stored object: it is the key under which the object is stored."""
    blocked: list[str] = []
    for case in cases_of(name):
        if case.old is None and section(case.document, "metadata").get("name") and rejection(case.document, None):
            stored = {**case.document, "metadata": {**case.document["metadata"], **OF_STORED}}
            if "metadata." not in (found := rejection(with_label(stored), stored)) and found:
                blocked.append(f"{case.name}: {found[:160]}")
    assert not blocked


def test_each_difference_has_a_reason_and_each_reason_a_difference() -> None:
    named = {case.differs for name in FILES for case in cases_of(name) if case.differs}
    assert named == set(differences())


def unexplained(results: Iterable[Compared]) -> list[str]:
    """The changes of which Gardener says something else, for no reason that is named."""
    return [
        f"{each.name}: rejected by Gardener for {each.gardener[:3]}, here for {each.here[:3]}"
        for each in results
        if not each.is_same and each.reason not in differences()
    ]


def test_generated_changes_have_the_result_that_gardener_gives() -> None:
    results = list(recorded_cases())
    assert any(each.gardener for each in results)
    assert any(not each.gardener for each in results)
    assert unexplained(results) == []


def test_most_rejections_name_the_fields_that_gardener_names() -> None:
    """At the same place, above or below it; nearly all do, but for differences that have a reason."""
    both = [each for each in recorded_cases() if each.gardener and each.here]
    assert sum(not any(each.paths) for each in both) > LEAST_SAME_PATHS * len(both)
    assert sum(not any(each.unexplained_paths) for each in both) > LEAST_EXPLAINED_PATHS * len(both)


def test_most_problems_are_in_gardeners_order() -> None:
    orders = [each.orders for each in recorded_cases() if each.gardener and each.here]
    comparable = [(theirs, ours) for theirs, ours in orders if len(theirs) > 1 and set(theirs) == set(ours)]
    assert len(comparable) > 10
    assert sum(theirs == ours for theirs, ours in comparable) > LEAST_SAME_ORDER * len(comparable)


@pytest.mark.skipif(not PROGRAM, reason="needs GARDENER_RULES, the program that answers for Gardener")
@pytest.mark.parametrize("seed", range(3))
def test_gardener_says_the_same_of_new_changes(seed: int) -> None:
    results = compared(PROGRAM, seed=seed, count=100)
    assert len(unexplained(results)) * 100 <= len(results), "one of a hundred may be of a kind that nobody has met"


@pytest.mark.long
@pytest.mark.skipif(not PROGRAM, reason="needs GARDENER_RULES, the program that answers for Gardener")
def test_gardener_says_the_same_of_thousands_of_changes_of_each_base() -> None:
    """Of each Shoot 3,000, of each other object 750; of 2,000 one may be of a kind that nobody has met."""
    results = compared(PROGRAM, seed=3, count=750)
    assert len(unexplained(results)) * 2_000 <= len(results)
    both = [each for each in results if each.gardener and each.here]
    assert sum(not any(each.unexplained_paths) for each in both) > LEAST_EXPLAINED_PATHS * len(both)


@pytest.mark.skipif(not PROGRAM, reason="needs GARDENER_RULES, the program that answers for Gardener")
@pytest.mark.parametrize("name", FILES)
def test_gardener_still_says_what_was_recorded(name: str) -> None:
    cases: Sequence[Case] = list(cases_of(name))
    found = fields_of_gardener(PROGRAM, [(case.name, case.document, case.old) for case in cases])
    assert [case.name for case, fields in zip(cases, found, strict=True) if case.is_rejected is not bool(fields)] == []
