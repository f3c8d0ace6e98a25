"""Objects that carry out a placement: snapshots of its policy and resources, and bindings; evictions and budgets.

A ResourcePlacement has those of the namespaced kinds (`of(placement kind)`), with the same content.
"""

from typing import Any, Literal, NamedTuple

import msgspec

from gardenbus.common.api.fleet.overrides import AppliedOverrides, NamespacedName
from gardenbus.common.api.fleet.placements import CLUSTER_KIND, PlacementPolicy, placement_kind
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.views import ConditionView, ObjectView, TypedView

IS_LATEST_LABEL = "kubernetes-fleet.io/is-latest-snapshot"
POLICY_INDEX_LABEL = "kubernetes-fleet.io/policy-index"
RESOURCE_INDEX_LABEL = "kubernetes-fleet.io/resource-index"
NUMBER_OF_CLUSTERS = "kubernetes-fleet.io/number-of-clusters"
PLACEMENT_GENERATION = "kubernetes-fleet.io/CRP-generation"
GROUP_HASH = "kubernetes-fleet.io/resource-hash"
NUMBER_OF_SNAPSHOTS = "kubernetes-fleet.io/number-of-resource-snapshots"
SUBINDEX = "kubernetes-fleet.io/subindex-of-resource-snapshot"
PREVIOUS_STATE = "kubernetes-fleet.io/previous-binding-state"
BINDING_CLEANUP = "kubernetes-fleet.io/scheduler-binding-cleanup"
"""Finalizer of the scheduler on each binding."""
WORK_CLEANUP = "kubernetes-fleet.io/work-cleanup"
"""Finalizer of the work generator on a Bound binding until its Works are gone."""
PARENT_BINDING_LABEL = "kubernetes-fleet.io/parent-resource-binding"
PARENT_SNAPSHOT_INDEX_LABEL = "kubernetes-fleet.io/parent-resource-snapshot-index"

SCHEDULED = "Scheduled"
BOUND = "Bound"
UNSCHEDULED = "Unscheduled"
BindingState = Literal["Scheduled", "Bound", "Unscheduled"]


class PartKinds(NamedTuple):
    """The kinds that belong to a placement's kind, as manifests write them."""

    policy_snapshot: str
    resource_snapshot: str
    binding: str


_OF_CLUSTER = PartKinds("ClusterSchedulingPolicySnapshot", "ClusterResourceSnapshot", "ClusterResourceBinding")
_OF_NAMESPACE = PartKinds("SchedulingPolicySnapshot", "ResourceSnapshot", "ResourceBinding")


def of(placement_kind: str) -> PartKinds:
    """Kinds of a placement's parts; `placement_kind` as in `ObjectKey.kind`."""
    return _OF_CLUSTER if placement_kind == CLUSTER_KIND else _OF_NAMESPACE


class ClusterScore(TypedView, frozen=True, omit_defaults=False):
    """Scores of a cluster."""

    affinity_score: int = 0
    """Score of the preferred terms."""

    priority_score: int = 0
    """Score of the topology spread (KubeFleet's TopologySpreadScore)."""


class ClusterDecision(TypedView, frozen=True):
    """Decision about a cluster."""

    cluster_name: str = ""
    """Name of the cluster."""

    selected: bool = False
    """True when the cluster is selected."""

    cluster_score: ClusterScore | None = None
    """Scores; none where nothing was ranked."""

    reason: str = ""
    """Reason of the decision."""


class PolicySnapshotSpec(TypedView, frozen=True):
    """An immutable policy."""

    policy: PlacementPolicy | None = None
    """Policy for choosing clusters."""

    policy_hash: str = ""
    """SHA-256 of the policy without the number of clusters, base64."""


class PolicySnapshotStatus(TypedView, frozen=True):
    """Decisions of a policy."""

    observed_crp_generation: int = msgspec.field(default=0, name="observedCRPGeneration")
    """Generation of the placement that the decision is for."""

    conditions: tuple[ConditionView, ...] = ()
    """`Scheduled`."""

    target_clusters: tuple[ClusterDecision, ...] = ()
    """Decisions, cluster by cluster."""


class PolicySnapshot(ObjectView, frozen=True):
    """Snapshot of a placement's policy."""

    spec: PolicySnapshotSpec = PolicySnapshotSpec()
    status: PolicySnapshotStatus = PolicySnapshotStatus()


class ResourceSnapshotSpec(TypedView, frozen=True):
    """Immutable resources."""

    selected_resources: tuple[dict[str, Any], ...] = ()
    """Whole manifests, without fields that belong to their origin."""


class ResourceSnapshot(ObjectView, frozen=True):
    """Snapshot of the resources that a placement selects, or one part of it: at most 800 KiB."""

    spec: ResourceSnapshotSpec = ResourceSnapshotSpec()


class PartCondition(ConditionView, frozen=True):
    """A condition that holds for one generation of its object, and whose age counts."""

    observed_generation: int = 0
    """Generation that it was observed for; for any other it is outdated."""

    last_transition_time: str = ""
    """Time of the last change of status."""

    def is_fresh(self, status: str, generation: int) -> bool:
        """True for this status and this generation of its object."""
        return self.status == status and self.observed_generation == generation


class BindingSpec(TypedView, frozen=True):
    """Binding of a placement to a cluster."""

    state: str = ""
    """`Scheduled`, `Bound` or `Unscheduled`."""

    target_cluster: str = ""
    """Name of the cluster."""

    scheduling_policy_snapshot_name: str = ""
    """Policy snapshot of the decision."""

    resource_snapshot_name: str = ""
    """Resource snapshot for the cluster; "" until it is Bound."""

    cluster_decision: ClusterDecision = ClusterDecision()
    """Decision that selected the cluster."""

    apply_strategy: dict[str, object] | None = None
    """The placement's strategy for applying manifests."""

    cluster_resource_override_snapshots: tuple[str, ...] = ()
    """Snapshots of ClusterResourceOverrides that change the resources for the cluster."""

    resource_override_snapshots: tuple[NamespacedName, ...] = ()
    """Snapshots of ResourceOverrides that change the resources for the cluster."""

    @property
    def overrides(self) -> AppliedOverrides:
        """Both."""
        return AppliedOverrides(self.cluster_resource_override_snapshots, self.resource_override_snapshots)


class BindingStatus(TypedView, frozen=True):
    """Progress of a binding."""

    conditions: tuple[PartCondition, ...] = ()
    """`RolloutStarted`, `Overridden`, `WorkSynchronized`, `Applied`, `Available`."""


class ResourceBinding(ObjectView, frozen=True):
    """A placement's binding to a cluster."""

    spec: BindingSpec = BindingSpec()
    status: BindingStatus = BindingStatus()


def placement_key(kind: str, namespace: str, parent: str) -> ObjectKey:
    """Placement of a part of `kind` (an `ObjectKey.kind`), by its label `PARENT_LABEL`."""
    return ObjectKey(CLUSTER_KIND if kind.startswith("cluster") else "resourceplacement", namespace, parent)


def binding_kind(namespace: str) -> str:
    """Kind of a binding by its namespace, as in `ObjectKey.kind`: with one it is a ResourcePlacement's."""
    return of(placement_kind(namespace)).binding.lower()


class EvictionSpec(TypedView, frozen=True):
    """Placement to evict from a cluster, once."""

    placement_name: str = ""
    """The ClusterResourcePlacement."""

    cluster_name: str = ""
    """The cluster."""


class Eviction(ObjectView, frozen=True):
    """A ClusterResourcePlacementEviction."""

    spec: EvictionSpec = EvictionSpec()
    status: BindingStatus = BindingStatus()


class Envelope(ObjectView, frozen=True):
    """A ResourceEnvelope or ClusterResourceEnvelope: what is carried as its content."""

    data: dict[str, dict[str, Any]] = {}
    """Whole manifests, by names of one's own."""


class DisruptionBudgetSpec(TypedView, frozen=True):
    """Limit of concurrent evictions; exactly one of the two."""

    max_unavailable: int | str | None = None
    """A number, or percent (rounded up)."""

    min_available: int | str | None = None
    """A number, or percent (rounded up)."""


class DisruptionBudget(ObjectView, frozen=True):
    """A ClusterResourcePlacementDisruptionBudget: for the placement of the same name."""

    spec: DisruptionBudgetSpec = DisruptionBudgetSpec()
