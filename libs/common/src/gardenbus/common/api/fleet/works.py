"""Works: the manifests of a binding for one cluster, and their status by its agent.

A Work is created with the finalizer `WORK_CLEANUP`. One that is being deleted stays until its cluster's agent has
removed the manifests and reports so (`is_cleaned_up`), or until the cluster itself is gone.

Source: KubeFleet's `apis/placement/v1beta1/work_types.go` and `pkg/controllers/workapplier`.
"""

from typing import Any

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import with_metadata
from gardenbus.common.api.fleet.placement_parts import PartCondition
from gardenbus.common.api.views import ObjectView, TypedView

WORK_KIND = "work"
"""As in `ObjectKey.kind`."""

PARENT_SNAPSHOT_NAME = "kubernetes-fleet.io/parent-resource-snapshot-name"
"""Annotation of a Work: the resource snapshot (the first part of its group) that it was made from."""

APPLIED = "Applied"
"""Condition: the manifests are in the cluster."""

ABANDON = "placement.gardenbus.io/abandon"
"""Annotation, "true" on a binding or Work that is deleted: its manifests stay in the cluster, and belong to no Work."""

AVAILABLE = "Available"
"""Condition: what the manifests describe works."""

DIFF_REPORTED = "DiffReported"
"""Condition in place of the two others, where an agent only compares."""

PENDING_REASONS = frozenset(
    {"OverriddenPending", "WorkNotSynchronizedYet", "ApplyPending", "ResourceNotAvailableYet"},
)
"""Reasons of a condition that is False because it is in progress: nothing has failed."""

UNTRACKABLE_REASONS = frozenset({"NotAllWorkAreAvailabilityTrackable", "SomeManifestsAreNotAvailabilityTrackable"})
"""Reasons of `Available` that is True because availability cannot be observed."""

CLEANED_UP = "ManifestsDeleted"
"""Reason of `Applied`, False, on a Work that is being deleted: none of its manifests is in the cluster any more."""


class ManifestIdentifier(TypedView, frozen=True):
    """Identity of a manifest of a Work."""

    ordinal: int = 0
    """Its place in the Work, from 0."""

    group: str = ""
    """API group; "" is the core group."""

    version: str = ""
    """API version."""

    kind: str = ""
    """Its kind."""

    namespace: str = ""
    """Its namespace; "" when it has none."""

    name: str = ""
    """Its name."""


class ManifestCondition(TypedView, frozen=True):
    """Status of one manifest of a Work."""

    identifier: ManifestIdentifier = ManifestIdentifier()
    """The manifest."""

    conditions: tuple[PartCondition, ...] = ()
    """`Applied` and `Available` of this manifest."""

    drift_details: dict[str, Any] | None = None
    """Fields that somebody has changed in the cluster."""

    diff_details: dict[str, Any] | None = None
    """Fields that differ from those of an object that was there before, or is only compared."""


class Workload(TypedView, frozen=True):
    """Content of a Work."""

    manifests: tuple[dict[str, Any], ...] = ()
    """Whole manifests."""


class WorkSpec(TypedView, frozen=True):
    """Spec of a Work."""

    workload: Workload = Workload()
    """The manifests."""

    apply_strategy: dict[str, Any] | None = None
    """Strategy of the agent for applying manifests."""


class WorkStatus(TypedView, frozen=True):
    """Status of a Work by the cluster's agent."""

    conditions: tuple[PartCondition, ...] = ()
    """`Applied` and `Available`, or `DiffReported`, each with the observed generation of the Work."""

    manifest_conditions: tuple[ManifestCondition, ...] = ()
    """The same, manifest by manifest."""


class Work(ObjectView, frozen=True):
    """Manifests of one part of a resource snapshot, for the cluster of its namespace."""

    spec: WorkSpec = WorkSpec()
    status: WorkStatus = WorkStatus()

    @property
    def is_cleaned_up(self) -> bool:
        """True when it is being deleted, and its agent reports that nothing of it is left."""
        return self.is_deleting and any(
            (each.type, each.status, each.reason) == (APPLIED, "False", CLEANED_UP) for each in self.status.conditions
        )


def abandoned(document: Document) -> Document:
    """Return a Work, or a binding, that leaves its manifests in the cluster when it is deleted."""
    annotations = section(document, "metadata", "annotations")
    return with_metadata(document, "annotations", {**annotations, ABANDON: "true"})


def is_abandoned(document: Document) -> bool:
    """Report whether a Work, or a binding, leaves its manifests in the cluster when it is deleted."""
    return section(document, "metadata", "annotations").get(ABANDON) == "true"
