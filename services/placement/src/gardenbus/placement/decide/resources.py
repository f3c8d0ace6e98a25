"""Snapshots of resources: what a placement selects, cleaned, in the order of applying, in parts that can be sent.

A group is what was selected at one time: a master, which says how many parts there are and what their content hashes
to, and the other parts. Source: KubeFleet's `pkg/utils/controller/resource_snapshot_resolver.go` and
`resource_selector_resolver.go`.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from gardenbus.common.ports.clock import timestamp
from gardenbus.common.resources.document import Document, StoredObject, encode, section
from gardenbus.common.resources.placement_parts import (
    GROUP_HASH,
    IS_LATEST_LABEL,
    NUMBER_OF_SNAPSHOTS,
    RESOURCE_INDEX_LABEL,
    SUBINDEX,
    of,
)
from gardenbus.common.resources.placements import Placement
from gardenbus.placement.decide.bindings import part_of
from gardenbus.placement.decide.policies import annotated, index_of, is_active

PART_BYTES = 800 * 1024
"""How much of what is selected one part holds, so that it can be sent."""

CHANGED_SINCE = "kubernetes-fleet.io/next-resource-snapshot-candidate-detection-time"
"""Annotation of the latest master: when it was seen first that the selected resources differ from it."""

EXTERNAL = "External"

_ORDER = (
    "PriorityClass",
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
)
_RANKS: Mapping[str, int] = {kind: rank for rank, kind in enumerate(_ORDER)}

_KEPT_METADATA = ("name", "namespace", "labels", "annotations")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_OF_A_SERVICE = ("clusterIP", "clusterIPs", "healthCheckNodePort")

_canonical = msgspec.json.Encoder(order="deterministic").encode


class ResourcePlan(msgspec.Struct, frozen=True):
    """What to write, in this order."""

    retired: tuple[StoredObject, ...] = ()
    """Masters that are no longer the latest."""

    deleted: tuple[StoredObject, ...] = ()
    """Parts of groups beyond the history's limit."""

    created: tuple[Document, ...] = ()
    """Parts of the latest group."""

    patched: tuple[StoredObject, Document] | None = None
    """The latest master as it is, and as it shall be."""

    wait_seconds: float | None = None
    """When to look again, as changes are being collected."""

    index: int | None = None
    """Of the group that is the latest afterwards; None without any."""

    resources: tuple[Document, ...] | None = None
    """What that group holds, where it is the present selection."""


def cleaned(resource: Document) -> Document:
    """An object without what belongs to the place where it is stored."""
    metadata = section(resource, "metadata")
    kept = {name: metadata[name] for name in _KEPT_METADATA if metadata.get(name)}
    if "annotations" in kept:
        kept["annotations"] = {name: value for name, value in kept["annotations"].items() if name != _LAST_APPLIED}
    clean = {name: value for name, value in resource.items() if name not in ("metadata", "status")}
    if resource.get("kind") == "Service":
        spec = section(resource, "spec")
        clean["spec"] = {name: value for name, value in spec.items() if name not in _OF_A_SERVICE}
    return {**clean, "metadata": kept}


def in_order(resources: Sequence[Document]) -> list[Document]:
    """In the order in which they are applied."""

    def rank(resource: Document) -> tuple[object, ...]:
        metadata, kind = section(resource, "metadata"), str(resource.get("kind"))
        place = (str(metadata.get("namespace") or ""), str(metadata.get("name")))
        return _RANKS.get(kind, len(_ORDER)), kind, str(resource.get("apiVersion")), *place

    return sorted(resources, key=rank)


def in_parts(resources: Sequence[Document], limit_bytes: int = PART_BYTES) -> list[list[Document]]:
    """Divided so that each part stays below a size; at least one part."""
    parts: list[list[Document]] = [[]]
    filled = 0
    for resource in resources:
        size = len(encode(resource))
        if parts[-1] and filled + size > limit_bytes:
            parts.append([])
            filled = 0
        parts[-1].append(resource)
        filled += size
    return parts


def group_hash(resources: Sequence[Document]) -> str:
    """Hash of all that a group holds."""
    return hashlib.sha256(_canonical(list(resources))).hexdigest()


def is_master(stored: StoredObject) -> bool:
    """Whether a snapshot is the first of its group."""
    return GROUP_HASH in section(stored.document(), "metadata", "annotations")


def plan_resources(  # noqa: PLR0913  (each is an input of its own)
    placement: Placement,
    resources: Sequence[Document],
    snapshots: Sequence[StoredObject],
    *,
    now: datetime,
    collection: timedelta,
    interval: timedelta,
    used: Collection[str] = (),
) -> ResourcePlan:
    """What to write so that the latest group holds the present selection, or soon does.

    `resources` are cleaned and in order. A change is collected for a while, and groups follow each other at an
    interval. Groups whose master is `used` by a binding outlive the history's limit.
    """
    living = [each for each in snapshots if not each.is_deleting]
    masters = sorted((each for each in living if is_master(each)), key=_index)
    active = [each for each in masters if is_active(each)]
    latest = (active or masters)[-1] if masters else None
    if placement.spec.strategy.type == EXTERNAL:
        return ResourcePlan(index=_index(latest) if latest else None)
    wanted = group_hash(resources)
    if latest is not None and _annotation(latest, GROUP_HASH) == wanted:
        return _kept(placement, resources, living, active, latest)
    if latest is not None:
        since = _annotation(latest, CHANGED_SINCE)
        seen_at = datetime.fromisoformat(since) if since else now
        due_at = max(seen_at + collection, datetime.fromisoformat(latest.created_at) + interval)
        if due_at > now:
            marked = annotated(latest.document(), {CHANGED_SINCE: timestamp(now)})
            return ResourcePlan(
                patched=None if since else (latest, marked),
                wait_seconds=(due_at - now).total_seconds(),
                index=_index(latest),
            )
    index = 1 + max(map(_index, snapshots), default=-1)
    return ResourcePlan(
        retired=tuple(active),
        deleted=_surplus(placement, living, masters, used),
        created=_group(placement, resources, index),
        index=index,
        resources=tuple(resources),
    )


def snapshot_name(placement: str, index: int) -> str:
    """The name of a group's master."""
    return f"{placement}-{index}-snapshot"


def selected(resource: Document) -> Document:
    """How a placement's status names a resource."""
    metadata = section(resource, "metadata")
    group, _, version = str(resource.get("apiVersion")).rpartition("/")
    named: Document = {"group": group, "version": version, "kind": resource.get("kind"), "name": metadata.get("name")}
    if metadata.get("namespace"):
        named["namespace"] = metadata["namespace"]
    return {name: value for name, value in named.items() if value}


def _kept(
    placement: Placement,
    resources: Sequence[Document],
    living: Sequence[StoredObject],
    active: Sequence[StoredObject],
    latest: StoredObject,
) -> ResourcePlan:
    """The latest group stays; what a crash left out of it is made up for."""
    index, present = _index(latest), latest.document()
    metadata = section(present, "metadata")
    annotations = {name: value for name, value in metadata["annotations"].items() if name != CHANGED_SINCE}
    labels = {**section(metadata, "labels"), IS_LATEST_LABEL: "true"}
    renewed = {**present, "metadata": {**metadata, "labels": labels, "annotations": annotations}}
    names = {each.key.name for each in living}
    missing = [each for each in _group(placement, resources, index) if each["metadata"]["name"] not in names]
    return ResourcePlan(
        retired=tuple(each for each in active if each is not latest),
        created=tuple(missing),
        patched=None if renewed == present else (latest, renewed),
        index=index,
        resources=tuple(resources),
    )


def _group(placement: Placement, resources: Sequence[Document], index: int) -> tuple[Document, ...]:
    """All parts of a group, the master last: what has a master is whole but for a crash among its parts."""
    parts, name = in_parts(resources), placement.metadata.name
    kind = of(placement.key.kind).resource_snapshot
    master = part_of(
        placement, kind, snapshot_name(name, index), {RESOURCE_INDEX_LABEL: str(index), IS_LATEST_LABEL: "true"}
    )
    master["metadata"]["annotations"] = {GROUP_HASH: group_hash(resources), NUMBER_OF_SNAPSHOTS: str(len(parts))}
    master["spec"] = {"selectedResources": parts[0]}
    others: list[Document] = []
    for number, part in enumerate(parts[1:]):
        other = part_of(placement, kind, f"{name}-{index}-{number}", {RESOURCE_INDEX_LABEL: str(index)})
        other["metadata"]["annotations"] = {SUBINDEX: str(number)}
        other["spec"] = {"selectedResources": part}
        others.append(other)
    return (*others, master)


def _surplus(
    placement: Placement, living: Sequence[StoredObject], masters: Sequence[StoredObject], used: Collection[str]
) -> tuple[StoredObject, ...]:
    """Groups beyond the limit, and parts whose master was never made."""
    count = len(masters) + 1 - placement.spec.revision_history_limit
    old = [each for each in masters[: max(0, count)] if each.key.name not in used]
    indexes = {_index(each) for each in masters} - {_index(each) for each in old}
    return tuple(each for each in living if _index(each) not in indexes)


def _index(stored: StoredObject) -> int:
    return index_of(stored, RESOURCE_INDEX_LABEL)


def _annotation(stored: StoredObject, name: str) -> str:
    return str(section(stored.document(), "metadata", "annotations").get(name) or "")
