"""Status of a Work, from the results of its manifests.

Source: KubeFleet's `pkg/controllers/workapplier` (conditions, availability by kind).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from gardenbus.agent.domain.documents import mappings
from gardenbus.common.api.conditions import conditions_of, get_condition, observed_condition
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.fleet.apply_strategies import only_compares
from gardenbus.common.api.fleet.works import APPLIED, AVAILABLE, CLEANED_UP, DIFF_REPORTED
from gardenbus.memberagent.domain.differences import Difference

Tracking = Literal["data", "started", "unknown"]

_DATA = frozenset(
    {
        "Namespace",
        "ConfigMap",
        "Secret",
        "ServiceAccount",
        "Role",
        "RoleBinding",
        "ClusterRole",
        "ClusterRoleBinding",
        "NetworkPolicy",
        "LimitRange",
        "ResourceQuota",
        "PriorityClass",
        "StorageClass",
        "IngressClass",
        "CSIDriver",
        "CSINode",
        "ControllerRevision",
    }
)
_STARTED = frozenset(
    {"Deployment", "StatefulSet", "DaemonSet", "Service", "CustomResourceDefinition", "PodDisruptionBudget"}
)


class ManifestKey(NamedTuple):
    """Identity of an object in a cluster."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """`Deployment shop/web`, for people."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


class ManifestResult(NamedTuple):
    """Result of one manifest. `available` None: not trackable."""

    ordinal: int
    manifest: Mapping[str, Any]
    applied: bool
    available: bool | None = None
    message: str = ""
    """Reason why it is not applied, or not available."""

    differs: bool = False
    """True if it is only compared, and the cluster has something else."""

    reason: str = "FailedToApply"
    """Reason of the condition of one that is not applied."""

    drifts: tuple[Difference, ...] = ()
    """Fields that somebody has changed since it was applied."""

    diffs: tuple[Difference, ...] = ()
    """Fields that differ in an object that was there before, or is only compared."""


def key_of(manifest: Mapping[str, Any]) -> ManifestKey:
    """Identity of the object in a manifest. Raises ValueError for an incomplete one."""
    name: Any = section(manifest, "metadata").get("name")
    if not manifest.get("kind") or not manifest.get("apiVersion") or not name:
        raise ValueError("a manifest has apiVersion, kind and metadata.name")
    group, _, version = str(manifest["apiVersion"]).rpartition("/")
    return ManifestKey(
        group if version else "",
        str(manifest["kind"]),
        str(section(manifest, "metadata").get("namespace") or ""),
        str(name),
    )


def tracking_of(kind: str) -> Tracking:
    """Availability tracking of a kind: at once, after a while, or never."""
    if kind in _DATA:
        return "data"
    return "started" if kind in _STARTED else "unknown"


def status_of(work: Document, outcomes: Sequence[ManifestResult], *, now: str) -> Document:
    """Full status of a Work whose manifests were applied (or compared), as a patch of the observed one."""
    conditions, others = (
        (_compared(outcomes), (APPLIED, AVAILABLE)) if only_compares(work) else (_applied(outcomes), (DIFF_REPORTED,))
    )
    old = conditions_of(work)
    generation = int(section(work, "metadata").get("generation") or 0)
    old_manifests = _observed_manifests(work)
    return {
        "conditions": [
            *(_dated(condition, old, generation, now) for condition in conditions),
            *({"type": kind, "status": None} for kind in others if get_condition(old, kind)),
        ],
        "manifestConditions": [
            _manifest_condition(outcome, old_manifests, generation, now, compared=only_compares(work))
            for outcome in outcomes
        ],
    }


def cleaned_up_status(work: Document, *, now: str) -> Document:
    """Status of a deleting Work, once none of its manifests is in the cluster."""
    condition = _condition(APPLIED, "False", CLEANED_UP, "None of the manifests is in the cluster any more.")
    generation = int(section(work, "metadata").get("generation") or 0)
    return {"conditions": [_dated(condition, conditions_of(work), generation, now)], "manifestConditions": []}


def stuck_status(work: Document, problem: str, *, now: str) -> Document:
    """Status of a deleting Work whose manifests cannot be removed."""
    condition = _condition(APPLIED, "False", "ManifestsNotDeleted", problem)
    generation = int(section(work, "metadata").get("generation") or 0)
    return {"conditions": [_dated(condition, conditions_of(work), generation, now)]}


def status_includes(work: Document, patch: Document) -> bool:
    """True if the observed status of a Work includes all of a patch."""
    status = section(work, "status")
    if "manifestConditions" in patch and patch["manifestConditions"] != (status.get("manifestConditions") or []):
        return False
    old = conditions_of(work)
    for condition in patch["conditions"]:
        observed = get_condition(old, condition["type"])
        if (observed is not None) if condition["status"] is None else (observed != condition):
            return False
    return True


def _applied(outcomes: Sequence[ManifestResult]) -> list[Document]:
    failed = [outcome for outcome in outcomes if not outcome.applied]
    if failed:
        message = f"{len(failed)} of {len(outcomes)} manifests are not applied: {_first(failed)}"
        return [
            _condition(APPLIED, "False", "SomeManifestsAreNotApplied", message),
            _condition(AVAILABLE, "False", "SomeManifestsAreNotAvailable", "Not all manifests are applied."),
        ]
    applied = _condition(APPLIED, "True", "AllManifestsApplied", f"All {len(outcomes)} manifests are applied.")
    unavailable = [outcome for outcome in outcomes if outcome.available is False]
    if unavailable:
        message = f"{len(unavailable)} of {len(outcomes)} manifests are not available: {_first(unavailable)}"
        return [applied, _condition(AVAILABLE, "False", "SomeManifestsAreNotAvailable", message)]
    if any(outcome.available is None for outcome in outcomes):
        reason, message = (
            "SomeManifestsAreNotAvailabilityTrackable",
            "The availability of some manifests cannot be determined.",
        )
        return [applied, _condition(AVAILABLE, "True", reason, message)]
    message = " ".join(["All manifests are available.", *sorted({each.message for each in outcomes if each.message})])
    return [applied, _condition(AVAILABLE, "True", "AllManifestsAvailable", message)]


def _compared(outcomes: Sequence[ManifestResult]) -> list[Document]:
    different = sum(outcome.differs for outcome in outcomes)
    message = f"{different} of {len(outcomes)} manifests differ from what is in the cluster."
    return [_condition(DIFF_REPORTED, "True", "AllManifestsDiffReported", message)]


def _first(outcomes: Sequence[ManifestResult]) -> str:
    try:
        about = f"{key_of(outcomes[0].manifest)}: "
    except ValueError:
        about = ""
    return f"{about}{outcomes[0].message}"


def _manifest_condition(
    outcome: ManifestResult, observed: Mapping[str, Document], generation: int, now: str, *, compared: bool
) -> Document:
    identifier = _identifier(outcome)
    if compared:
        conditions = [_condition(DIFF_REPORTED, "True", "Differs" if outcome.differs else "NoDiff", outcome.message)]
    elif not outcome.applied:
        conditions = [_condition(APPLIED, "False", outcome.reason, outcome.message)]
    else:
        conditions = [_condition(APPLIED, "True", "Applied", "It is in the cluster.")]
        match outcome.available:
            case True:
                conditions.append(_condition(AVAILABLE, "True", "Available", outcome.message or "It is available."))
            case False:
                conditions.append(_condition(AVAILABLE, "False", "NotYetAvailable", outcome.message))
            case None:
                conditions.append(
                    _condition(AVAILABLE, "True", "NotTrackable", "Its availability cannot be determined.")
                )
    old = observed.get(_text_of(identifier), {})
    dated = [_dated(each, mappings(old, "conditions"), generation, now) for each in conditions]
    drifts = _details(section(old, "driftDetails"), _DRIFT_FIELDS, outcome.drifts, now)
    diffs = _details(section(old, "diffDetails"), _DIFF_FIELDS, outcome.diffs, now)
    details = {"driftDetails": drifts, "diffDetails": diffs}
    return {"identifier": identifier, "conditions": dated, **{name: each for name, each in details.items() if each}}


_DRIFT_FIELDS = ("firstDriftedObservedTime", "observedDrifts")
_DIFF_FIELDS = ("firstDiffedObservedTime", "observedDiffs")


def _details(before: Document, fields: tuple[str, str], found: Sequence[Difference], now: str) -> Document | None:
    """Details of differences, as KubeFleet's; the same as before while the differences are."""
    first, observed = fields
    listed = [each.detail() for each in found]
    if not listed or before.get(observed) == listed:
        return before if listed else None
    return {"observationTime": now, first: before.get(first) or now, observed: listed}


def _identifier(outcome: ManifestResult) -> Document:
    manifest, metadata = outcome.manifest, section(outcome.manifest, "metadata")
    group, _, version = str(manifest.get("apiVersion") or "").rpartition("/")
    parts = {
        "ordinal": outcome.ordinal,
        "group": group,
        "version": version,
        "kind": str(manifest.get("kind") or ""),
        "namespace": str(metadata.get("namespace") or ""),
        "name": str(metadata.get("name") or ""),
    }
    return {name: value for name, value in parts.items() if value != ""}


def _observed_manifests(work: Document) -> dict[str, Document]:
    return {
        _text_of(section(each, "identifier")): each for each in mappings(section(work, "status"), "manifestConditions")
    }


def _text_of(identifier: Document) -> str:
    return "/".join(f"{name}={identifier[name]}" for name in sorted(identifier) if name != "ordinal")


def _condition(kind: str, status: str, reason: str, message: str) -> Document:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def _dated(condition: Document, old: Iterable[Document], generation: int, now: str) -> Document:
    texts = (condition["status"], condition["reason"], condition["message"])
    return observed_condition(old, condition["type"], texts, generation=generation, now=now)
