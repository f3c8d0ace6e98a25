"""Documents of a small fleet as the pages of placements read them."""

from datetime import UTC, datetime, timedelta

from gardenbus.common.api.document import Document
from gardenbus.common.ports.clock import timestamp

LABEL = "kubernetes-fleet.io/parent-CRP"
_PLACEMENT = "placement.kubernetes-fleet.io/v1beta1"


def a_member(name: str, *, seen_seconds_ago: float = 5, healthy: str = "True", taint: str = "") -> Document:
    """A cluster whose agent has joined."""
    seen_at = timestamp(datetime.now(UTC) - timedelta(seconds=seen_seconds_ago))
    return {
        "apiVersion": "cluster.kubernetes-fleet.io/v1beta1",
        "kind": "MemberCluster",
        "metadata": {"name": name, "resourceVersion": "1"},
        "spec": {"taints": [{"key": taint, "value": "x", "effect": "NoSchedule"}] if taint else []},
        "status": {
            "agentStatus": [
                {
                    "type": "MemberAgent",
                    "lastReceivedHeartbeat": seen_at,
                    "conditions": [{"type": "Joined", "status": "True"}, {"type": "Healthy", "status": healthy}],
                }
            ]
        },
    }


def a_placed(name: str, wanted: int, *, fulfilled: str = "True") -> Document:
    """A ClusterResourcePlacement PickN with a decision."""
    reported = {
        "type": "ClusterResourcePlacementScheduled",
        "status": fulfilled,
        "observedGeneration": 2,
        "message": "found 2 of 3 cluster(s)",
    }
    return {
        "apiVersion": _PLACEMENT,
        "kind": "ClusterResourcePlacement",
        "metadata": {"name": name, "uid": name, "generation": 2, "resourceVersion": "1"},
        "spec": {
            "policy": {"placementType": "PickN", "numberOfClusters": wanted},
            "resourceSelectors": [{"group": "", "version": "v1", "kind": "Namespace", "name": "web"}],
            "strategy": {"type": "RollingUpdate"},
        },
        "status": {"conditions": [reported]},
    }


def a_binding(placement: str, cluster: str, state: str = "Bound", *steps: str, message: str = "") -> Document:
    """A binding; `steps` are the statuses of RolloutStarted, Overridden, WorkSynchronized, Applied, Available."""
    types = ("RolloutStarted", "Overridden", "WorkSynchronized", "Applied", "Available")
    return {
        "apiVersion": _PLACEMENT,
        "kind": "ClusterResourceBinding",
        "metadata": {
            "name": f"{placement}-{cluster}",
            "generation": 3,
            "labels": {LABEL: placement},
            "ownerReferences": [{"kind": "ClusterResourcePlacement", "name": placement, "uid": placement}],
        },
        "spec": {"state": state, "targetCluster": cluster, "resourceSnapshotName": f"{placement}-0-snapshot"},
        "status": {
            "conditions": [
                {"type": kind, "status": status, "observedGeneration": 3, "message": message}
                for kind, status in zip(types, steps, strict=False)
            ]
        },
    }


def a_snapshot(placement: str, *decisions: tuple[str, bool, int, int, str], latest: bool = True) -> Document:
    """A policy snapshot; a decision is cluster, selection, affinity and spread score, and reason."""
    return {
        "apiVersion": _PLACEMENT,
        "kind": "ClusterSchedulingPolicySnapshot",
        "metadata": {
            "name": f"{placement}-0",
            "labels": {LABEL: placement, "kubernetes-fleet.io/is-latest-snapshot": str(latest).lower()},
        },
        "status": {
            "targetClusters": [
                {
                    "clusterName": cluster,
                    "selected": selected,
                    "clusterScore": {"affinityScore": affinity, "priorityScore": spread},
                    "reason": reason,
                }
                for cluster, selected, affinity, spread, reason in decisions
            ]
        },
    }
