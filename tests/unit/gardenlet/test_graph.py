"""Flows are graphs: what may start, how far they are, and that each of ours can be completed."""

import pytest

from gardenbus.gardenlet.decide.flows import DESTROYS, FLOWS, shoot_flow
from gardenbus.gardenlet.decide.graph import Flow, Step

DIAMOND = Flow("diamond", (Step("a", "A"), Step("b", "B", ("a",)), Step("c", "C", ("a",)), Step("d", "D", ("b", "c"))))


def names(steps: tuple[Step, ...]) -> list[str]:
    return [step.name for step in steps]


def test_a_step_starts_when_all_before_it_are_done() -> None:
    assert names(DIAMOND.ready(())) == ["a"]
    assert names(DIAMOND.ready(("a",))) == ["b", "c"]
    assert names(DIAMOND.ready(("a", "b"))) == ["c"]
    assert names(DIAMOND.ready(("a", "b"), ("c",))) == []
    assert names(DIAMOND.ready(("a", "b", "c"))) == ["d"]
    assert names(DIAMOND.ready(("a", "b", "c", "d"))) == []


def test_progress_is_what_is_done_of_all() -> None:
    assert [DIAMOND.progress("abcd"[:number]) for number in range(5)] == [0, 25, 50, 75, 100]
    assert DIAMOND.progress(("a", "unknown")) == 25
    assert DIAMOND.is_complete("dcba")


def test_a_step_that_is_left_out_hands_its_order_on() -> None:
    shorter = DIAMOND.without("b", "a")

    assert names(shorter.ready(())) == ["c"]
    assert shorter.steps["d"].after == ("c",)


@pytest.mark.parametrize(
    "steps",
    [
        (Step("a", "A", ("b",)), Step("b", "B", ("a",))),
        (Step("a", "A", ("a",)),),
        (Step("a", "A", ("missing",)),),
        (Step("a", "A"), Step("a", "again")),
    ],
)
def test_a_graph_that_cannot_be_completed_is_refused(steps: tuple[Step, ...]) -> None:
    with pytest.raises(ValueError, match=r"wait|twice"):
        Flow("broken", steps)


@pytest.mark.parametrize(("operation", "has_workers"), FLOWS)
def test_a_shoots_flow_starts_with_one_step_and_ends_complete(operation: str, has_workers: bool) -> None:
    flow = FLOWS[operation, has_workers]  # type: ignore[index]
    done: list[str] = []
    while ready := flow.ready(done):
        done += names(ready)

    assert len(flow.ready(())) == 1
    assert flow.is_complete(done)


def test_the_deletion_takes_away_all_that_was_built() -> None:
    built = set(shoot_flow("Create", has_workers=True).steps)

    assert {name for destroyed in DESTROYS.values() for name in destroyed} == built
    assert DESTROYS.keys() == shoot_flow("Delete", has_workers=True).steps.keys()
    assert "machines" not in shoot_flow("Create", has_workers=False).steps
