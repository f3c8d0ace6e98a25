"""Columns of the kinds of batch placement for `get`, and a few words on where each stands. Pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from gardenbus.cli.cells import Column, Context, age_of, condition_reason, condition_status, field, labels_of
from gardenbus.cli.documents import as_mapping
from gardenbus.cli.rows import condition
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.member_clusters import CLUSTER_NAMESPACE_PREFIX, HEALTHY, JOINED, MEMBER_AGENT
from gardenbus.common.resources.placement_parts import (
    IS_LATEST_LABEL,
    PREVIOUS_STATE,
    RESOURCE_INDEX_LABEL,
    of,
)
from gardenbus.common.resources.placements import CLUSTER_KIND, KINDS, NAMESPACED_KIND, PARENT_LABEL

Cell = Callable[[Document, Context], str]

NODE_COUNT = "kubernetes-fleet.io/node-count"


def _at(document: Document, *path: str) -> Any:
    value: object = document
    for part in path:
        value = as_mapping(value).get(part)
    return value


def _entries(document: Document, *path: str) -> Sequence[Document]:
    value = _at(document, *path)
    return [as_mapping(each) for each in cast("list[object]", value)] if isinstance(value, list) else []


def _label(name: str) -> Cell:
    return lambda document, _: str(_at(document, "metadata", "labels", name) or "")


def agent_of(document: Document) -> Document:
    """What the member agent of a MemberCluster says of itself; an empty mapping while it has said nothing."""
    agents = _entries(document, "status", "agentStatus")
    silent: Document = {}
    return next((agent for agent in agents if agent.get("type") == MEMBER_AGENT), silent)


def _agent_says(kind: str) -> Cell:
    return lambda document, _: str(condition({"status": agent_of(document)}, kind).get("status") or "Unknown")


def _last_seen(document: Document, context: Context) -> str:
    return age_of(agent_of(document).get("lastReceivedHeartbeat"), context.now) or "<never>"


def _taints(document: Document, _context: Context) -> str:
    taints = _entries(document, "spec", "taints")
    return ",".join("=".join(map(str, filter(None, (taint.get("key"), taint.get("value"))))) for taint in taints)


def type_of(document: Document, _context: Context | None = None) -> str:
    """How a placement chooses."""
    return str(_at(document, "spec", "policy", "placementType") or "PickAll")


def _clusters(document: Document, _context: Context) -> str:
    """Chosen, of how many are wanted where the policy says a number."""
    chosen = sum(bool(each.get("clusterName")) for each in _entries(document, "status", "placementStatuses"))
    wanted: Mapping[str, Any] = {
        "PickN": _at(document, "spec", "policy", "numberOfClusters"),
        "PickFixed": len(_at(document, "spec", "policy", "clusterNames") or ()),
    }
    number = wanted.get(type_of(document))
    return str(chosen) if number is None else f"{chosen}/{number}"


def _of_placement(kind: str) -> Cell:
    """The status of a condition, whose type begins with the placement's kind."""
    return lambda document, context: condition_status(f"{document.get('kind')}{kind}")(document, context)


def _scheduled_reason(document: Document, context: Context) -> str:
    return condition_reason(f"{document.get('kind')}Scheduled")(document, context)


def _is_latest(document: Document, _context: Context) -> str:
    return "yes" if _at(document, "metadata", "labels", IS_LATEST_LABEL) == "true" else "no"


def _chosen(document: Document, _context: Context) -> str:
    return str(sum(bool(each.get("selected")) for each in _entries(document, "status", "targetClusters")))


def _count(*path: str) -> Cell:
    return lambda document, _: str(len(_entries(document, *path)))


def state_of(document: Document, _context: Context | None = None) -> str:
    """The state of a binding; one on its way out is `Deleting`, whatever it was."""
    if _at(document, "metadata", "deletionTimestamp"):
        return "Deleting"
    return str(_at(document, "spec", "state") or "")


def _was(document: Document, _context: Context) -> str:
    return str(_at(document, "metadata", "annotations", PREVIOUS_STATE) or "")


def _scores(document: Document, _context: Context) -> str:
    score = as_mapping(_at(document, "spec", "clusterDecision", "clusterScore"))
    return f"{score.get('affinityScore')}/{score.get('priorityScore')}" if score else ""


def _work_cluster(document: Document, _context: Context) -> str:
    return str(_at(document, "metadata", "namespace") or "").removeprefix(CLUSTER_NAMESPACE_PREFIX)


_PLACEMENT = (
    Column("TYPE", type_of),
    Column("CLUSTERS", _clusters),
    Column("SCHEDULED", _of_placement("Scheduled")),
    Column("ROLLED OUT", _of_placement("RolloutStarted")),
    Column("APPLIED", _of_placement("Applied")),
    Column("AVAILABLE", _of_placement("Available")),
    Column("GENERATION", field("metadata", "generation"), wide=True),
    Column("REASON", _scheduled_reason, wide=True),
)
_POLICY_SNAPSHOT = (
    Column("PLACEMENT", _label(PARENT_LABEL)),
    Column("LATEST", _is_latest),
    Column("SCHEDULED", condition_status("Scheduled")),
    Column("CLUSTERS", _chosen),
    Column("REASON", condition_reason("Scheduled"), wide=True),
)
_RESOURCE_SNAPSHOT = (
    Column("PLACEMENT", _label(PARENT_LABEL)),
    Column("INDEX", _label(RESOURCE_INDEX_LABEL)),
    Column("LATEST", _is_latest),
    Column("RESOURCES", _count("spec", "selectedResources")),
)
_BINDING = (
    Column("PLACEMENT", _label(PARENT_LABEL)),
    Column("CLUSTER", field("spec", "targetCluster")),
    Column("STATE", state_of),
    Column("SYNCED", condition_status("WorkSynchronized")),
    Column("APPLIED", condition_status("Applied")),
    Column("AVAILABLE", condition_status("Available")),
    Column("WAS", _was, wide=True),
    Column("POLICY", field("spec", "schedulingPolicySnapshotName"), wide=True),
    Column("RESOURCES", field("spec", "resourceSnapshotName"), wide=True),
    Column("AFFINITY/SPREAD", _scores, wide=True),
)

FLEET_COLUMNS: Mapping[str, Sequence[Column]] = {
    "membercluster": (
        Column("JOINED", _agent_says(JOINED)),
        Column("HEALTHY", _agent_says(HEALTHY)),
        Column("LAST SEEN", _last_seen),
        Column("NODES", field("status", "properties", NODE_COUNT, "value")),
        Column("CPU", field("status", "resourceUsage", "available", "cpu")),
        Column("MEMORY", field("status", "resourceUsage", "available", "memory")),
        Column("TAINTS", _taints, wide=True),
        Column("LABELS", labels_of, wide=True),
    ),
    **dict.fromkeys(KINDS, _PLACEMENT),
    **{of(kind).policy_snapshot.lower(): _POLICY_SNAPSHOT for kind in KINDS},
    **{of(kind).resource_snapshot.lower(): _RESOURCE_SNAPSHOT for kind in KINDS},
    **{of(kind).binding.lower(): _BINDING for kind in KINDS},
    "clusterresourceplacementeviction": (
        Column("PLACEMENT", field("spec", "placementName")),
        Column("CLUSTER", field("spec", "clusterName")),
        Column("VALID", condition_status("Valid")),
        Column("EXECUTED", condition_status("Executed")),
        Column("REASON", condition_reason("Executed"), wide=True),
    ),
    "clusterresourceplacementdisruptionbudget": (
        Column("MAX UNAVAILABLE", field("spec", "maxUnavailable")),
        Column("MIN AVAILABLE", field("spec", "minAvailable")),
    ),
    "work": (
        Column("CLUSTER", _work_cluster),
        Column("PLACEMENT", _label(PARENT_LABEL)),
        Column("MANIFESTS", _count("spec", "workload", "manifests")),
        Column("APPLIED", condition_status("Applied")),
        Column("AVAILABLE", condition_status("Available")),
    ),
}
"""By kind; what is long comes last."""


def fleet_standing(document: Document) -> str:
    """Where an object stands, in a few words; "" where it is of no kind of batch placement."""
    kind = str(document.get("kind"))
    match kind.lower():
        case "membercluster":
            agent = {"status": agent_of(document)}
            stated = (f"{each} {condition(agent, each).get('status') or 'Unknown'}" for each in (JOINED, HEALTHY))
            return ", ".join(stated)
        case "work":
            return _progress(document)
        case singular if singular in (CLUSTER_KIND, NAMESPACED_KIND):
            scheduled = condition(document, f"{kind}Scheduled")
            return f"{type_of(document)}, Scheduled {scheduled.get('status') or 'Unknown'}"
        case singular if singular in (of(CLUSTER_KIND).binding.lower(), of(NAMESPACED_KIND).binding.lower()):
            placement, cluster = (
                _at(document, "metadata", "labels", PARENT_LABEL),
                _at(document, "spec", "targetCluster"),
            )
            return f"{placement} on {cluster}: {state_of(document)}, {_progress(document)}"
        case _:
            return ""


def _progress(document: Document) -> str:
    statuses = ((kind, condition(document, kind).get("status")) for kind in ("Applied", "Available"))
    return ", ".join(f"{kind} {status}" for kind, status in statuses if status) or "nothing reported yet"
