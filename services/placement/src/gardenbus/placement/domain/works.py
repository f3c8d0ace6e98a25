"""Works of a binding: their documents, and the conditions that they give the binding.

Each non-empty part of a resource snapshot becomes one Work in the namespace of the cluster, under a name that is the
same for every snapshot, so that a new version is an update.
Source: KubeFleet's `pkg/controllers/workgenerator/controller.go`.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from typing import Any

import msgspec

from gardenbus.common.api.conditions import FALSE, TRUE, conditions_of
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.fleet.apply_strategies import only_compares
from gardenbus.common.api.fleet.envelopes import labels_of, manifests_in, reference, split, suffix_of
from gardenbus.common.api.fleet.member_clusters import namespace_of
from gardenbus.common.api.fleet.overrides import AppliedOverrides, OverrideSnapshot
from gardenbus.common.api.fleet.placement_parts import (
    PARENT_BINDING_LABEL,
    PARENT_SNAPSHOT_INDEX_LABEL,
    RESOURCE_INDEX_LABEL,
    SUBINDEX,
    WORK_CLEANUP,
    BindingSpec,
)
from gardenbus.common.api.fleet.placements import PARENT_LABEL
from gardenbus.common.api.fleet.works import (
    APPLIED,
    AVAILABLE,
    DIFF_REPORTED,
    PARENT_SNAPSHOT_NAME,
    PENDING_REASONS,
    UNTRACKABLE_REASONS,
    WORK_KIND,
    ManifestCondition,
    Work,
)
from gardenbus.common.api.kinds import KINDS
from gardenbus.common.api.owners import controller_reference
from gardenbus.common.api.views import condition_in
from gardenbus.fleet.availability import OVERRIDDEN, WORK_SYNCHRONIZED, with_condition
from gardenbus.placement.domain.bindings import applied_overrides
from gardenbus.placement.domain.overrides import TargetCluster, overridden

PARENT_NAMESPACE_LABEL = "kubernetes-fleet.io/parent-namespace"
"""Label of a ResourcePlacement's Works: the namespace of its bindings."""

OVERRIDES_HASH = "kubernetes-fleet.io/parent-resource-override-snapshot-hash"
"""Annotation of a Work: hash of the names of the override snapshots that it was made with; absent without any."""

FAILED_PLACEMENTS = "failedPlacements"
DRIFTED_PLACEMENTS, DIFFED_PLACEMENTS = "driftedPlacements", "diffedPlacements"
_REPORTED = (FAILED_PLACEMENTS, DRIFTED_PLACEMENTS, DIFFED_PLACEMENTS)
FAILED_MAX = 100
"""Maximum number of resources in each list of a binding's status."""

_OWN_CONDITIONS = frozenset({OVERRIDDEN, WORK_SYNCHRONIZED, APPLIED, AVAILABLE, DIFF_REPORTED})

ConditionValues = tuple[str, str, str, str]
"""Type, status, reason and message of a condition."""


class ObstacleKind(Enum):
    """Reasons for which Works cannot be made."""

    WAITING = auto()
    """Others are in the way still."""

    FAILED = auto()
    """The resources cannot be made into Works."""

    OVERRIDE = auto()
    """An override cannot be carried out."""

    RESOURCES_GONE = auto()
    """The resource snapshot is there no more."""

    OVERRIDE_GONE = auto()
    """An override snapshot is there no more."""


def works_of(
    binding: Document,
    parts: Sequence[Document],
    overrides: Sequence[OverrideSnapshot] = (),
    cluster: TargetCluster | None = None,
) -> list[Document]:
    """Return the Works of a binding, from the parts of its resource snapshot: one a part, and one an envelope in it.

    Raises ValueError for an envelope with manifests that are out of place, and OverrideFailed.
    """
    works: list[Document] = []
    for part in parts:
        selected: list[Document] = section(part, "spec").get("selectedResources") or []
        plain, envelopes = split(overridden(selected, overrides, cluster) if cluster else selected)
        works.append(_work(binding, part, plain))
        works += [_work_of_envelope(binding, part, each) for each in envelopes]
    return [work for work in works if work["spec"]["workload"]["manifests"]]


def work_name(binding: Document, part: Document) -> str:
    """Return `<placement>-work` for the first part, `<placement>-<n>` for others; after `<namespace>.`, if any."""
    number = section(part, "metadata", "annotations").get(SUBINDEX)
    return f"{_stem(binding)}-{'work' if number is None else number}"


def _stem(binding: Document) -> str:
    metadata = section(binding, "metadata")
    placement = str(section(metadata, "labels").get(PARENT_LABEL) or "")
    namespace = str(metadata.get("namespace") or "")
    return f"{namespace}.{placement}" if namespace else placement


def renewed(present: Document, wanted: Document) -> Document:
    """Return a Work with all wanted fields; equal content when nothing differs."""
    metadata, new = section(present, "metadata"), section(wanted, "metadata")
    merged = {name: {**section(metadata, name), **section(new, name)} for name in ("labels", "annotations")}
    if OVERRIDES_HASH not in section(new, "annotations"):
        merged["annotations"].pop(OVERRIDES_HASH, None)
    return {**present, "metadata": {**metadata, **merged}, "spec": wanted["spec"]}


def is_made_from(work: Work, binding: BindingSpec) -> bool:
    """Report whether a Work was made from the resource snapshot and the override snapshots that a binding names."""
    annotations = work.metadata.annotations
    made_with = annotations.get(PARENT_SNAPSHOT_NAME), annotations.get(OVERRIDES_HASH, "")
    return made_with == (binding.resource_snapshot_name, overrides_hash(binding.overrides))


def overrides_hash(applied: AppliedOverrides) -> str:
    """Return the hash of the names of override snapshots; "" for none."""
    if not applied:
        return ""
    names = [*applied.cluster_scoped, "", *(f"{each.namespace}/{each.name}" for each in applied.namespaced)]
    return hashlib.sha256("\n".join(names).encode()).hexdigest()


def with_progress(binding: Document, works: Sequence[Work], now: str, *, written: bool) -> Document:
    """Return a binding with the conditions of its current Works; `written`: some were written just now."""
    generation = int(section(binding, "metadata").get("generation") or 1)
    if written:
        last = [_pending_condition(binding)]
    elif only_compares(binding):
        last = [_summary(works, DIFF_REPORTED, ("AllWorkDiffReported", "NotAllWorkHasDiffReported", "ApplyPending"))]
    else:
        last = _applied(works)
    values: list[ConditionValues] = [
        _overridden(binding),
        (WORK_SYNCHRONIZED, TRUE, "AllWorkSynced", "All Works are as the resources are."),
        *last,
    ]
    return _with_conditions(binding, values, generation, now, reported={} if written else _reported(works))


def with_obstacle(binding: Document, message: str, now: str, kind: ObstacleKind) -> Document:
    """Return a binding whose Works cannot be made."""
    generation = int(section(binding, "metadata").get("generation") or 1)
    values: list[ConditionValues] = [_overridden(binding)]
    if kind in (ObstacleKind.OVERRIDE, ObstacleKind.OVERRIDE_GONE):
        values = [(OVERRIDDEN, FALSE, "OverriddenFailed", message)]
    elif kind is ObstacleKind.WAITING:
        values.append((WORK_SYNCHRONIZED, FALSE, "WorkNotSynchronizedYet", message))
    else:
        values.append((WORK_SYNCHRONIZED, FALSE, "SyncWorkFailed", message))
    return _with_conditions(binding, values, generation, now, reported={})


def _overridden(binding: Document) -> ConditionValues:
    names = applied_overrides(binding)
    count = len(names.cluster_scoped) + len(names.namespaced)
    if count:
        return OVERRIDDEN, TRUE, "OverriddenSucceeded", f"The resources are as {count} override(s) want them."
    return OVERRIDDEN, TRUE, "NoOverrideSpecified", "There are no overrides."


def _work_of_envelope(binding: Document, part: Document, envelope: Document) -> Document:
    work = _work(binding, part, manifests_in(envelope))
    metadata = work["metadata"]
    metadata["name"] = f"{_stem(binding)}-{suffix_of(envelope)}"
    metadata["labels"] |= labels_of(envelope)
    return work


def _work(binding: Document, part: Document, manifests: Sequence[Document]) -> Document:
    metadata, spec = section(binding, "metadata"), section(binding, "spec")
    labels = {
        PARENT_BINDING_LABEL: metadata["name"],
        PARENT_LABEL: section(metadata, "labels").get(PARENT_LABEL) or "",
        PARENT_SNAPSHOT_INDEX_LABEL: section(part, "metadata", "labels").get(RESOURCE_INDEX_LABEL) or "",
    }
    if metadata.get("namespace"):
        labels[PARENT_NAMESPACE_LABEL] = metadata["namespace"]
    kind = KINDS[WORK_KIND]
    wanted: Document = {"workload": {"manifests": list(manifests)}}
    if spec.get("applyStrategy") is not None:
        wanted["applyStrategy"] = spec["applyStrategy"]
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {
            "name": work_name(binding, part),
            "namespace": namespace_of(str(spec.get("targetCluster") or "")),
            "labels": labels,
            "annotations": {PARENT_SNAPSHOT_NAME: spec.get("resourceSnapshotName") or "", **_hash_of(binding)},
            "finalizers": [WORK_CLEANUP],
            "ownerReferences": [controller_reference(binding)],
        },
        "spec": wanted,
    }


def _hash_of(binding: Document) -> dict[str, str]:
    found = overrides_hash(applied_overrides(binding))
    return {OVERRIDES_HASH: found} if found else {}


def _pending_condition(binding: Document) -> ConditionValues:
    kind = DIFF_REPORTED if only_compares(binding) else APPLIED
    return kind, FALSE, "ApplyPending", "The cluster's agent has not reported yet."


def _applied(works: Sequence[Work]) -> list[ConditionValues]:
    """Return `Applied`, and `Available` once that is True."""
    applied = _summary(works, APPLIED, ("AllWorkHasBeenApplied", "NotAllWorkHasBeenApplied", "ApplyPending"))
    if applied[1] != TRUE:
        return [applied]
    if not works:
        return [applied, (AVAILABLE, TRUE, "NoResourcesSelected", "There is nothing to bring.")]
    available = _summary(works, AVAILABLE, ("AllWorkAreAvailable", "NotAllWorkAreAvailable", "ResourceNotAvailableYet"))
    untracked = next((work.name for work in works if _is_untrackable(work)), None)
    if available[1] == TRUE and untracked is not None:
        message = f"The availability of {untracked} cannot be determined."
        available = (AVAILABLE, TRUE, "NotAllWorkAreAvailabilityTrackable", message)
    return [applied, available]


def _summary(works: Sequence[Work], kind: str, reasons: tuple[str, str, str]) -> ConditionValues:
    """Summarize a condition of Works; `reasons` for all True, some False, and some pending."""
    pending: str | None = None
    for work in works:
        condition = condition_in(work.status.conditions, kind)
        generation = work.metadata.generation
        if condition is not None and condition.is_fresh(TRUE, generation):
            continue
        if condition is None or not condition.is_fresh(FALSE, generation) or condition.reason in PENDING_REASONS:
            pending = pending or work.name
        else:
            return kind, FALSE, reasons[1], f"{work.name}: {condition.message or condition.reason}"
    if pending is not None:
        return kind, FALSE, reasons[2], f"{pending} is under way."
    return kind, TRUE, reasons[0], f"All {len(works)} Work(s) report it."


def _is_untrackable(work: Work) -> bool:
    return any(each.type == AVAILABLE and each.reason in UNTRACKABLE_REASONS for each in work.status.conditions)


def _reported(works: Sequence[Work]) -> dict[str, Sequence[Document]]:
    """Return the manifests that a binding's status lists, by field."""
    found = {
        FAILED_PLACEMENTS: _failed(works),
        DRIFTED_PLACEMENTS: _detailed(works, lambda manifest: manifest.drift_details),
        DIFFED_PLACEMENTS: _detailed(works, lambda manifest: manifest.diff_details),
    }
    return {field: manifests for field, manifests in found.items() if manifests}


def _detailed(works: Sequence[Work], details_of: Callable[[ManifestCondition], Document | None]) -> Sequence[Document]:
    """Return manifests with details of differences, as KubeFleet's `DriftedResourcePlacement`."""
    return [
        _named(work, manifest) | details
        for work in works
        for manifest in work.status.manifest_conditions
        if (details := details_of(manifest))
    ][:FAILED_MAX]


def _named(work: Work, manifest: ManifestCondition) -> Document:
    """Return the identity of a manifest, with the envelope that it came in."""
    identifier = msgspec.to_builtins(manifest.identifier)
    named = {name: value for name, value in identifier.items() if value and name != "ordinal"}
    envelope = reference(work.metadata.labels)
    return named | ({"envelope": envelope} if envelope else {})


def _failed(works: Sequence[Work]) -> Sequence[Document]:
    """Return the manifests that failed to be applied or to become available, with their condition."""
    found: list[Document] = []
    for work in works:
        for manifest in work.status.manifest_conditions:
            failed = next(
                (each for each in manifest.conditions if _has_failed(each.type, each.status, each.reason)), None
            )
            if failed is None:
                continue
            condition = {
                "type": failed.type,
                "status": failed.status,
                "reason": failed.reason,
                "message": failed.message,
                "lastTransitionTime": failed.last_transition_time,
            }
            found.append({**_named(work, manifest), "condition": condition})
    return found[:FAILED_MAX]


def _has_failed(kind: str, status: str, reason: str) -> bool:
    return kind in (APPLIED, AVAILABLE) and status == FALSE and reason not in PENDING_REASONS


def _with_conditions(
    binding: Document, values: Sequence[ConditionValues], generation: int, now: str, *, reported: Mapping[str, Any]
) -> Document:
    kinds = {kind for kind, *_ in values}
    old = conditions_of(binding)
    conditions = [each for each in old if each.get("type") not in _OWN_CONDITIONS or each.get("type") in kinds]
    for kind, status, reason, message in values:
        conditions = with_condition(conditions, kind, (status, reason, message), generation=generation, now=now)
    status = {name: value for name, value in section(binding, "status").items() if name not in _REPORTED}
    return {**binding, "status": {**status, "conditions": conditions, **reported}}
