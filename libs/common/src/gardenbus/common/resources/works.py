"""Works: what one cluster is to hold on behalf of a binding, and what its agent says of it.

A Work is made with the finalizer `WORK_CLEANUP`. One that is being deleted stays until its cluster's agent has taken
the manifests off and says so (`is_cleaned_up`), or until the cluster itself is gone.

Source: KubeFleet's `apis/placement/v1beta1/work_types.go` and `pkg/controllers/workapplier`.
"""

from typing import Any

from gardenbus.common.resources.placement_parts import PartCondition
from gardenbus.common.resources.views import ObjectView, View

WORK_KIND = "work"
"""As in `ObjectKey.kind`."""

PARENT_SNAPSHOT_NAME = "kubernetes-fleet.io/parent-resource-snapshot-name"
"""Annotation of a Work: the resource snapshot (the first part of its group) that it was made from."""

APPLIED = "Applied"
"""Condition: the manifests are in the cluster."""

AVAILABLE = "Available"
"""Condition: what the manifests describe works."""

DIFF_REPORTED = "DiffReported"
"""Condition in place of the two others, where an agent only compares."""

PENDING_REASONS = frozenset(
    {"OverriddenPending", "WorkNotSynchronizedYet", "ApplyPending", "ResourceNotAvailableYet"},
)
"""Reasons of a condition that is False because something is still under way: nothing has failed."""

UNTRACKABLE_REASONS = frozenset({"NotAllWorkAreAvailabilityTrackable", "SomeManifestsAreNotAvailabilityTrackable"})
"""Reasons of `Available` that is True because nobody can tell whether the manifests work."""

CLEANED_UP = "ManifestsDeleted"
"""Reason of `Applied`, False, on a Work that is being deleted: none of its manifests is in the cluster any more."""


class ManifestIdentifier(View, frozen=True):
    """Which manifest of a Work."""

    ordinal: int = 0
    """Its place in the Work, from 0."""

    group: str = ""
    """Of its apiVersion; "" is the core group."""

    version: str = ""
    """Of its apiVersion."""

    kind: str = ""
    """Its kind."""

    namespace: str = ""
    """Its namespace; "" when it has none."""

    name: str = ""
    """Its name."""


class ManifestCondition(View, frozen=True):
    """How one manifest of a Work is."""

    identifier: ManifestIdentifier = ManifestIdentifier()
    """Which."""

    conditions: tuple[PartCondition, ...] = ()
    """`Applied` and `Available` of this manifest."""


class Workload(View, frozen=True):
    """What a Work brings."""

    manifests: tuple[dict[str, Any], ...] = ()
    """The objects, whole."""


class WorkSpec(View, frozen=True):
    """What a cluster is to hold."""

    workload: Workload = Workload()
    """The manifests."""

    apply_strategy: dict[str, Any] | None = None
    """How an agent applies them."""


class WorkStatus(View, frozen=True):
    """What the cluster's agent says."""

    conditions: tuple[PartCondition, ...] = ()
    """`Applied` and `Available`, or `DiffReported`, each with the generation of the Work that it speaks of."""

    manifest_conditions: tuple[ManifestCondition, ...] = ()
    """The same, manifest by manifest."""


class Work(ObjectView, frozen=True):
    """The manifests of one part of a resource snapshot, for one cluster: its namespace says which."""

    spec: WorkSpec = WorkSpec()
    status: WorkStatus = WorkStatus()

    @property
    def is_cleaned_up(self) -> bool:
        """Whether it is being deleted, and its agent says that nothing of it is left."""
        return self.is_deleting and any(
            (each.type, each.status, each.reason) == (APPLIED, "False", CLEANED_UP) for each in self.status.conditions
        )
