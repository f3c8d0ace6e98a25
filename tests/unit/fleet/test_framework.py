"""How plug-ins take part in a cycle, whatever they decide."""

from collections.abc import Iterable, Sequence

import pytest

from gardenbus.common.api.bitsets import Bitset, ascending, bitset_of, descending
from gardenbus.fleet.cycle_result import UnexpectedState
from gardenbus.fleet.fleet import Fleet
from gardenbus.fleet.framework import (
    SKIP,
    SUCCESS,
    Code,
    CycleState,
    FilterResult,
    Framework,
    Score,
    ScoreGroup,
    Status,
    combine,
)
from gardenbus.fleet.requirements import requirements_of
from tests.support.fleets import NOW, a_member

A, B, C = 1, 2, 4
UNSCHEDULABLE = Status(Code.UNSCHEDULABLE, "too small")
SELECTED = Status(Code.ALREADY_SELECTED)
ERROR = Status(Code.ERROR, "no idea")
ODD = [Status(Code.UNSCHEDULABLE), SELECTED, ERROR]


class Filters:
    name = "filters"

    def __init__(self, *results: FilterResult, before: Status = SUCCESS) -> None:
        self.results = results
        self.before = before
        self.shown: list[Bitset] = []

    def pre_filter(self, state: CycleState) -> Status:
        return self.before

    def filter(self, state: CycleState, candidates: Bitset) -> Iterable[FilterResult]:
        self.shown.append(candidates)
        return self.results


class Limits:
    def __init__(self, limit: int, status: Status = SUCCESS) -> None:
        self.name = f"limits to {limit}"
        self.batch_limit_result = (limit, status)

    def post_batch(self, state: CycleState) -> tuple[int, Status]:
        return self.batch_limit_result


class Scores:
    def __init__(self, name: str, *groups: ScoreGroup, before: Status = SUCCESS) -> None:
        self.name = name
        self.groups = groups
        self.before = before

    def pre_score(self, state: CycleState) -> Status:
        return self.before

    def score(self, state: CycleState, candidates: Bitset) -> Sequence[ScoreGroup]:
        return self.groups


def a_state(desired: int = 0) -> CycleState:
    return CycleState(requirements_of(None), Fleet.of([a_member(name) for name in "abc"], NOW), desired=desired)


def test_a_cluster_that_a_filter_objects_to_is_filtered_with_its_reason() -> None:
    filtered = Framework([Filters(FilterResult(B, UNSCHEDULABLE))]).filter(a_state())
    assert filtered.passed == A | C
    assert filtered.clusters == B
    assert filtered.reason(1) == "too small"
    assert filtered.reason(0) == ""


def test_a_filter_that_wants_to_be_skipped_is_not_asked() -> None:
    plugin = Filters(FilterResult(A, UNSCHEDULABLE), before=SKIP)
    assert Framework([plugin]).filter(a_state()).passed == A | B | C
    assert plugin.shown == []


@pytest.mark.parametrize("status", ODD)
def test_a_pre_filter_that_answers_neither_success_nor_skip_ends_the_cycle(status: Status) -> None:
    with pytest.raises(UnexpectedState, match="filters"):
        Framework([Filters(before=status)]).filter(a_state())


@pytest.mark.parametrize("status", [SKIP, ERROR, SUCCESS])
def test_a_filter_that_answers_anything_else_of_one_cluster_ends_the_cycle(status: Status) -> None:
    with pytest.raises(UnexpectedState):
        Framework([Filters(FilterResult(A, UNSCHEDULABLE), FilterResult(B, status))]).filter(a_state())


def test_clusters_that_are_selected_already_are_neither_passed_nor_filtered() -> None:
    filtered = Framework([Filters(FilterResult(A | B, SELECTED))]).filter(a_state())
    assert (filtered.passed, filtered.clusters) == (C, 0)


def test_the_first_filter_that_objects_counts_and_the_next_one_is_not_shown_the_cluster() -> None:
    first, second = Filters(FilterResult(A, UNSCHEDULABLE)), Filters(FilterResult(A | B, SELECTED))
    filtered = Framework([first, second]).filter(a_state())
    assert second.shown == [B | C]
    assert (filtered.passed, filtered.clusters) == (C, A)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ([Limits(1)], 1),
        ([Limits(15)], 10),
        ([Limits(2), Limits(1)], 1),
        ([Limits(-1)], 10),
        ([Limits(0, SKIP)], 10),
        ([], 10),
    ],
)
def test_the_least_limit_counts_and_never_more_than_wanted(limits: list[Limits], expected: int) -> None:
    assert Framework(limits).batch_limit(a_state(desired=10)) == expected


@pytest.mark.parametrize("status", ODD)
def test_a_limit_that_is_none_ends_the_cycle(status: Status) -> None:
    with pytest.raises(UnexpectedState):
        Framework([Limits(1, status)]).batch_limit(a_state(desired=10))


def test_scores_are_summed_and_the_best_come_first() -> None:
    spread = Scores("spread", ScoreGroup(A | B, Score(spread=1)))
    affinity = Scores("affinity", ScoreGroup(B, Score(affinity=5)), ScoreGroup(C, Score(affinity=50)))
    assert Framework([spread, affinity]).score(a_state(), A | B | C) == [
        ScoreGroup(B, Score(1, 5)),
        ScoreGroup(A, Score(1, 0)),
        ScoreGroup(C, Score(0, 50)),
    ]


def test_a_score_that_wants_to_be_skipped_does_not_count() -> None:
    plugin = Scores("affinity", ScoreGroup(A, Score(affinity=5)), before=SKIP)
    assert Framework([plugin]).score(a_state(), A) == [ScoreGroup(A, Score())]


@pytest.mark.parametrize("status", ODD)
def test_a_pre_score_that_answers_neither_success_nor_skip_ends_the_cycle(status: Status) -> None:
    with pytest.raises(UnexpectedState):
        Framework([Scores("affinity", before=status)]).score(a_state(), A)


def test_many_groups_are_combined_as_few_are() -> None:
    size = 100
    ones = [ScoreGroup(1 << place, Score(affinity=place % 7)) for place in range(size)]
    others = [ScoreGroup(1 << place, Score(spread=place % 5)) for place in range(0, size, 2)]
    expected: dict[Score, Bitset] = {}
    for place in range(size):
        score = Score(place % 5 if place % 2 == 0 else 0, place % 7)
        expected[score] = expected.get(score, 0) | 1 << place
    assert {score: clusters for clusters, score in combine(ones, others)} == expected
    few = combine(combine([ScoreGroup((1 << size) - 1, Score())], ones), others)
    assert {score: clusters for clusters, score in few} == expected


def test_sets_of_places_are_walked_from_both_ends() -> None:
    mask = bitset_of([0, 5, 64, 1999], 2000)
    assert list(ascending(mask)) == [0, 5, 64, 1999]
    assert list(descending(mask)) == [1999, 64, 5, 0]
