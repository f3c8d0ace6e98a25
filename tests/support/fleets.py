"""Member clusters, placements, policy snapshots and bindings with good defaults; bindings after a cycle was written."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from gardenbus.common.api.document import Document
from gardenbus.common.api.fleet.member_clusters import MemberCluster
from gardenbus.common.api.fleet.placement_parts import (
    BINDING_CLEANUP,
    NUMBER_OF_CLUSTERS,
    PLACEMENT_GENERATION,
    PREVIOUS_STATE,
    PolicySnapshot,
    ResourceBinding,
)
from gardenbus.common.api.fleet.placements import PARENT_LABEL, Placement
from gardenbus.fleet.cycle_result import CycleResult
from tests.support.builders import merged

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC).timestamp()
CURRENT = "web-1"
OBSOLETE = "web-0"


def at(seconds: float = 0.0) -> str:
    """The timestamp of an instant, in seconds from NOW."""
    return datetime.fromtimestamp(NOW + seconds, UTC).isoformat().replace("+00:00", "Z")


def a_member_document(name: str, labels: Mapping[str, str] | None = None, **changes: Any) -> Document:
    """A joined and healthy cluster with a heartbeat of a second ago. `changes` are merged into it."""
    default: Document = {
        "apiVersion": "cluster.kubernetes-fleet.io/v1beta1",
        "kind": "MemberCluster",
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {},
        "status": {"agentStatus": [an_agent()]},
    }
    return merged(default, changes)


def an_agent(
    heartbeat: float = -1, joined: str = "True", healthy: str | None = "True", since: float = -3600
) -> Document:
    """Status of a cluster's agent; times in seconds from NOW, `healthy` of None leaves the condition out."""
    conditions = [{"type": "Joined", "status": joined, "lastTransitionTime": at(since)}]
    if healthy is not None:
        conditions.append({"type": "Healthy", "status": healthy, "lastTransitionTime": at(since)})
    return {"type": "MemberAgent", "conditions": conditions, "lastReceivedHeartbeat": at(heartbeat)}


def a_member(
    name: str,
    labels: Mapping[str, str] | None = None,
    *,
    taints: Sequence[Mapping[str, str]] = (),
    properties: Mapping[str, str] | None = None,
    agent: Document | None = None,
    **status: Any,
) -> MemberCluster:
    """A cluster as a view."""
    stated = {key: {"value": value} for key, value in (properties or {}).items()}
    document = a_member_document(name, labels, spec={"taints": [dict(taint) for taint in taints]})
    document["status"] = {"agentStatus": [an_agent() if agent is None else agent], "properties": stated, **status}
    return MemberCluster.from_document(document)


def leaving(cluster: MemberCluster) -> MemberCluster:
    """The cluster with a deletion timestamp."""
    return msgspec.structs.replace(cluster, metadata=msgspec.structs.replace(cluster.metadata, deletion_timestamp=at()))


def a_placement(policy: Document | None = None, name: str = "web", **changes: Any) -> Placement:
    """A ClusterResourcePlacement."""
    return Placement.from_document(a_placement_document(policy, name, **changes))


def a_placement_document(policy: Document | None = None, name: str = "web", **changes: Any) -> Document:
    """A ClusterResourcePlacement's manifest."""
    default: Document = {
        "apiVersion": "placement.kubernetes-fleet.io/v1beta1",
        "kind": "ClusterResourcePlacement",
        "metadata": {"name": name, "generation": 1},
        "spec": {"resourceSelectors": [], **({} if policy is None else {"policy": policy})},
    }
    return merged(default, changes)


def a_snapshot(policy: Document | None = None, name: str = CURRENT, **changes: Any) -> PolicySnapshot:
    """A placement's policy as it stands."""
    annotations = {PLACEMENT_GENERATION: "1"}
    if policy and policy.get("numberOfClusters") is not None:
        annotations[NUMBER_OF_CLUSTERS] = str(policy["numberOfClusters"])
    default: Document = {
        "apiVersion": "placement.kubernetes-fleet.io/v1beta1",
        "kind": "ClusterSchedulingPolicySnapshot",
        "metadata": {"name": name, "annotations": annotations, "labels": {PARENT_LABEL: name.rpartition("-")[0]}},
        "spec": {} if policy is None else {"policy": policy},
    }
    return PolicySnapshot.from_document(merged(default, changes))


def a_binding(
    cluster: str,
    state: str = "Bound",
    snapshot: str = CURRENT,
    *,
    previous: str | None = None,
    score: tuple[int, int] | None = (0, 0),
    name: str | None = None,
    conditions: Sequence[Document] = (),
    **metadata: Any,
) -> ResourceBinding:
    """A binding; `score` is (topology spread, affinity)."""
    decision: Document = {"clusterName": cluster, "selected": True, "reason": "chosen before"}
    if score is not None:
        decision["clusterScore"] = {"priorityScore": score[0], "affinityScore": score[1]}
    return ResourceBinding.from_document(
        {
            "metadata": {
                "name": name or f"web-{cluster}",
                "annotations": {PREVIOUS_STATE: previous} if previous else {},
                "finalizers": [BINDING_CLEANUP],
                **metadata,
            },
            "spec": {
                "state": state,
                "targetCluster": cluster,
                "schedulingPolicySnapshotName": snapshot,
                "clusterDecision": decision,
            },
            "status": {"conditions": list(conditions)},
        }
    )


AVAILABLE = {"type": "Available", "status": "True", "reason": "AllWorkAreAvailable", "observedGeneration": 0}


def applied(bindings: Iterable[ResourceBinding], cycle: CycleResult, snapshot: str = CURRENT) -> list[ResourceBinding]:
    """The bindings after a cycle was written."""
    by_name = {one.name: one for one in bindings if one.name not in cycle.finalized}
    for pick in cycle.creations:
        name = f"web-{pick.cluster}"
        while name in by_name:
            name += "x"
        fresh = a_binding(pick.cluster, "Scheduled", snapshot, name=name)
        by_name[name] = _with_spec(fresh, cluster_decision=pick.decision)
    for change in cycle.changes:
        old = by_name[change.binding]
        new = _with_spec(
            old,
            state=change.state or old.spec.state,
            scheduling_policy_snapshot_name=change.snapshot,
            cluster_decision=change.decision,
        )
        by_name[change.binding] = _annotated(new, {}) if change.drops_previous_state else new
    for name in cycle.given_up:
        old = by_name[name]
        by_name[name] = _annotated(_with_spec(old, state="Unscheduled"), {PREVIOUS_STATE: old.spec.state})
    return sorted(by_name.values(), key=lambda one: one.name)


def _with_spec(binding: ResourceBinding, **changes: Any) -> ResourceBinding:
    return msgspec.structs.replace(binding, spec=msgspec.structs.replace(binding.spec, **changes))


def _annotated(binding: ResourceBinding, annotations: dict[str, str]) -> ResourceBinding:
    return msgspec.structs.replace(binding, metadata=msgspec.structs.replace(binding.metadata, annotations=annotations))


def writes_bindings(cycle: CycleResult) -> bool:
    """True when a cycle writes any binding."""
    return bool(cycle.finalized or cycle.creations or cycle.changes or cycle.given_up)
