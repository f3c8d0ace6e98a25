"""Plan of the resource snapshots of a placement: selected resources, cleaned, ordered, in parts of bounded size.

A group is one selection: a master, which records the number of parts and the hash of all content, and the other parts.
Source: KubeFleet's `pkg/utils/controller/resource_snapshot_resolver.go` and `resource_selector_resolver.go`.
"""

import hashlib
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

import msgspec

from gardenbus.common.api.document import STATUS_LABEL, Document, StoredObject, canonical, encode, section
from gardenbus.common.api.document_parts import without
from gardenbus.common.api.field_ownership import OWNERS_ANNOTATION
from gardenbus.common.api.fleet.apply_order import rank_of
from gardenbus.common.api.fleet.placement_parts import (
    GROUP_HASH,
    IS_LATEST_LABEL,
    NUMBER_OF_SNAPSHOTS,
    RESOURCE_INDEX_LABEL,
    SUBINDEX,
    of,
)
from gardenbus.common.api.fleet.placements import Placement
from gardenbus.common.ports.clock import parse_timestamp, timestamp
from gardenbus.placement.domain.bindings import part_of
from gardenbus.placement.domain.policy_snapshots import annotated, index_of, is_active

PART_BYTES = 800 * 1024
"""Maximum size of the resources in one part, so that it fits into a message."""

CHANGED_SINCE = "kubernetes-fleet.io/next-resource-snapshot-candidate-detection-time"
"""Annotation of the latest master: when a change of the selected resources was detected first."""

EXTERNAL = "External"

_KEPT_METADATA = ("name", "namespace", "labels", "annotations")
_OF_THIS_CLUSTER = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        "gardener.cloud/created-by",
        "deletion.gardener.cloud/confirmed-by",
        "confirmation.gardener.cloud/deletion",
        "gardener.cloud/unchecked-tolerations",
        OWNERS_ANNOTATION,
    }
)
"""Annotations that say something of an object here, and nothing of its copies."""
_OF_ITS_CONTROLLERS = (
    *("provider.shoot.gardener.cloud/", "reference.gardener.cloud/"),
    *("project.gardener.cloud/", "namespace.gardener.cloud/", STATUS_LABEL),
)
"""Beginnings of labels and annotations that controllers keep here: on credentials, namespaces of Projects, shoots."""
_PROJECT_ROLE = ("gardener.cloud/role", "project")
"""Label of the namespace of a Project."""
_OF_A_SERVICE = ("clusterIP", "clusterIPs", "healthCheckNodePort")


class ResourcePlan(msgspec.Struct, frozen=True):
    """Writes, in this order."""

    retired: tuple[StoredObject, ...] = ()
    """Masters that are no longer the latest."""

    deleted: tuple[StoredObject, ...] = ()
    """Parts of groups beyond the history's limit."""

    created: tuple[Document, ...] = ()
    """Parts of the latest group."""

    patched: tuple[StoredObject, Document] | None = None
    """The latest master as it is, and as it is going to be."""

    wait_seconds: float | None = None
    """Seconds until the next reconcile, while changes are being collected."""

    index: int | None = None
    """Index of the latest group afterwards; None without any."""

    resources: tuple[Document, ...] | None = None
    """Content of that group, where it is the current selection."""


def cleaned(resource: Document) -> Document:
    """Return an object without fields that belong to its present cluster."""
    metadata = section(resource, "metadata")
    kept = {name: metadata[name] for name in _KEPT_METADATA if metadata.get(name)}
    for field in ("annotations", "labels"):
        if field in kept:
            pairs = without(kept[field], *_OF_THIS_CLUSTER).items()
            kept[field] = {
                name: value
                for name, value in pairs
                if not name.startswith(_OF_ITS_CONTROLLERS) and (name, value) != _PROJECT_ROLE
            }
    kept = {name: value for name, value in kept.items() if value}
    clean = {name: value for name, value in resource.items() if name not in ("metadata", "status")}
    if resource.get("kind") == "Service":
        spec = section(resource, "spec")
        clean["spec"] = {name: value for name, value in spec.items() if name not in _OF_A_SERVICE}
    return {**clean, "metadata": kept}


def in_order(resources: Sequence[Document]) -> list[Document]:
    """Sort by the order of applying."""

    def rank(resource: Document) -> tuple[object, ...]:
        metadata, kind = section(resource, "metadata"), str(resource.get("kind"))
        place = (str(metadata.get("namespace") or ""), str(metadata.get("name")))
        return rank_of(kind), kind, str(resource.get("apiVersion")), *place

    return sorted(resources, key=rank)


def in_parts(resources: Sequence[Document], limit_bytes: int = PART_BYTES) -> list[list[Document]]:
    """Divide into parts below a size; at least one part."""
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
    """Return the hash of a group's content."""
    return hashlib.sha256(canonical(list(resources))).hexdigest()


def is_master(stored: StoredObject) -> bool:
    """Report whether a snapshot is the first of its group."""
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
    """Plan the writes that make the latest group hold the current selection, now or after a delay.

    `resources` are cleaned and in order. Changes are collected for a while, and groups follow each other at an
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
        seen_at = parse_timestamp(since) or now
        created_at = parse_timestamp(latest.created_at) or now
        due_at = max(_end_of(seen_at, collection, now), _end_of(created_at, interval, now))
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


def _end_of(begin: datetime, period: timedelta, now: datetime) -> datetime:
    """End of a period. One that begins further ahead than it lasts was noted by a clock that was wrong, and is over."""
    return now if begin - now > period else begin + period


def snapshot_name(placement: str, index: int) -> str:
    """Return the name of a group's master."""
    return f"{placement}-{index}-snapshot"


def selected(resource: Document) -> Document:
    """Return a resource's identifier, as a placement's status shows it."""
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
    """Keep the latest group, and recreate parts that a crash has left out."""
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
    """Return all parts of a group, the master last: a group with a master is complete but for a crash."""
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
    """Return groups beyond the limit, and parts without a master."""
    count = len(masters) + 1 - placement.spec.revision_history_limit
    old = [each for each in masters[: max(0, count)] if each.key.name not in used]
    indexes = {_index(each) for each in masters} - {_index(each) for each in old}
    return tuple(each for each in living if _index(each) not in indexes)


def _index(stored: StoredObject) -> int:
    return index_of(stored, RESOURCE_INDEX_LABEL)


def _annotation(stored: StoredObject, name: str) -> str:
    return str(section(stored.document(), "metadata", "annotations").get(name) or "")
