"""Placements (ClusterResourcePlacement and ResourcePlacement): selected resources, and the policy for clusters.

Source of the rules: KubeFleet's `apis/placement/v1beta1`.
"""

from typing import Any, Literal

from msgspec import field

from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.views import ObjectView, TypedView

CLUSTER_KIND = "clusterresourceplacement"
NAMESPACED_KIND = "resourceplacement"
KINDS = (CLUSTER_KIND, NAMESPACED_KIND)

PICK_ALL = "PickAll"
PICK_N = "PickN"
PICK_FIXED = "PickFixed"

PARENT_LABEL = "kubernetes-fleet.io/parent-CRP"
"""On snapshots, bindings and Works: the placement's name."""

PLACEMENT_CLEANUP = "kubernetes-fleet.io/crp-cleanup"
"""Finalizer of the snapshot controller."""

SCHEDULER_CLEANUP = "kubernetes-fleet.io/scheduler-cleanup"
"""Finalizer of the placement scheduler."""


class PropertyRequirement(TypedView, frozen=True):
    """One comparison with a property of a cluster."""

    name: str = ""
    """The property, or `resources.kubernetes-fleet.io/<total|allocatable|available>-<resource>`."""

    operator: str = ""
    """`Gt`, `Ge`, `Lt`, `Le`, `Eq` or `Ne`."""

    values: tuple[str, ...] = ()
    """Exactly one quantity."""


class PropertySelector(TypedView, frozen=True):
    """Comparisons that must all hold."""

    match_expressions: tuple[PropertyRequirement, ...] = ()
    """The comparisons."""


class PropertySorter(TypedView, frozen=True):
    """Property that ranks clusters."""

    name: str = ""
    """The property."""

    sort_order: str = ""
    """`Descending` (the largest first) or `Ascending`."""


class ClusterSelectorTerm(TypedView, frozen=True):
    """Terms on a cluster; both selectors apply where both are given."""

    label_selector: dict[str, Any] | None = None
    """Selector of labels."""

    property_selector: PropertySelector | None = None
    """Selector of properties."""

    property_sorter: PropertySorter | None = None
    """In a preference: the part of the weight that a cluster gets."""


class RequiredTerms(TypedView, frozen=True):
    """Required terms, one of which must match."""

    cluster_selector_terms: tuple[ClusterSelectorTerm, ...] = ()
    """At most ten."""


class PreferredTerm(TypedView, frozen=True):
    """A preferred term."""

    weight: int = 0
    """Weight from -100 to 100."""

    preference: ClusterSelectorTerm = ClusterSelectorTerm()
    """Preferred properties and labels."""


class ClusterAffinityTerms(TypedView, frozen=True):
    """Affinity to clusters."""

    required: RequiredTerms | None = field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    """Required for selection."""

    required_always: RequiredTerms | None = field(default=None, name="requiredDuringSchedulingRequiredDuringExecution")
    """Required always: a cluster that stops matching is replaced."""

    preferred: tuple[PreferredTerm, ...] = field(default=(), name="preferredDuringSchedulingIgnoredDuringExecution")
    """Preferred for ranking."""


class PlacementAffinity(TypedView, frozen=True):
    """Affinity of a policy."""

    cluster_affinity: ClusterAffinityTerms = ClusterAffinityTerms()


class TopologySpreadConstraint(TypedView, frozen=True):
    """Spread of the selected clusters over the values of a label."""

    topology_key: str = ""
    """The label."""

    max_skew: int = 1
    """Largest difference between the fullest and the emptiest value."""

    when_unsatisfiable: str = "DoNotSchedule"
    """`DoNotSchedule` or `ScheduleAnyway`."""

    @property
    def is_hard(self) -> bool:
        """True when it excludes clusters."""
        return self.when_unsatisfiable != "ScheduleAnyway"


class ClusterToleration(TypedView, frozen=True):
    """Tolerations of a policy."""

    key: str = ""
    """The taint's key; "" with `Exists` for any."""

    operator: str = "Equal"
    """`Equal` or `Exists`."""

    value: str = ""
    """For `Equal`."""

    effect: str = ""
    """"" for any."""


PlacementType = Literal["PickAll", "PickN", "PickFixed"]


class PlacementPolicy(TypedView, frozen=True):
    """Policy for choosing clusters."""

    placement_type: PlacementType = PICK_ALL
    """`PickAll`, `PickN` or `PickFixed`."""

    cluster_names: tuple[str, ...] = ()
    """Cluster names of `PickFixed`."""

    number_of_clusters: int | None = None
    """Number of clusters of `PickN`."""

    affinity: PlacementAffinity | None = None
    """Affinity to clusters."""

    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    """Spread of `PickN`."""

    tolerations: tuple[ClusterToleration, ...] = ()
    """Tolerations of a policy."""

    @property
    def cluster_affinity(self) -> ClusterAffinityTerms:
        """Affinity to clusters; an empty one where none is stated."""
        return self.affinity.cluster_affinity if self.affinity else ClusterAffinityTerms()


class ResourceSelector(TypedView, frozen=True):
    """Selector of resources."""

    group: str = ""
    """API group; "" is the core group."""

    version: str = ""
    """API version."""

    kind: str = ""
    """Kind."""

    name: str = ""
    """Name; "" for all that match the selector."""

    label_selector: dict[str, Any] | None = None
    """Selector of labels."""

    selection_scope: str = "NamespaceWithResources"
    """For a Namespace: with all of its objects, or `NamespaceOnly`."""


class RollingUpdate(TypedView, frozen=True):
    """Speed of a rollout."""

    max_unavailable: int | str = "25%"
    """Clusters that may be without the resources at once: a number, or percent (rounded up)."""

    max_surge: int | str = "25%"
    """Clusters beyond the wanted number that may have the resources."""

    unavailable_period_seconds: int = 60
    """Assumed duration for resources whose availability cannot be observed."""


class DeleteStrategy(TypedView, frozen=True):
    """Effect of the deletion of a placement on the resources that it has placed."""

    propagation_policy: str = "Delete"
    """`Delete`, or `Abandon`: they stay in the clusters, and nothing of the fleet manages them any more."""


class PlacementStrategy(TypedView, frozen=True):
    """Rollout strategy."""

    type: str = "RollingUpdate"
    """`RollingUpdate` or `External`."""

    rolling_update: RollingUpdate = RollingUpdate()
    """Parameters of `RollingUpdate`."""

    apply_strategy: dict[str, object] | None = None
    """Strategy of agents for applying manifests, passed on unchanged."""

    delete_strategy: DeleteStrategy = DeleteStrategy()
    """Strategy for the deletion of the placement."""


class PlacementSpec(TypedView, frozen=True):
    """Spec of a placement."""

    resource_selectors: tuple[ResourceSelector, ...] = ()
    """Selected resources."""

    policy: PlacementPolicy | None = None
    """Policy; all clusters without one."""

    strategy: PlacementStrategy = PlacementStrategy()
    """Rollout strategy."""

    revision_history_limit: int = 10
    """Snapshots of each kind that are kept."""


class Placement(ObjectView, frozen=True):
    """A ClusterResourcePlacement, or a ResourcePlacement of one namespace."""

    kind: str = "ClusterResourcePlacement"
    spec: PlacementSpec = PlacementSpec()

    @property
    def key(self) -> ObjectKey:
        """Key of the object."""
        return ObjectKey(self.kind.lower(), self.metadata.namespace, self.metadata.name)

    @property
    def is_namespaced(self) -> bool:
        """True for a ResourcePlacement."""
        return self.kind.lower() == NAMESPACED_KIND

    @property
    def policy(self) -> PlacementPolicy:
        """Policy; all clusters without one."""
        return self.spec.policy or PlacementPolicy()


def placement_kind(namespace: str) -> str:
    """Kind of a placement by its namespace, as in `ObjectKey.kind`: with one it is a ResourcePlacement."""
    return NAMESPACED_KIND if namespace else CLUSTER_KIND
