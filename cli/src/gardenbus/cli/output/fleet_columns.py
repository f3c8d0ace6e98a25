"""Columns of the kinds of batch placement for `get`, and a few words on where each stands. Pure."""

from collections.abc import Mapping, Sequence

from gardenbus.cli.manifests.files import as_mapping
from gardenbus.cli.output.columns import (
    Cell,
    TableColumn,
    TableContext,
    age_of,
    condition_reason,
    condition_status,
    entries_at,
    field,
    labels_of,
    shown,
    value_at,
)
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import namespace_of
from gardenbus.common.api.fleet.member_clusters import CLUSTER_NAMESPACE_PREFIX, HEALTHY, JOINED
from gardenbus.common.api.fleet.overrides import OVERRIDE_INDEX_LABEL, OVERRIDE_KINDS, OVERRIDE_LABEL, selectors_of
from gardenbus.common.api.fleet.overrides import SNAPSHOT_KINDS as OVERRIDE_SNAPSHOT_KINDS
from gardenbus.common.api.fleet.placement_parts import IS_LATEST_LABEL, PREVIOUS_STATE, RESOURCE_INDEX_LABEL, of
from gardenbus.common.api.fleet.placements import CLUSTER_KIND, KINDS, NAMESPACED_KIND, PARENT_LABEL
from gardenbus.common.api.fleet.rows import cluster_row, placement_row
from gardenbus.common.api.garden.rows import condition

NODE_COUNT = "kubernetes-fleet.io/node-count"


def _label(name: str) -> Cell:
    return field("metadata", "labels", name)


def type_of(document: Document, _context: TableContext | None = None) -> str:
    """Return the placement type of a placement's policy."""
    return placement_row(document).type


def _last_heartbeat(document: Document, context: TableContext) -> str:
    return age_of(cluster_row(document).heartbeat, context.now) or "<never>"


def _scheduled_reason(document: Document, context: TableContext) -> str:
    return condition_reason(f"{document.get('kind')}Scheduled")(document, context)


def _clusters(document: Document, _context: TableContext) -> str:
    """Chosen, of how many are wanted where the policy says a number."""
    chosen = sum(bool(each.get("clusterName")) for each in entries_at(document, "status", "placementStatuses"))
    wanted = placement_row(document).wanted
    return str(chosen) if wanted is None else f"{chosen}/{wanted}"


def _of_placement(kind: str) -> Cell:
    """The status of a condition, whose type begins with the placement's kind."""
    return lambda document, context: condition_status(f"{document.get('kind')}{kind}")(document, context)


def _is_latest(document: Document, _context: TableContext) -> str:
    return "yes" if value_at(document, "metadata", "labels", IS_LATEST_LABEL) == "true" else "no"


def _chosen(document: Document, _context: TableContext) -> str:
    return str(sum(bool(each.get("selected")) for each in entries_at(document, "status", "targetClusters")))


def _count(*path: str) -> Cell:
    return lambda document, _: str(len(entries_at(document, *path)))


def _overridden(document: Document, _context: TableContext) -> str:
    return ",".join(f"{each.get('kind')}/{each.get('name')}" for each in selectors_of(document))


def _size_of_data(document: Document, _context: TableContext) -> str:
    return str(len(section(document, "data")))


def state_of(document: Document, _context: TableContext | None = None) -> str:
    """The state of a binding; one that is being deleted is `Deleting`, whatever it was."""
    if value_at(document, "metadata", "deletionTimestamp"):
        return "Deleting"
    return str(value_at(document, "spec", "state") or "")


def _scores(document: Document, _context: TableContext) -> str:
    score = as_mapping(value_at(document, "spec", "clusterDecision", "clusterScore"))
    return f"{score.get('affinityScore')}/{score.get('priorityScore')}" if score else ""


_PLACEMENT = (
    TableColumn("TYPE", type_of),
    TableColumn("CLUSTERS", _clusters),
    TableColumn("SCHEDULED", _of_placement("Scheduled")),
    TableColumn("ROLLED OUT", _of_placement("RolloutStarted")),
    TableColumn("APPLIED", _of_placement("Applied")),
    TableColumn("AVAILABLE", _of_placement("Available")),
    TableColumn("GENERATION", field("metadata", "generation"), wide=True),
    TableColumn("REASON", _scheduled_reason, wide=True),
)
_POLICY_SNAPSHOT = (
    TableColumn("PLACEMENT", _label(PARENT_LABEL)),
    TableColumn("LATEST", _is_latest),
    TableColumn("SCHEDULED", condition_status("Scheduled")),
    TableColumn("CLUSTERS", _chosen),
    TableColumn("REASON", condition_reason("Scheduled"), wide=True),
)
_RESOURCE_SNAPSHOT = (
    TableColumn("PLACEMENT", _label(PARENT_LABEL)),
    TableColumn("INDEX", _label(RESOURCE_INDEX_LABEL)),
    TableColumn("LATEST", _is_latest),
    TableColumn("RESOURCES", _count("spec", "selectedResources")),
)
_BINDING = (
    TableColumn("PLACEMENT", _label(PARENT_LABEL)),
    TableColumn("CLUSTER", field("spec", "targetCluster")),
    TableColumn("STATE", state_of),
    TableColumn("SYNCED", condition_status("WorkSynchronized")),
    TableColumn("APPLIED", condition_status("Applied")),
    TableColumn("AVAILABLE", condition_status("Available")),
    TableColumn("WAS", field("metadata", "annotations", PREVIOUS_STATE), wide=True),
    TableColumn("POLICY", field("spec", "schedulingPolicySnapshotName"), wide=True),
    TableColumn("RESOURCES", field("spec", "resourceSnapshotName"), wide=True),
    TableColumn("AFFINITY/SPREAD", _scores, wide=True),
)

_OVERRIDE = (
    TableColumn("PLACEMENT", field("spec", "placement", "name")),
    TableColumn("RESOURCES", _overridden),
    TableColumn("RULES", _count("spec", "policy", "overrideRules")),
)
_OVERRIDE_SNAPSHOT = (
    TableColumn("OVERRIDE", _label(OVERRIDE_LABEL)),
    TableColumn("INDEX", _label(OVERRIDE_INDEX_LABEL)),
    TableColumn("LATEST", _is_latest),
)

FLEET_COLUMNS: Mapping[str, Sequence[TableColumn]] = {
    "membercluster": (
        TableColumn("JOINED", shown(lambda document: cluster_row(document).joined or "Unknown")),
        TableColumn("HEALTHY", shown(lambda document: cluster_row(document).healthy or "Unknown")),
        TableColumn("LAST SEEN", _last_heartbeat),
        TableColumn("NODES", field("status", "properties", NODE_COUNT, "value")),
        TableColumn("CPU", field("status", "resourceUsage", "available", "cpu")),
        TableColumn("MEMORY", field("status", "resourceUsage", "available", "memory")),
        TableColumn("TAINTS", shown(lambda document: ",".join(cluster_row(document).taints)), wide=True),
        TableColumn("LABELS", labels_of, wide=True),
    ),
    **dict.fromkeys(KINDS, _PLACEMENT),
    **{of(kind).policy_snapshot.lower(): _POLICY_SNAPSHOT for kind in KINDS},
    **{of(kind).resource_snapshot.lower(): _RESOURCE_SNAPSHOT for kind in KINDS},
    **{of(kind).binding.lower(): _BINDING for kind in KINDS},
    "clusterresourceplacementeviction": (
        TableColumn("PLACEMENT", field("spec", "placementName")),
        TableColumn("CLUSTER", field("spec", "clusterName")),
        TableColumn("VALID", condition_status("Valid")),
        TableColumn("EXECUTED", condition_status("Executed")),
        TableColumn("REASON", condition_reason("Executed"), wide=True),
    ),
    "clusterresourceplacementdisruptionbudget": (
        TableColumn("MAX UNAVAILABLE", field("spec", "maxUnavailable")),
        TableColumn("MIN AVAILABLE", field("spec", "minAvailable")),
    ),
    **dict.fromkeys(OVERRIDE_KINDS, _OVERRIDE),
    **dict.fromkeys(OVERRIDE_SNAPSHOT_KINDS, _OVERRIDE_SNAPSHOT),
    "clusterresourceenvelope": (TableColumn("MANIFESTS", _size_of_data),),
    "resourceenvelope": (TableColumn("MANIFESTS", _size_of_data),),
    "work": (
        TableColumn("CLUSTER", shown(lambda document: namespace_of(document).removeprefix(CLUSTER_NAMESPACE_PREFIX))),
        TableColumn("PLACEMENT", _label(PARENT_LABEL)),
        TableColumn("MANIFESTS", _count("spec", "workload", "manifests")),
        TableColumn("APPLIED", condition_status("Applied")),
        TableColumn("AVAILABLE", condition_status("Available")),
    ),
}
"""By kind; what is long comes last."""


def fleet_summary(document: Document) -> str:
    """State of an object in a few words; "" unless it is of a kind of batch placement."""
    kind = str(document.get("kind"))
    match kind.lower():
        case "membercluster":
            row = cluster_row(document)
            return f"{JOINED} {row.joined or 'Unknown'}, {HEALTHY} {row.healthy or 'Unknown'}"
        case "work":
            return _progress(document)
        case singular if singular in (CLUSTER_KIND, NAMESPACED_KIND):
            scheduled = condition(document, f"{kind}Scheduled")
            return f"{type_of(document)}, Scheduled {scheduled.get('status') or 'Unknown'}"
        case singular if singular in (of(CLUSTER_KIND).binding.lower(), of(NAMESPACED_KIND).binding.lower()):
            placement, cluster = (
                value_at(document, "metadata", "labels", PARENT_LABEL),
                value_at(document, "spec", "targetCluster"),
            )
            return f"{placement} on {cluster}: {state_of(document)}, {_progress(document)}"
        case _:
            return ""


def _progress(document: Document) -> str:
    statuses = ((kind, condition(document, kind).get("status")) for kind in ("Applied", "Available"))
    return ", ".join(f"{kind} {status}" for kind, status in statuses if status) or "nothing reported yet"
