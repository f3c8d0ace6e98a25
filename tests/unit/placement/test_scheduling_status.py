"""The status of a policy snapshot after a cycle."""

from gardenbus.common.api.document import Document
from gardenbus.common.api.fleet.placement_parts import PLACEMENT_GENERATION, ClusterDecision
from gardenbus.fleet.cycle_result import CycleResult
from gardenbus.placement.domain.scheduling_status import with_outcome

NOW = "2026-11-21T12:00:00Z"
A, B = ClusterDecision("a", selected=True, reason="chosen"), ClusterDecision("b", reason="it is full")


def a_snapshot(placement_generation: int = 1) -> Document:
    annotations = {PLACEMENT_GENERATION: str(placement_generation)}
    return {"metadata": {"name": "web-1", "generation": 1, "annotations": annotations}}


def test_a_status_that_says_it_all_already_is_not_written_again() -> None:
    cycle = CycleResult(decisions=(A, B), message="found")
    recorded = with_outcome(a_snapshot(), cycle, NOW)

    assert recorded["status"]["observedCRPGeneration"] == 1
    assert with_outcome(recorded, cycle, "2026-11-21T13:00:00Z") is recorded


def test_decisions_are_the_same_in_whatever_order() -> None:
    recorded = with_outcome(a_snapshot(), CycleResult(decisions=(A, B)), NOW)

    assert with_outcome(recorded, CycleResult(decisions=(B, A)), NOW) is recorded
    assert with_outcome(recorded, CycleResult(decisions=(A,)), NOW) is not recorded


def test_another_generation_or_another_outcome_is_written() -> None:
    cycle = CycleResult(decisions=(A,))
    recorded = with_outcome(a_snapshot(), cycle, NOW)
    newer = {**recorded, "metadata": a_snapshot(2)["metadata"]}

    assert with_outcome(newer, cycle, NOW)["status"]["observedCRPGeneration"] == 2
    assert with_outcome(recorded, CycleResult(decisions=(A,), fulfilled=False), NOW) is not recorded


def test_a_cycle_that_leaves_the_status_alone_writes_none() -> None:
    snapshot = a_snapshot()

    assert with_outcome(snapshot, CycleResult(updates_status=False), NOW) is snapshot
