"""The documents of bindings: how one is made, taken over into another policy, and given up.

Source: KubeFleet's `pkg/scheduler/framework/frameworkutils.go` and `uniquename`.
"""

import hashlib
from collections.abc import Iterable

import msgspec

from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.kinds import KINDS
from gardenbus.common.resources.placement_parts import (
    BINDING_CLEANUP,
    PREVIOUS_STATE,
    SCHEDULED,
    UNSCHEDULED,
    ClusterDecision,
    of,
)
from gardenbus.common.resources.placements import PARENT_LABEL, Placement
from gardenbus.fleet.outcome import Pick, Rebinding

PLACEMENT_PART = 26
CLUSTER_PART = 27
HASH_LENGTH = 8
"""So that a name has 63 characters at most."""


def binding_name(placement: Placement, cluster: str, existing: Iterable[str]) -> str:
    """The name of a new binding; `existing` are the uids of those that the placement has on that cluster.

    It is the same for all who see the same, and another one for as long as an older binding is on its way out.
    """
    seed = "\n".join((placement.metadata.uid, cluster, *sorted(existing)))
    ending = hashlib.sha256(seed.encode()).hexdigest()[:HASH_LENGTH]
    start = placement.metadata.name[:PLACEMENT_PART].rstrip("-.")
    return f"{start}-{cluster[:CLUSTER_PART].rstrip('-.')}-{ending}"


def owner_of(placement: Placement) -> Document:
    """The reference by which a placement's parts name it."""
    spec = KINDS[placement.key.kind]
    return {
        "apiVersion": spec.api_version,
        "kind": spec.kind,
        "name": placement.metadata.name,
        "uid": placement.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def part_of(placement: Placement, kind: str, name: str, labels: dict[str, str]) -> Document:
    """A new object that belongs to a placement: its head, without spec."""
    metadata: Document = {"name": name, "labels": {PARENT_LABEL: placement.metadata.name, **labels}}
    if placement.is_namespaced:
        metadata["namespace"] = placement.metadata.namespace
    metadata["ownerReferences"] = [owner_of(placement)]
    return {"apiVersion": KINDS[kind.lower()].api_version, "kind": kind, "metadata": metadata}


def new_binding(placement: Placement, snapshot: str, pick: Pick, existing: Iterable[str]) -> Document:
    """The binding of a cluster that was picked."""
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
    """A binding taken over into the current policy."""
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
    """A binding marked Unscheduled; the only annotation that it keeps tells the state that it was in."""
    spec = section(binding, "spec")
    metadata = {**section(binding, "metadata"), "annotations": {PREVIOUS_STATE: str(spec.get("state") or "")}}
    return {**binding, "metadata": metadata, "spec": {**spec, "state": UNSCHEDULED}}


def without_finalizer(document: Document, finalizer: str) -> Document:
    """A document that one finalizer less holds."""
    metadata = section(document, "metadata")
    kept = [each for each in metadata.get("finalizers") or () if each != finalizer]
    return {**document, "metadata": {**metadata, "finalizers": kept}}


def with_finalizer(document: Document, finalizer: str) -> Document:
    """A document that a finalizer holds."""
    metadata = section(document, "metadata")
    present = [each for each in metadata.get("finalizers") or () if each != finalizer]
    return {**document, "metadata": {**metadata, "finalizers": [*present, finalizer]}}


def decision_document(decision: ClusterDecision) -> Document:
    """A decision as bindings and snapshots hold it; scores are left out where nothing was ranked."""
    written: Document = {"clusterName": decision.cluster_name, "selected": decision.selected}
    if decision.cluster_score is not None:
        written["clusterScore"] = msgspec.to_builtins(decision.cluster_score)
    written["reason"] = decision.reason
    return written
