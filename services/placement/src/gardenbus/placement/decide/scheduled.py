"""What a policy snapshot tells of the latest cycle: decisions, the condition Scheduled, and of which generation.

Source: KubeFleet's `pkg/scheduler/framework/framework.go`.
"""

from gardenbus.common.resources.conditions import FALSE, TRUE, conditions_of, get_condition, observed_condition
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.placement_parts import PLACEMENT_GENERATION
from gardenbus.fleet.outcome import FAILED, Cycle
from gardenbus.placement.decide.bindings import decision_document

CONDITION = "Scheduled"


def generation_of(snapshot: Document) -> int:
    """Of the placement, as its snapshot has noted it."""
    text = str(section(snapshot, "metadata", "annotations").get(PLACEMENT_GENERATION) or "")
    return int(text) if text.isdecimal() else 0


def with_outcome(snapshot: Document, cycle: Cycle, now: str) -> Document:
    """A snapshot with the outcome of a cycle; the same document when it tells this already."""
    if not cycle.decides:
        return snapshot
    decisions = [decision_document(each) for each in cycle.decisions]
    status = TRUE if cycle.fulfilled else FALSE
    return _told(snapshot, decisions, (status, cycle.reason, cycle.message), now)


def with_failure(snapshot: Document, message: str, now: str) -> Document:
    """A snapshot that tells why there is no decision; those that were made stay."""
    return _told(snapshot, _decisions(snapshot), (FALSE, FAILED, message), now)


def _told(snapshot: Document, decisions: list[Document], said: tuple[str, str, str], now: str) -> Document:
    status = section(snapshot, "status")
    generation = generation_of(snapshot)
    old = get_condition(conditions_of(snapshot), CONDITION)
    present = tuple(str(old.get(field) or "") for field in ("status", "reason", "message")) if old else ()
    same = _by_cluster(_decisions(snapshot)) == _by_cluster(decisions)
    if same and present == said and status.get("observedCRPGeneration") == generation:
        return snapshot
    observed = section(snapshot, "metadata").get("generation", 1)
    condition = observed_condition(conditions_of(snapshot), CONDITION, said, generation=observed, now=now)
    told = {"observedCRPGeneration": generation, "conditions": [condition], "targetClusters": decisions}
    return {**snapshot, "status": told}


def _decisions(snapshot: Document) -> list[Document]:
    present: list[Document] | None = section(snapshot, "status").get("targetClusters")
    return present or []


def _by_cluster(decisions: list[Document]) -> dict[str, Document]:
    return {str(each.get("clusterName")): each for each in decisions}
