"""Budgets, readiness, failure, and the table of a binding's states."""

import msgspec
import pytest

from gardenbus.common.api.fleet.placement_parts import ResourceBinding
from gardenbus.fleet.availability import BindingReadiness, has_failed, may_be_placed, readiness, with_condition
from gardenbus.fleet.binding_states import ABSENT, DELETING, TRANSITIONS, By, check
from gardenbus.fleet.budgets import BindingCounts, budget_of, scaled
from gardenbus.fleet.cycle_result import UnexpectedState
from tests.support.fleets import NOW, at
from tests.support.rolling import FAILED, PENDING, UNTRACKABLE, on_its_way, scheduled, unscheduled

STATES = ("Scheduled", "Bound", "Unscheduled")
PARTS: tuple[By, ...] = ("scheduler", "rollout", "eviction", "works")


@pytest.mark.parametrize(
    ("limit", "total", "number"),
    [
        (3, 10, 3),
        ("3", 10, 3),
        ("25%", 10, 3),
        ("25%", 4, 1),
        ("0%", 7, 0),
        ("100%", 7, 7),
        ("1%", 1, 1),
        ("50%", 0, 0),
    ],
)
def test_percent_are_of_the_target_rounded_up(limit: int | str, total: int, number: int) -> None:
    assert scaled(limit, total) == number


def test_a_budget_is_what_is_ready_beyond_those_that_must_be() -> None:
    budget = budget_of(
        BindingCounts(target=10, ready=9, leaving=1, can_be_ready=11), max_unavailable="25%", max_surge=2
    )
    assert (budget.removals, budget.additions, budget.least) == (1, 1, 7)


@pytest.mark.parametrize("kind", ["Overridden", "WorkSynchronized", "Applied", "Available"])
def test_a_fresh_false_is_a_failure(kind: str) -> None:
    reported = {"type": kind, "status": "False", "reason": "SomethingBroke", "observedGeneration": 3}
    document = {"metadata": {"name": "x", "generation": 3}, "status": {"conditions": [reported]}}
    assert has_failed(ResourceBinding.from_document(document))
    reported["observedGeneration"] = 2
    assert not has_failed(ResourceBinding.from_document(document))


@pytest.mark.parametrize(
    "reason", ["OverriddenPending", "WorkNotSynchronizedYet", "ApplyPending", "ResourceNotAvailableYet"]
)
def test_not_yet_is_no_failure(reason: str) -> None:
    assert not has_failed(on_its_way("a", available=("False", reason)))


def test_who_only_compares_is_ready_once_it_has() -> None:
    reported = {"type": "DiffReported", "status": "True", "observedGeneration": 1}
    document = {"metadata": {"name": "x", "generation": 1}, "status": {"conditions": [reported]}}
    binding = ResourceBinding.from_document(document)
    assert readiness(binding, unavailable_period_seconds=60, now=NOW) == BindingReadiness(is_ready=True)


@pytest.mark.parametrize(
    ("binding", "expected"),
    [
        (on_its_way("a"), BindingReadiness(is_ready=True)),
        (on_its_way("a", available=None), BindingReadiness(is_ready=False)),
        (on_its_way("a", available=FAILED), BindingReadiness(is_ready=False)),
        (on_its_way("a", available=PENDING), BindingReadiness(is_ready=False)),
        (on_its_way("a", generation=2, observed=1), BindingReadiness(is_ready=False)),
        (on_its_way("a", available=UNTRACKABLE, since=-61), BindingReadiness(is_ready=True)),
        (on_its_way("a", available=UNTRACKABLE, since=-10), BindingReadiness(is_ready=False, wait_seconds=50)),
    ],
)
def test_a_binding_is_ready_when_it_is_available_now(binding: ResourceBinding, expected: BindingReadiness) -> None:
    assert readiness(binding, unavailable_period_seconds=60, now=NOW) == expected


def test_only_what_was_bound_can_be_in_a_cluster() -> None:
    assert may_be_placed(on_its_way("a"))
    assert may_be_placed(unscheduled("a"))
    assert not may_be_placed(scheduled("a"))
    assert not may_be_placed(unscheduled("a", previous="Scheduled"))


def test_a_condition_keeps_its_time_while_its_status_stays() -> None:
    first = with_condition([], "Applied", ("True", "x", "m"), generation=1, now=at())
    again = with_condition(first, "Applied", ("True", "y", "n"), generation=2, now=at(9))
    assert again[0]["lastTransitionTime"] == at()
    assert again[0]["observedGeneration"] == 2
    turned = with_condition(again, "Applied", ("False", "y", "n"), generation=2, now=at(9))
    assert turned[0]["lastTransitionTime"] == at(9)


def binding_in(state: str, previous: str | None = None) -> ResourceBinding | None:
    if state == ABSENT:
        return None
    if state == DELETING:
        return on_its_way("a", deleting=0)
    return on_its_way("a", state, previous=previous)


@pytest.mark.parametrize("by", PARTS)
@pytest.mark.parametrize("new", [ABSENT, *STATES, DELETING])
@pytest.mark.parametrize("old", [ABSENT, *STATES, DELETING])
def test_exactly_the_steps_of_the_table_may_be_taken(old: str, new: str, by: By) -> None:
    before, after = binding_in(old, previous=new), binding_in(new)
    if old == new or (old, new, by) in TRANSITIONS:
        check(before, after, by)
    else:
        with pytest.raises(UnexpectedState):
            check(before, after, by)


def test_only_rollout_binds_and_only_the_scheduler_chooses() -> None:
    assert {each.by for each in TRANSITIONS if (each.old, each.new) == ("Scheduled", "Bound")} == {"rollout"}
    assert {each.by for each in TRANSITIONS if each.new in ("Scheduled", "Unscheduled")} == {"scheduler"}
    assert {each.new for each in TRANSITIONS if each.old == DELETING} == {ABSENT}


def test_who_comes_back_comes_back_to_what_it_was() -> None:
    given_up = unscheduled("a", previous="Scheduled")
    with pytest.raises(UnexpectedState, match="was not Bound"):
        check(given_up, on_its_way("a"), "scheduler")
    check(given_up, scheduled("a"), "scheduler")
    assert msgspec.structs.replace(given_up) == given_up
