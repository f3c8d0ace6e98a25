"""Flows are graphs: what may start, how far they are, and that each of ours can be completed."""

import pytest

from gardenbus.common.api.configuration.failure_injection import SHOOT_STEPS
from gardenbus.gardenlet.domain.flow_graph import Flow, FlowStep
from gardenbus.gardenlet.domain.flows import DESTROYS, FLOWS, SAVE_STATE, OperationType, forced_deletion, shoot_flow

DIAMOND = Flow(
    "diamond",
    (FlowStep("a", "A"), FlowStep("b", "B", ("a",)), FlowStep("c", "C", ("a",)), FlowStep("d", "D", ("b", "c"))),
)


def names(steps: tuple[FlowStep, ...]) -> list[str]:
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
        (FlowStep("a", "A", ("b",)), FlowStep("b", "B", ("a",))),
        (FlowStep("a", "A", ("a",)),),
        (FlowStep("a", "A", ("missing",)),),
        (FlowStep("a", "A"), FlowStep("a", "again")),
    ],
)
def test_a_graph_that_cannot_be_completed_is_rejected(steps: tuple[FlowStep, ...]) -> None:
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


@pytest.mark.parametrize("operation", ["Delete", "Migrate", "Leave"])
def test_a_teardown_removes_all_that_was_built(operation: OperationType) -> None:
    built = set(shoot_flow("Create", has_workers=True).steps)
    steps = shoot_flow(operation, has_workers=True).steps

    assert {name for step in steps for name in DESTROYS[step]} == built


@pytest.mark.parametrize("has_extensions", [False, True])
def test_a_forced_deletion_leaves_out_what_is_in_the_shoot_and_its_infrastructure(*, has_extensions: bool) -> None:
    forced = forced_deletion(has_extensions=has_extensions)
    done: list[str] = []
    while ready := forced.ready(done):
        done += names(ready)
    whole = shoot_flow("Delete", has_workers=True)
    assert forced.name == "Shoot cluster force deletion"
    assert forced.is_complete(done)
    assert done[-1] == "delete-namespace"
    assert whole.steps.keys() - set(done) == {
        *("clean-up-cluster", "delete-machines", "delete-network", "delete-infrastructure"),
    }
    if has_extensions:
        order = [
            *("force-delete-extensions", "delete-managed-resources", "delete-cluster", "delete-control-plane"),
            *("delete-etcd", "delete-kubernetes-resources", "delete-namespace"),
        ]
        assert [name for name in done if name != "delete-dns-record"] == order


def test_without_workers_no_machines_are_built() -> None:
    assert "machines" not in shoot_flow("Create", has_workers=False).steps


def test_a_migration_destroys_nothing_that_lasts_before_its_state_is_saved() -> None:
    flow = shoot_flow("Migrate", has_workers=True)
    before = [step for step in flow.steps if not _comes_after(flow, step, SAVE_STATE)]

    assert {name for step in before for name in DESTROYS[step]} == {
        "control-plane",
        "wait-for-api-server",
        "system-components",
        "tunnel",
    }
    assert SAVE_STATE not in shoot_flow("Leave", has_workers=True).steps


def _comes_after(flow: Flow, step: str, other: str) -> bool:
    return any(name == other or _comes_after(flow, name, other) for name in flow.steps[step].after)


def test_the_configuration_names_the_steps_of_all_flows() -> None:
    assert {name for flow in FLOWS.values() for name in flow.steps} == SHOOT_STEPS
