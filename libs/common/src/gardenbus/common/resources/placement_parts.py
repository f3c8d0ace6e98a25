"""What a placement is carried out with: snapshots of its policy and resources, bindings, Works; evictions and budgets.

A ResourcePlacement's are of the namespaced kinds (`of(placement kind)`), with the same content.
"""

from typing import Any, Literal, NamedTuple

import msgspec

from gardenbus.common.resources.keys import ObjectKey
from gardenbus.common.resources.placements import CLUSTER_KIND, PlacementPolicy
from gardenbus.common.resources.views import ConditionView, ObjectView, View

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
    """The kinds of a placement's parts; `placement_kind` as in `ObjectKey.kind`."""
    return _OF_CLUSTER if placement_kind == CLUSTER_KIND else _OF_NAMESPACE


class ClusterScore(View, frozen=True, omit_defaults=False):
    """How well a cluster fits."""

    affinity_score: int = 0
    """By the preferred terms."""

    priority_score: int = 0
    """By the spread (KubeFleet's TopologySpreadScore)."""


class ClusterDecision(View, frozen=True):
    """What was decided about one cluster."""

    cluster_name: str = ""
    """Which."""

    selected: bool = False
    """Whether it was taken."""

    cluster_score: ClusterScore | None = None
    """How well it fits; none where nothing was ranked."""

    reason: str = ""
    """Why, or why not."""


class PolicySnapshotSpec(View, frozen=True):
    """A policy that does not change any more."""

    policy: PlacementPolicy | None = None
    """How clusters are chosen."""

    policy_hash: str = ""
    """SHA-256 of the policy without the number of clusters, base64."""


class PolicySnapshotStatus(View, frozen=True):
    """What was decided by it."""

    observed_crp_generation: int = msgspec.field(default=0, name="observedCRPGeneration")
    """Of the placement, when it was decided."""

    conditions: tuple[ConditionView, ...] = ()
    """`Scheduled`."""

    target_clusters: tuple[ClusterDecision, ...] = ()
    """What was decided, cluster by cluster."""


class PolicySnapshot(ObjectView, frozen=True):
    """A placement's policy as it stood."""

    spec: PolicySnapshotSpec = PolicySnapshotSpec()
    status: PolicySnapshotStatus = PolicySnapshotStatus()


class ResourceSnapshotSpec(View, frozen=True):
    """Resources that do not change any more."""

    selected_resources: tuple[dict[str, Any], ...] = ()
    """The objects, whole, without what belongs to the place that they were taken from."""


class ResourceSnapshot(ObjectView, frozen=True):
    """What a placement selects as it stood, or one part of it: at most 800 KiB."""

    spec: ResourceSnapshotSpec = ResourceSnapshotSpec()


class PartCondition(ConditionView, frozen=True):
    """A condition that holds for one generation of its object, and whose age counts."""

    observed_generation: int = 0
    """The generation that it speaks of; of any other it says nothing."""

    last_transition_time: str = ""
    """Since when its status is what it is."""

    def is_fresh(self, status: str, generation: int) -> bool:
        """Whether it has this status for this generation of its object."""
        return self.status == status and self.observed_generation == generation


class BindingSpec(View, frozen=True):
    """One cluster of a placement."""

    state: str = ""
    """`Scheduled`, `Bound` or `Unscheduled`."""

    target_cluster: str = ""
    """Which."""

    scheduling_policy_snapshot_name: str = ""
    """By which policy it was chosen."""

    resource_snapshot_name: str = ""
    """What it gets; "" until it is Bound."""

    cluster_decision: ClusterDecision = ClusterDecision()
    """Why it was chosen."""

    apply_strategy: dict[str, object] | None = None
    """How an agent applies: the placement's."""


class BindingStatus(View, frozen=True):
    """How far it is."""

    conditions: tuple[PartCondition, ...] = ()
    """`RolloutStarted`, `Overridden`, `WorkSynchronized`, `Applied`, `Available`."""


class ResourceBinding(ObjectView, frozen=True):
    """One placement on one cluster."""

    spec: BindingSpec = BindingSpec()
    status: BindingStatus = BindingStatus()


def placement_key(kind: str, namespace: str, parent: str) -> ObjectKey:
    """The placement that a part of `kind` (an `ObjectKey.kind`) belongs to, by its label `PARENT_LABEL`."""
    return ObjectKey(CLUSTER_KIND if kind.startswith("cluster") else "resourceplacement", namespace, parent)


class EvictionSpec(View, frozen=True):
    """Whom to take off which cluster, once."""

    placement_name: str = ""
    """The ClusterResourcePlacement."""

    cluster_name: str = ""
    """The cluster."""


class Eviction(ObjectView, frozen=True):
    """A ClusterResourcePlacementEviction."""

    spec: EvictionSpec = EvictionSpec()
    status: BindingStatus = BindingStatus()


class DisruptionBudgetSpec(View, frozen=True):
    """How much evictions may take at once; exactly one of the two."""

    max_unavailable: int | str | None = None
    """A number, or percent (rounded up)."""

    min_available: int | str | None = None
    """A number, or percent (rounded up)."""


class DisruptionBudget(ObjectView, frozen=True):
    """A ClusterResourcePlacementDisruptionBudget: of the placement that is called as it is."""

    spec: DisruptionBudgetSpec = DisruptionBudgetSpec()
