"""Placements: which resources go to which clusters, decided as a whole. ClusterResourcePlacement and ResourcePlacement.

Source of the rules: KubeFleet's `apis/placement/v1beta1`.
"""

from typing import Any, Literal

from gardenbus.common.resources.keys import ObjectKey
from gardenbus.common.resources.views import ObjectView, View

CLUSTER_KIND = "clusterresourceplacement"
NAMESPACED_KIND = "resourceplacement"
KINDS = (CLUSTER_KIND, NAMESPACED_KIND)

PICK_ALL = "PickAll"
PICK_N = "PickN"
PICK_FIXED = "PickFixed"

PARENT_LABEL = "kubernetes-fleet.io/parent-CRP"
"""On snapshots, bindings and Works: the placement's name."""

PLACEMENT_CLEANUP = "kubernetes-fleet.io/crp-cleanup"
"""The finalizer of whoever keeps a placement's snapshots."""

SCHEDULER_CLEANUP = "kubernetes-fleet.io/scheduler-cleanup"
"""The finalizer of the placement scheduler."""


class PropertyRequirement(View, frozen=True):
    """One comparison with a property of a cluster."""

    name: str = ""
    """The property, or `resources.kubernetes-fleet.io/<total|allocatable|available>-<resource>`."""

    operator: str = ""
    """`Gt`, `Ge`, `Lt`, `Le`, `Eq` or `Ne`."""

    values: tuple[str, ...] = ()
    """Exactly one quantity."""


class PropertySelector(View, frozen=True):
    """Comparisons that must all hold."""

    match_expressions: tuple[PropertyRequirement, ...] = ()
    """The comparisons."""


class PropertySorter(View, frozen=True):
    """By which property clusters are ranked."""

    name: str = ""
    """The property."""

    sort_order: str = ""
    """`Descending` (the largest first) or `Ascending`."""


class ClusterSelectorTerm(View, frozen=True):
    """What a cluster must have; both parts hold where both are given."""

    label_selector: dict[str, Any] | None = None
    """On its labels."""

    property_selector: PropertySelector | None = None
    """On its properties."""

    property_sorter: PropertySorter | None = None
    """In a preference: how much of the weight it gets."""


class RequiredTerms(View, frozen=True):
    """What is required of a cluster: one of the terms."""

    cluster_selector_terms: tuple[ClusterSelectorTerm, ...] = ()
    """At most ten."""


class PreferredTerm(View, frozen=True):
    """What is liked in a cluster."""

    weight: int = 0
    """From -100 to 100."""

    preference: ClusterSelectorTerm = ClusterSelectorTerm()
    """What is liked."""


class ClusterAffinity(View, frozen=True):
    """What clusters must and should be like."""

    required: RequiredTerms | None = None
    """When it is decided."""

    required_always: RequiredTerms | None = None
    """When it is decided, and ever after: a cluster that stops matching is replaced."""

    preferred: tuple[PreferredTerm, ...] = ()
    """For the ranking."""


class StatedAffinity(View, frozen=True):
    """What clusters must and should be like, as manifests write it."""

    cluster_affinity: "StatedClusterAffinity | None" = None


class StatedClusterAffinity(View, frozen=True):
    """What clusters must and should be like, under the names of manifests."""

    required_during_scheduling_ignored_during_execution: RequiredTerms | None = None
    """When it is decided."""

    required_during_scheduling_required_during_execution: RequiredTerms | None = None
    """When it is decided, and ever after: a cluster that stops matching is replaced."""

    preferred_during_scheduling_ignored_during_execution: tuple[PreferredTerm, ...] = ()
    """For the ranking."""


class TopologySpreadConstraint(View, frozen=True):
    """How evenly the chosen clusters spread over the values of a label."""

    topology_key: str = ""
    """The label."""

    max_skew: int = 1
    """How far the fullest value may be ahead of the emptiest."""

    when_unsatisfiable: str = "DoNotSchedule"
    """`DoNotSchedule` or `ScheduleAnyway`."""

    @property
    def is_hard(self) -> bool:
        """Whether it excludes clusters."""
        return self.when_unsatisfiable != "ScheduleAnyway"


class ClusterToleration(View, frozen=True):
    """Which taints are no obstacle."""

    key: str = ""
    """The taint's key; "" with `Exists` for any."""

    operator: str = "Equal"
    """`Equal` or `Exists`."""

    value: str = ""
    """For `Equal`."""

    effect: str = ""
    """"" for any."""


PlacementType = Literal["PickAll", "PickN", "PickFixed"]


class PlacementPolicy(View, frozen=True):
    """How clusters are chosen."""

    placement_type: PlacementType = PICK_ALL
    """`PickAll`, `PickN` or `PickFixed`."""

    cluster_names: tuple[str, ...] = ()
    """`PickFixed`: which."""

    number_of_clusters: int | None = None
    """`PickN`: how many."""

    affinity: StatedAffinity | None = None
    """What clusters must and should be like."""

    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    """`PickN`: how they spread."""

    tolerations: tuple[ClusterToleration, ...] = ()
    """Which taints are no obstacle."""

    @property
    def cluster_affinity(self) -> ClusterAffinity:
        """The affinity under shorter names; an empty one where none is stated."""
        stated = self.affinity.cluster_affinity if self.affinity else None
        if stated is None:
            return ClusterAffinity()
        return ClusterAffinity(
            stated.required_during_scheduling_ignored_during_execution,
            stated.required_during_scheduling_required_during_execution,
            stated.preferred_during_scheduling_ignored_during_execution,
        )


class ResourceSelector(View, frozen=True):
    """Which objects go along."""

    group: str = ""
    """Of the objects' apiVersion; "" is the core group."""

    version: str = ""
    """Of the objects' apiVersion."""

    kind: str = ""
    """Of the objects."""

    name: str = ""
    """One of them; "" for all that the selector finds."""

    label_selector: dict[str, Any] | None = None
    """On their labels."""

    selection_scope: str = "NamespaceWithResources"
    """Of a Namespace: with all in it, or `NamespaceOnly`."""


class RollingUpdate(View, frozen=True):
    """How fast changes go out."""

    max_unavailable: int | str = "25%"
    """How many clusters may be without at once: a number, or percent (rounded up)."""

    max_surge: int | str = "25%"
    """How many may have it beyond those wanted."""

    unavailable_period_seconds: int = 60
    """How long what cannot be observed is taken to need."""


class PlacementStrategy(View, frozen=True):
    """How changes reach the clusters."""

    type: str = "RollingUpdate"
    """`RollingUpdate` or `External`."""

    rolling_update: RollingUpdate = RollingUpdate()
    """How fast."""

    apply_strategy: dict[str, object] | None = None
    """How an agent applies: handed on as it is."""


class PlacementSpec(View, frozen=True):
    """What is to go where."""

    resource_selectors: tuple[ResourceSelector, ...] = ()
    """Which objects."""

    policy: PlacementPolicy | None = None
    """To which clusters; all, when nothing is said."""

    strategy: PlacementStrategy = PlacementStrategy()
    """How changes go out."""

    revision_history_limit: int = 10
    """How many snapshots of each sort are kept."""


class Placement(ObjectView, frozen=True):
    """A ClusterResourcePlacement, or a ResourcePlacement of one namespace."""

    kind: str = "ClusterResourcePlacement"
    spec: PlacementSpec = PlacementSpec()

    @property
    def key(self) -> ObjectKey:
        """Where it is stored."""
        return ObjectKey(self.kind.lower(), self.metadata.namespace, self.metadata.name)

    @property
    def is_namespaced(self) -> bool:
        """Whether it is a ResourcePlacement."""
        return self.kind.lower() == NAMESPACED_KIND

    @property
    def policy(self) -> PlacementPolicy:
        """How clusters are chosen: all of them, when nothing is said."""
        return self.spec.policy or PlacementPolicy()
