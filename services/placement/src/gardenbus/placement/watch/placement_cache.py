"""Cache of the fleet and the placements, fed by an informer; each object is parsed once per change.

It may lag behind the store, so no write may rest on it alone.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import structlog

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.fleet.member_clusters import MemberCluster
from gardenbus.common.api.fleet.overrides import (
    OVERRIDE_INDEX_LABEL,
    OVERRIDE_KINDS,
    OVERRIDE_LABEL,
    OverrideSnapshot,
    override_kind,
)
from gardenbus.common.api.fleet.overrides import SNAPSHOT_KINDS as OVERRIDE_SNAPSHOT_KINDS
from gardenbus.common.api.fleet.placement_parts import PolicySnapshot, of, placement_key
from gardenbus.common.api.fleet.placements import CLUSTER_KIND, KINDS, NAMESPACED_KIND, PARENT_LABEL, Placement
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.numbers import whole_number
from gardenbus.common.api.views import TypedView
from gardenbus.common.errors import InvalidResource
from gardenbus.common.ports.clock import Clock
from gardenbus.fleet.fleet import Fleet
from gardenbus.placement import metrics
from gardenbus.placement.domain.policy_snapshots import is_active

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

CLUSTER = "membercluster"
SNAPSHOT_KINDS = tuple(of(kind).policy_snapshot.lower() for kind in KINDS)
BINDING_KINDS = tuple(of(kind).binding.lower() for kind in KINDS)
WATCHED = (
    *(CLUSTER, CLUSTER_KIND, NAMESPACED_KIND),
    *(*SNAPSHOT_KINDS, *BINDING_KINDS, *OVERRIDE_KINDS, *OVERRIDE_SNAPSHOT_KINDS),
)

Read = TypeVar("Read")


class PlacementCache:
    """Announced objects with their indexes; `changed` is the callback, to be subscribed before all readers."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._clusters: dict[str, MemberCluster] = {}
        self._placements: dict[ObjectKey, Placement] = {}
        self._snapshots: dict[ObjectKey, dict[ObjectKey, PolicySnapshot]] = {}
        self._bindings: dict[ObjectKey, dict[ObjectKey, StoredObject]] = {}
        self._overrides: dict[ObjectKey, dict[ObjectKey, OverrideSnapshot]] = {}
        self._on_cluster: dict[str, set[ObjectKey]] = {}
        self._targets: dict[ObjectKey, str] = {}
        self.parents: dict[ObjectKey, ObjectKey] = {}
        """The placement of each binding."""
        self._fleet: Fleet | None = None
        self._is_current = False

    def clusters(self) -> Mapping[str, MemberCluster]:
        """Return the member clusters by name; a live view."""
        return self._clusters

    def placements(self) -> Mapping[ObjectKey, Placement]:
        """Return all placements; a live view."""
        return self._placements

    def bindings_of(self, placement: ObjectKey) -> Sequence[StoredObject]:
        """Return the bindings of a placement, by name."""
        bindings = self._bindings.get(placement, {})
        return [bindings[key] for key in sorted(bindings)]

    def bindings_on(self, cluster: str) -> Sequence[ObjectKey]:
        """Return the bindings on a cluster, of all placements."""
        return sorted(self._on_cluster.get(cluster, ()))

    def snapshot_of(self, placement: ObjectKey) -> PolicySnapshot | None:
        """Return the placement's active policy snapshot, if there is exactly one."""
        snapshots = list(self._snapshots.get(placement, {}).values())
        return snapshots[0] if len(snapshots) == 1 else None

    def override_snapshots(self) -> Sequence[OverrideSnapshot]:
        """Return the latest snapshot of each override that has not been deleted."""
        return [max(self._overrides[key].values(), key=_override_index) for key in sorted(self._overrides)]

    def fleet(self) -> Fleet:
        """Return all member clusters at this moment."""
        now = self._clock.now().timestamp()
        if self._fleet is None or not self._is_current:
            self._fleet = Fleet.of(self._clusters.values(), now, self._fleet)
            self._is_current = True
        else:
            self._fleet = self._fleet.at(now)
        return self._fleet

    def changed(self, key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        """Apply a change of an object."""
        if key.kind == CLUSTER:
            _replace(self._clusters, key.name, _read(key, new, MemberCluster.from_document))
            self._is_current = False
            metrics.CLUSTERS.set(len(self._clusters))
        elif key.kind in KINDS:
            _replace(self._placements, key, _read(key, new, Placement.from_document))
        elif (about := new or old) is None:
            return
        elif key.kind in SNAPSHOT_KINDS:
            active = new if new is not None and is_active(new) else None
            _store_part(self._snapshots, parent_of(key, about), key, _read(key, active, PolicySnapshot.from_document))
        elif key.kind in OVERRIDE_SNAPSHOT_KINDS:
            active = new if new is not None and is_active(new) else None
            override = override_of(key, about)
            _store_part(self._overrides, override, key, _read(key, active, OverrideSnapshot.from_document))
        elif key.kind in BINDING_KINDS:
            parent = parent_of(key, about)
            _store_part(self._bindings, parent, key, new)
            _replace(self.parents, key, parent if new is not None else None)
            self._locate(key, new)

    def _locate(self, key: ObjectKey, new: StoredObject | None) -> None:
        before = self._targets.get(key)
        after = None if new is None else head_of(new).target_cluster
        if before == after:
            return
        if before is not None:
            _drop(self._on_cluster, before, key)
        if after is not None:
            self._on_cluster.setdefault(after, set()).add(key)
        _replace(self._targets, key, after)


class BindingHead(TypedView, frozen=True):
    """The fields of a binding that every announcement needs."""

    state: str = ""
    """`Scheduled`, `Bound` or `Unscheduled`."""

    target_cluster: str = ""
    """Its cluster."""


_decode_head = json_decoder(BindingHead)


def parent_of(key: ObjectKey, stored: StoredObject) -> ObjectKey:
    """Return the placement that a part belongs to."""
    return placement_key(key.kind, key.namespace, stored.labels.get(PARENT_LABEL, ""))


def override_of(key: ObjectKey, stored: StoredObject) -> ObjectKey:
    """Return the override that a snapshot belongs to."""
    return ObjectKey(override_kind(key.namespace), key.namespace, stored.labels.get(OVERRIDE_LABEL, ""))


def _override_index(snapshot: OverrideSnapshot) -> int:
    return whole_number(snapshot.metadata.labels.get(OVERRIDE_INDEX_LABEL), -1)


def head_of(stored: StoredObject) -> BindingHead:
    """Parse a binding's state and cluster, without the rest of it."""
    return _decode_head(b"{%b}" % stored.parts.spec)


def _read(key: ObjectKey, stored: StoredObject | None, read: Callable[[Document | bytes], Read]) -> Read | None:
    if stored is None:
        return None
    try:
        return read(stored.encoded())
    except InvalidResource as error:
        log.warning("object.unreadable", object=str(key), reason=error.message)
        return None


def _store_part(parts: dict[ObjectKey, dict[ObjectKey, Any]], parent: ObjectKey, key: ObjectKey, value: object) -> None:
    own = parts.setdefault(parent, {})
    _replace(own, key, value)
    if not own:
        del parts[parent]


def _drop(held: dict[str, set[ObjectKey]], name: str, key: ObjectKey) -> None:
    held[name].discard(key)
    if not held[name]:
        del held[name]


def _replace(values: dict[Any, Any], key: object, value: object) -> None:
    if value is None:
        values.pop(key, None)
    else:
        values[key] = value
