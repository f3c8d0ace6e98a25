"""Snapshots of policies: which there are to be of a placement, and how to get there.

At most one snapshot of a placement is active. The number of clusters is no part of it, so scaling makes no new one.
Source: KubeFleet's `pkg/controllers/placement/controller.go`.
"""

import base64
import hashlib
from collections.abc import Sequence

import msgspec

from gardenbus.common.resources.document import Document, StoredObject, section
from gardenbus.common.resources.placement_parts import (
    IS_LATEST_LABEL,
    NUMBER_OF_CLUSTERS,
    PLACEMENT_GENERATION,
    POLICY_INDEX_LABEL,
    of,
)
from gardenbus.common.resources.placements import PICK_N, Placement
from gardenbus.placement.decide.bindings import part_of

CYCLE = "placement.gardenbus.io/cycle"
"""Annotation of a policy snapshot: how often bindings were about to be written by it. Whoever counts it up may."""

CLOSED = "placement.gardenbus.io/closed"
"""Annotation of a policy snapshot whose placement leaves: nobody may write bindings by it any more."""

_canonical = msgspec.json.Encoder(order="deterministic").encode


class PolicyPlan(msgspec.Struct, frozen=True):
    """What to write, in this order."""

    retired: tuple[StoredObject, ...] = ()
    """Snapshots that are no longer the latest."""

    deleted: tuple[StoredObject, ...] = ()
    """Snapshots beyond the history's limit."""

    created: Document | None = None
    """A new snapshot, the latest from then on."""

    patched: tuple[StoredObject, Document] | None = None
    """The latest as it is, and as it shall be."""


def policy_of(placement: Document) -> Document | None:
    """The policy without the number of clusters; None when the placement states none."""
    policy = section(placement, "spec").get("policy")
    if not isinstance(policy, dict):
        return None
    return {name: value for name, value in section(placement, "spec", "policy").items() if name != "numberOfClusters"}


def policy_hash(placement: Document) -> str:
    """SHA-256 of the policy without the number of clusters, base64."""
    return base64.b64encode(hashlib.sha256(_canonical(policy_of(placement))).digest()).decode()


def index_of(stored: StoredObject, label: str = POLICY_INDEX_LABEL) -> int:
    """A snapshot's number; -1 when it has none."""
    text = str(section(stored.document(), "metadata", "labels").get(label) or "")
    return int(text) if text.isdecimal() else -1


def is_active(stored: StoredObject) -> bool:
    """Whether a snapshot says that it is the latest."""
    return stored.labels.get(IS_LATEST_LABEL) == "true" and not stored.is_deleting


def active_one(snapshots: Sequence[StoredObject]) -> StoredObject | None:
    """The snapshot that is scheduled by; None while there is none, or more than one."""
    active = [each for each in snapshots if is_active(each)]
    return active[0] if len(active) == 1 else None


def plan_policy(placement: Placement, document: Document, snapshots: Sequence[StoredObject]) -> PolicyPlan:
    """What to write so that exactly the snapshot of the present policy is the latest.

    A snapshot whose successor was never made is the latest still, or again, when the policy is its own.
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
    """A snapshot that is no longer the latest."""
    metadata = section(snapshot, "metadata")
    return {**snapshot, "metadata": {**metadata, "labels": {**metadata["labels"], IS_LATEST_LABEL: "false"}}}


def claimed(snapshot: Document) -> Document:
    """A snapshot on which the writes of one more cycle may hang."""
    count = str(section(snapshot, "metadata", "annotations").get(CYCLE) or "")
    return annotated(snapshot, {CYCLE: str(int(count) + 1 if count.isdecimal() else 1)})


def annotated(document: Document, annotations: dict[str, str]) -> Document:
    """A document with more annotations, or others."""
    metadata = section(document, "metadata")
    return {
        **document,
        "metadata": {**metadata, "annotations": {**section(metadata, "annotations"), **annotations}},
    }


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
