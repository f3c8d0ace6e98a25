"""Plan of the policy snapshots of a placement.

At most one snapshot of a placement is active. The number of clusters is no part of it, so scaling makes no new one.
Source: KubeFleet's `pkg/controllers/placement/controller.go`.
"""

import base64
import hashlib
from collections.abc import Sequence

import msgspec

from gardenbus.common.api.document import Document, StoredObject, canonical, section
from gardenbus.common.api.fleet.placement_parts import (
    IS_LATEST_LABEL,
    NUMBER_OF_CLUSTERS,
    PLACEMENT_GENERATION,
    POLICY_INDEX_LABEL,
    of,
)
from gardenbus.common.api.fleet.placements import PICK_N, Placement
from gardenbus.common.api.numbers import whole_number
from gardenbus.placement.domain.bindings import part_of

CYCLE = "placement.gardenbus.io/cycle"
"""Annotation of a policy snapshot: counter of cycles that write bindings. Incremented to claim the snapshot."""

CLOSED = "placement.gardenbus.io/closed"
"""Annotation of the policy snapshot of a deleting placement: no cycle may write bindings any more."""


class PolicyPlan(msgspec.Struct, frozen=True):
    """Writes, in this order."""

    retired: tuple[StoredObject, ...] = ()
    """Snapshots that are no longer the latest."""

    deleted: tuple[StoredObject, ...] = ()
    """Snapshots beyond the history's limit."""

    created: Document | None = None
    """A new snapshot, the latest from then on."""

    patched: tuple[StoredObject, Document] | None = None
    """The latest as it is, and as it is going to be."""


def policy_of(placement: Document) -> Document | None:
    """Return the policy without the number of clusters; None when the placement has none."""
    policy = section(placement, "spec").get("policy")
    if not isinstance(policy, dict):
        return None
    return {name: value for name, value in section(placement, "spec", "policy").items() if name != "numberOfClusters"}


def policy_hash(placement: Document) -> str:
    """Return the SHA-256 of the policy without the number of clusters, base64."""
    return base64.b64encode(hashlib.sha256(canonical(policy_of(placement))).digest()).decode()


def index_of(stored: StoredObject, label: str = POLICY_INDEX_LABEL) -> int:
    """Return a snapshot's index; -1 when it has none."""
    return whole_number(section(stored.document(), "metadata", "labels").get(label), -1)


def is_active(stored: StoredObject) -> bool:
    """Report whether a snapshot is labelled as the latest."""
    return stored.labels.get(IS_LATEST_LABEL) == "true" and not stored.is_deleting


def active_one(snapshots: Sequence[StoredObject]) -> StoredObject | None:
    """Return the active snapshot; None while there is none, or more than one."""
    active = [each for each in snapshots if is_active(each)]
    return active[0] if len(active) == 1 else None


def plan_policy(placement: Placement, document: Document, snapshots: Sequence[StoredObject]) -> PolicyPlan:
    """Plan the writes that make exactly the snapshot of the current policy the latest.

    A snapshot whose successor was never made is the latest still, or again, when it holds the current policy.
    """
    living = sorted((each for each in snapshots if not each.is_deleting), key=index_of)
    active = [each for each in living if is_active(each)]
    latest = (active or living)[-1] if living else None
    wanted = policy_hash(document)
    if latest is not None and _hash_of(latest) == wanted:
        retired = tuple(each for each in active if each is not latest)
        present = latest.document()
        renewed = _renewed(placement, present)
        return PolicyPlan(retired=retired, patched=None if renewed == present else (latest, renewed))
    surplus = max(0, len(living) + 1 - placement.spec.revision_history_limit)
    return PolicyPlan(
        retired=tuple(active),
        deleted=tuple(living[:surplus]),
        created=_new(placement, document, wanted, 1 + max(map(index_of, snapshots), default=-1)),
    )


def retired(snapshot: Document) -> Document:
    """Return a snapshot that is no longer the latest."""
    metadata = section(snapshot, "metadata")
    return {**snapshot, "metadata": {**metadata, "labels": {**metadata["labels"], IS_LATEST_LABEL: "false"}}}


def incremented(document: Document, counter: str) -> Document:
    """Return a document with a counter, one of its annotations, incremented."""
    count = whole_number(section(document, "metadata", "annotations").get(counter))
    return annotated(document, {counter: str(count + 1)})


def annotated(document: Document, annotations: dict[str, str]) -> Document:
    """Return a document with annotations added or replaced."""
    metadata = section(document, "metadata")
    return {**document, "metadata": {**metadata, "annotations": {**section(metadata, "annotations"), **annotations}}}


def _annotations(placement: Placement) -> dict[str, str]:
    annotations = {PLACEMENT_GENERATION: str(placement.metadata.generation)}
    policy = placement.policy
    if policy.placement_type == PICK_N and policy.number_of_clusters is not None:
        annotations[NUMBER_OF_CLUSTERS] = str(policy.number_of_clusters)
    return annotations


def _renewed(placement: Placement, snapshot: Document) -> Document:
    renewed = annotated(snapshot, _annotations(placement))
    labels = {**section(renewed, "metadata", "labels"), IS_LATEST_LABEL: "true"}
    return {**renewed, "metadata": {**renewed["metadata"], "labels": labels}}


def _new(placement: Placement, document: Document, policy_hash: str, index: int) -> Document:
    kind = of(placement.key.kind).policy_snapshot
    labels = {IS_LATEST_LABEL: "true", POLICY_INDEX_LABEL: str(index)}
    snapshot = part_of(placement, kind, f"{placement.metadata.name}-{index}", labels)
    snapshot["metadata"]["annotations"] = _annotations(placement)
    policy = policy_of(document)
    snapshot["spec"] = {"policyHash": policy_hash} | ({} if policy is None else {"policy": policy})
    return snapshot


def _hash_of(stored: StoredObject) -> str:
    return str(section(stored.document(), "spec").get("policyHash") or "")
