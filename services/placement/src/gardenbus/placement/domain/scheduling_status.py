"""Status of a policy snapshot: decisions, the condition Scheduled, and the observed generation of the placement.

Source: KubeFleet's `pkg/scheduler/framework/framework.go`.
"""

from gardenbus.common.api.conditions import FALSE, TRUE, conditions_of, get_condition, observed_condition
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.fleet.placement_parts import PLACEMENT_GENERATION
from gardenbus.common.api.numbers import whole_number
from gardenbus.fleet.cycle_result import FAILED, CycleResult
from gardenbus.placement.domain.bindings import decision_document

CONDITION = "Scheduled"


def generation_of(snapshot: Document) -> int:
    """Return the placement's generation that a snapshot records."""
    return whole_number(section(snapshot, "metadata", "annotations").get(PLACEMENT_GENERATION))


def with_outcome(snapshot: Document, cycle: CycleResult, now: str) -> Document:
    """Return a snapshot with the result of a cycle; the same document when it is recorded already."""
    if not cycle.updates_status:
        return snapshot
    decisions = [decision_document(each) for each in cycle.decisions]
    status = TRUE if cycle.fulfilled else FALSE
    return _with_status(snapshot, decisions, (status, cycle.reason, cycle.message), now)


def with_failure(snapshot: Document, message: str, now: str) -> Document:
    """Return a snapshot with the reason why there is no decision; earlier decisions stay."""
    return _with_status(snapshot, _decisions(snapshot), (FALSE, FAILED, message), now)


def _with_status(snapshot: Document, decisions: list[Document], outcome: tuple[str, str, str], now: str) -> Document:
    status = section(snapshot, "status")
    generation = generation_of(snapshot)
    old = get_condition(conditions_of(snapshot), CONDITION)
    present = tuple(str(old.get(field) or "") for field in ("status", "reason", "message")) if old else ()
    same = _by_cluster(_decisions(snapshot)) == _by_cluster(decisions)
    if same and present == outcome and status.get("observedCRPGeneration") == generation:
        return snapshot
    observed = section(snapshot, "metadata").get("generation", 1)
    condition = observed_condition(conditions_of(snapshot), CONDITION, outcome, generation=observed, now=now)
    renewed = {"observedCRPGeneration": generation, "conditions": [condition], "targetClusters": decisions}
    return {**snapshot, "status": renewed}


def _decisions(snapshot: Document) -> list[Document]:
    present: list[Document] | None = section(snapshot, "status").get("targetClusters")
    return present or []


def _by_cluster(decisions: list[Document]) -> dict[str, Document]:
    return {str(each.get("clusterName")): each for each in decisions}
