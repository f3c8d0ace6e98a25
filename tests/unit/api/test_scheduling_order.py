"""Order of those who wait: priority, projects in turn, arrival; shares of a batch; places by band and age."""

import json
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.scheduling_order import (
    HIGH,
    LOW,
    MAX_PRIORITY,
    NORMAL,
    activation_order,
    band_of,
    in_turn,
    max_priority,
    max_priority_problem,
    shares,
)
from tests.support.builders import a_project
from tests.support.shared_files import SHARED

CASES = SHARED / "spec/profile-cases.json"


class Waiting(NamedTuple):
    """A shoot of a batch, in the order of arrival."""

    name: str
    project: str
    priority: int


def ordered(waiting: list[Waiting], *, takes_turns: bool = True) -> list[str]:
    shoots = in_turn(
        waiting, priority=lambda each: each.priority, project=lambda each: each.project, takes_turns=takes_turns
    )
    return [each.name for each in shoots]


def cases(kind: str) -> list[dict[str, Any]]:
    return [each for each in json.loads(CASES.read_text())["cases"] if each["kind"] == kind] if CASES.exists() else []


@pytest.mark.parametrize("case", cases("queue"), ids=lambda case: case["name"])
def test_a_worked_case_of_a_batch_has_its_order(case: Document) -> None:
    pending = sorted(case["given"]["pending"], key=lambda each: each["arrived"])
    waiting = [Waiting(each["shoot"], each["project"], each["priority"]) for each in pending]
    assert ordered(waiting) == case["expect"]["order"]


@pytest.mark.parametrize("case", cases("shares"), ids=lambda case: case["name"])
def test_a_worked_case_of_shares_has_them(case: Document) -> None:
    given_, expected = case["given"], case["expect"]
    found = shares(given_["batch"], high=given_["high"], normal=given_["normal"], low=given_["low"])
    assert found._asdict() == expected


def test_without_priorities_and_turns_a_batch_stays_as_it_came() -> None:
    waiting = [Waiting("a1", "a", 0), Waiting("a2", "a", 0), Waiting("b1", "b", 0)]
    assert ordered(waiting, takes_turns=False) == ["a1", "a2", "b1"]
    assert ordered(waiting) == ["a1", "b1", "a2"]


def test_priorities_count_without_turns_too() -> None:
    waiting = [Waiting("a1", "a", 0), Waiting("a2", "a", 5), Waiting("b1", "b", -1), Waiting("b2", "b", 0)]
    assert ordered(waiting, takes_turns=False) == ["a2", "a1", "b2", "b1"]


@given(
    batch=st.integers(20, 5_000), high=st.integers(0, 9_000), normal=st.integers(0, 9_000), low=st.integers(0, 9_000)
)
def test_each_band_that_waits_has_its_share_and_no_place_stays_empty(
    batch: int, high: int, normal: int, low: int
) -> None:
    found = shares(batch, high=high, normal=normal, low=low)
    assert sum(found) == min(batch, high + normal + low)
    assert found.high <= high
    assert min(normal, batch // 10) <= found.normal <= normal
    assert min(low, batch // 20) <= found.low <= low


@given(st.lists(st.builds(Waiting, st.uuids().map(str), st.sampled_from("abc"), st.integers(-2, 2)), max_size=30))
def test_a_batch_keeps_its_shoots_and_no_lower_priority_comes_first(waiting: list[Waiting]) -> None:
    names = ordered(waiting)
    by_name = {each.name: each for each in waiting}
    priorities = [by_name[name].priority for name in names]
    assert sorted(names) == sorted(by_name)
    assert priorities == sorted(priorities, reverse=True)


def test_a_class_rises_by_one_band_with_each_half_an_hour() -> None:
    order = [
        activation_order(100, 0, "high"),
        activation_order(-1, 3_700, "low since an hour"),
        activation_order(0, 0, "normal"),
        activation_order(-1, 0, "low"),
    ]
    assert sorted(order) == order


def test_bands_follow_from_the_sign() -> None:
    assert [band_of(priority) for priority in (7, 0, -7)] == [HIGH, NORMAL, LOW]


@pytest.mark.parametrize("stated", ["many", "", "1.5", "1000001", "-1001", "99999999"])
def test_an_allowance_that_is_no_priority_is_a_problem(stated: str) -> None:
    assert "whole number" in max_priority_problem(a_project(metadata={"annotations": {MAX_PRIORITY: stated}}))


def test_an_allowance_is_what_a_project_states_and_else_nothing() -> None:
    stated = a_project(metadata={"annotations": {MAX_PRIORITY: "100"}})
    assert (max_priority(stated), max_priority(a_project()), max_priority(None)) == (100, 0, 0)
    assert (max_priority_problem(stated), max_priority_problem(a_project())) == ("", "")
