"""Documents of bindings: created, adopted into another policy, and unscheduled.

Source: KubeFleet's `pkg/scheduler/framework/frameworkutils.go` and `uniquename`.
"""

import hashlib
from collections.abc import Iterable

import msgspec

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import without_finalizer
from gardenbus.common.api.fleet.overrides import AppliedOverrides
from gardenbus.common.api.fleet.placement_parts import (
    BINDING_CLEANUP,
    PREVIOUS_STATE,
    SCHEDULED,
    UNSCHEDULED,
    BindingSpec,
    ClusterDecision,
    of,
)
from gardenbus.common.api.fleet.placements import PARENT_LABEL, Placement
from gardenbus.common.api.fleet.works import abandoned
from gardenbus.common.api.kinds import KINDS
from gardenbus.common.api.owners import controller_reference
from gardenbus.common.api.views import read_view
from gardenbus.fleet.cycle_result import Pick, Rebinding

PLACEMENT_PART = 26
CLUSTER_PART = 27
HASH_LENGTH = 8
"""Limits a name to 63 characters, together with the other parts."""


def binding_name(placement: Placement, cluster: str, existing: Iterable[str]) -> str:
    """Return the name of a new binding; `existing` are the uids of the placement's bindings on that cluster.

    It is the same for equal input, and a new one for as long as an older binding is being deleted.
    """
    seed = "\n".join((placement.metadata.uid, cluster, *sorted(existing)))
    ending = hashlib.sha256(seed.encode()).hexdigest()[:HASH_LENGTH]
    start = placement.metadata.name[:PLACEMENT_PART].rstrip("-.")
    return f"{start}-{cluster[:CLUSTER_PART].rstrip('-.')}-{ending}"


def part_of(placement: Placement, kind: str, name: str, labels: dict[str, str]) -> Document:
    """Return the head of a new object that belongs to a placement, without spec."""
    metadata: Document = {"name": name, "labels": {PARENT_LABEL: placement.metadata.name, **labels}}
    if placement.is_namespaced:
        metadata["namespace"] = placement.metadata.namespace
    spec = KINDS[placement.key.kind]
    named = {"name": placement.metadata.name, "uid": placement.metadata.uid}
    owner: Document = {"apiVersion": spec.api_version, "kind": spec.kind, "metadata": named}
    metadata["ownerReferences"] = [controller_reference(owner)]
    return {"apiVersion": KINDS[kind.lower()].api_version, "kind": kind, "metadata": metadata}


def new_binding(placement: Placement, snapshot: str, pick: Pick, existing: Iterable[str]) -> Document:
    """Return the binding of a picked cluster."""
    name = binding_name(placement, pick.cluster, existing)
    document = part_of(placement, of(placement.key.kind).binding, name, {})
    document["metadata"]["finalizers"] = [BINDING_CLEANUP]
    document["spec"] = {
        "state": SCHEDULED,
        "targetCluster": pick.cluster,
        "schedulingPolicySnapshotName": snapshot,
        "resourceSnapshotName": "",
        "clusterDecision": decision_document(pick.decision),
    }
    strategy = placement.spec.strategy.apply_strategy
    if strategy is not None:
        document["spec"]["applyStrategy"] = strategy
    return document


def rebound(binding: Document, change: Rebinding) -> Document:
    """Return a binding adopted into the current policy."""
    spec = {
        **section(binding, "spec"),
        "schedulingPolicySnapshotName": change.snapshot,
        "clusterDecision": decision_document(change.decision),
    }
    if change.state is not None:
        spec["state"] = change.state
    metadata = section(binding, "metadata")
    if change.drops_previous_state:
        annotations = section(metadata, "annotations")
        kept = {name: value for name, value in annotations.items() if name != PREVIOUS_STATE}
        metadata = {**metadata, "annotations": kept}
    return {**binding, "metadata": metadata, "spec": spec}


def given_up(binding: Document) -> Document:
    """Return a binding marked Unscheduled; its only annotation records the previous state."""
    spec = section(binding, "spec")
    metadata = {**section(binding, "metadata"), "annotations": {PREVIOUS_STATE: str(spec.get("state") or "")}}
    return {**binding, "metadata": metadata, "spec": {**spec, "state": UNSCHEDULED}}


def released(binding: Document, *, abandons: bool) -> Document:
    """Return a binding that the scheduler does not hold; one that abandons leaves its manifests in the cluster."""
    after = without_finalizer(binding, BINDING_CLEANUP)
    return abandoned(after) if abandons else after


def applied_overrides(binding: Document) -> AppliedOverrides:
    """Return the override snapshots that a binding names. Raises InvalidResource."""
    return read_view(section(binding, "spec"), BindingSpec).overrides


def with_overrides(binding: Document, applied: AppliedOverrides) -> Document:
    """Return a binding that names these override snapshots, and no others."""
    fields = {
        "clusterResourceOverrideSnapshots": list(applied.cluster_scoped),
        "resourceOverrideSnapshots": [msgspec.to_builtins(each) for each in applied.namespaced],
    }
    kept = {name: value for name, value in section(binding, "spec").items() if name not in fields}
    return {**binding, "spec": {**kept, **{name: value for name, value in fields.items() if value}}}


def decision_document(decision: ClusterDecision) -> Document:
    """Return a decision as bindings and snapshots record it; without scores where nothing was ranked."""
    written: Document = {"clusterName": decision.cluster_name, "selected": decision.selected}
    if decision.cluster_score is not None:
        written["clusterScore"] = msgspec.to_builtins(decision.cluster_score)
    written["reason"] = decision.reason
    return written
