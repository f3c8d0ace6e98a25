"""Rows of placements, bindings and member clusters for tables: small extracts of manifests of any shape."""

from collections.abc import Iterable, Mapping
from typing import Any

from gardenbus.common.api.conditions import TRUE, conditions_of
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings
from gardenbus.common.api.fleet.member_clusters import HEALTHY, JOINED, MEMBER_AGENT
from gardenbus.common.api.fleet.placement_parts import BOUND, IS_LATEST_LABEL, ClusterDecision
from gardenbus.common.api.fleet.placements import PARENT_LABEL, PICK_ALL, PICK_FIXED, PICK_N
from gardenbus.common.api.garden.rows import TableRow, condition, listed, metadata_fields, number, text

STEPS = ("RolloutStarted", "Overridden", "WorkSynchronized", "Applied", "Available")
"""Conditions of a binding, in order."""

_LETTERS = {"True": "t", "False": "f", "Unknown": "u"}


class PlacementRow(TableRow, frozen=True):
    """One placement. `wanted` is None where all feasible clusters are wanted."""

    kind: str
    type: str
    wanted: int | None
    fulfilled: str
    """Status of its condition Scheduled, "" before there is one for this generation."""

    reason: str
    """Message of the condition, unless it is True."""


class BindingRow(TableRow, frozen=True):
    """One placement on one cluster."""

    placement: str
    cluster: str
    state: str
    resources: str
    """Its resource snapshot; "" until it is Bound."""

    steps: str
    """A letter for each of STEPS: t, f, u, or - without a condition of the current generation."""

    trouble: str
    """Message of the first step that is False."""

    @property
    def is_available(self) -> bool:
        """True when all its resources are available."""
        return self.state == BOUND and self.steps.endswith("t")


class ClusterRow(TableRow, frozen=True):
    """One member cluster. `joined` and `healthy` are its agent's conditions, "" before the first report."""

    joined: str
    healthy: str
    reason: str
    heartbeat: str
    """Last heartbeat of its agent (RFC 3339)."""

    taints: tuple[str, ...]


class SnapshotRow(TableRow, frozen=True):
    """A policy snapshot."""

    placement: str
    latest: bool


def placement_row(document: Document) -> PlacementRow:
    """Return the row of a ClusterResourcePlacement or a ResourcePlacement."""
    policy = section(document, "spec", "policy")
    kind = text(document.get("kind"))
    scheduled = condition(document, f"{kind}Scheduled")
    generation = section(document, "metadata").get("generation")
    is_fresh = scheduled.get("observedGeneration") in (None, generation)
    placement_type = text(policy.get("placementType")) or PICK_ALL
    status = text(scheduled.get("status")) if is_fresh else ""
    return PlacementRow(
        **metadata_fields(document),
        kind=kind.lower(),
        type=placement_type,
        wanted=_wanted(placement_type, policy),
        fulfilled=status,
        reason="" if status == TRUE else text(scheduled.get("message")),
    )


def binding_row(document: Document) -> BindingRow:
    """Return the row of a ClusterResourceBinding or a ResourceBinding."""
    spec = section(document, "spec")
    conditions = {text(each.get("type")): each for each in conditions_of(document)}
    generation = section(document, "metadata").get("generation")
    current = {kind: each for kind, each in conditions.items() if each.get("observedGeneration") in (None, generation)}
    failed = _first(each for each in map(current.get, STEPS) if each and each.get("status") == "False")
    return BindingRow(
        **metadata_fields(document),
        placement=text(section(document, "metadata", "labels").get(PARENT_LABEL)),
        cluster=text(spec.get("targetCluster")),
        state=text(spec.get("state")),
        resources=text(spec.get("resourceSnapshotName")),
        steps="".join(_LETTERS.get(text(current.get(step, {}).get("status")), "-") for step in STEPS),
        trouble=text(failed.get("message")) or text(failed.get("reason")),
    )


def cluster_row(document: Document) -> ClusterRow:
    """Return the row of a MemberCluster."""
    agents = mappings(section(document, "status").get("agentStatus"))
    agent = _first(each for each in agents if each.get("type") == MEMBER_AGENT)
    conditions = {text(each.get("type")): each for each in mappings(agent.get("conditions"))}
    joined, healthy = conditions.get(JOINED, {}), conditions.get(HEALTHY, {})
    wrong = _first(each for each in (joined, healthy) if each and each.get("status") != TRUE)
    return ClusterRow(
        **metadata_fields(document),
        joined=text(joined.get("status")),
        healthy=text(healthy.get("status")),
        reason=text(wrong.get("message")) or text(wrong.get("reason")),
        heartbeat=text(agent.get("lastReceivedHeartbeat")),
        taints=tuple(map(_taint, mappings(section(document, "spec").get("taints")))),
    )


def snapshot_row(document: Document) -> SnapshotRow:
    """Return the row of a policy snapshot."""
    labels = section(document, "metadata", "labels")
    return SnapshotRow(
        **metadata_fields(document),
        placement=text(labels.get(PARENT_LABEL)),
        latest=labels.get(IS_LATEST_LABEL) == "true",
    )


def decision_rows(decisions: Iterable[ClusterDecision]) -> list[dict[str, Any]]:
    """Return decisions with both scores (None where nothing was ranked), as explanations and simulations show them."""
    return [
        {
            "cluster": decision.cluster_name,
            "selected": decision.selected,
            "affinityScore": decision.cluster_score.affinity_score if decision.cluster_score else None,
            "topologySpreadScore": decision.cluster_score.priority_score if decision.cluster_score else None,
            "reason": decision.reason,
        }
        for decision in decisions
    ]


def _first(found: Iterable[Document]) -> Document:
    """Return the first one, or an empty mapping."""
    nothing: Document = {}
    return next(iter(found), nothing)


def _wanted(placement_type: str, policy: Mapping[str, Any]) -> int | None:
    if placement_type == PICK_N:
        return number(policy.get("numberOfClusters"))
    return len(listed(policy.get("clusterNames"))) if placement_type == PICK_FIXED else None


def _taint(taint: Mapping[str, Any]) -> str:
    value = text(taint.get("value"))
    return f"{text(taint.get('key'))}{f'={value}' if value else ''}"
