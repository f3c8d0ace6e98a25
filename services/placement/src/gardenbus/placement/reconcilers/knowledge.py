"""What an informer has told of fleet and placements, read once for each change of an object."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
import structlog

from gardenbus.common.errors import InvalidResource
from gardenbus.common.ports.clock import Clock
from gardenbus.common.resources.document import Document, StoredObject
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.common.resources.member_clusters import MemberCluster
from gardenbus.common.resources.placement_parts import PolicySnapshot, of, placement_key
from gardenbus.common.resources.placements import CLUSTER_KIND, KINDS, NAMESPACED_KIND, PARENT_LABEL, Placement
from gardenbus.common.resources.views import View
from gardenbus.fleet.fleet import Fleet
from gardenbus.placement.decide.policies import is_active
from gardenbus.placement.reconcilers import counters

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

CLUSTER = "membercluster"
SNAPSHOT_KINDS = tuple(of(kind).policy_snapshot.lower() for kind in KINDS)
BINDING_KINDS = tuple(of(kind).binding.lower() for kind in KINDS)
WATCHED = (CLUSTER, CLUSTER_KIND, NAMESPACED_KIND, *SNAPSHOT_KINDS, *BINDING_KINDS)

Read = TypeVar("Read")


class Knowledge:
    """The protocol Known, and a little more; `changed` is the callback, to be subscribed before all who ask here."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._clusters: dict[str, MemberCluster] = {}
        self._placements: dict[ObjectKey, Placement] = {}
        self._snapshots: dict[ObjectKey, dict[ObjectKey, PolicySnapshot]] = {}
        self._bindings: dict[ObjectKey, dict[ObjectKey, StoredObject]] = {}
        self._on_cluster: dict[str, set[ObjectKey]] = {}
        self._targets: dict[ObjectKey, str] = {}
        self.parents: dict[ObjectKey, ObjectKey] = {}
        """The placement of each binding."""
        self._fleet: Fleet | None = None
        self._is_current = False

    def clusters(self) -> Mapping[str, MemberCluster]:
        """The member clusters by name; a live view."""
        return self._clusters

    def placements(self) -> Mapping[ObjectKey, Placement]:
        """All placements; a live view."""
        return self._placements

    def bindings_of(self, placement: ObjectKey) -> Sequence[StoredObject]:
        """The bindings of a placement, by name."""
        bindings = self._bindings.get(placement, {})
        return [bindings[key] for key in sorted(bindings)]

    def bindings_on(self, cluster: str) -> Sequence[ObjectKey]:
        """The bindings on a cluster, of whichever placements."""
        return sorted(self._on_cluster.get(cluster, ()))

    def snapshot_of(self, placement: ObjectKey) -> PolicySnapshot | None:
        """The policy snapshot that a placement is scheduled by, if exactly one says so."""
        snapshots = list(self._snapshots.get(placement, {}).values())
        return snapshots[0] if len(snapshots) == 1 else None

    def fleet(self) -> Fleet:
        """All member clusters as they are at this moment."""
        now = self._clock.now().timestamp()
        if self._fleet is None or not self._is_current:
            self._fleet = Fleet.of(self._clusters.values(), now, self._fleet)
            self._is_current = True
        else:
            self._fleet = self._fleet.at(now)
        return self._fleet

    def changed(self, key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        """Take a change in."""
        if key.kind == CLUSTER:
            _replace(self._clusters, key.name, _read(key, new, MemberCluster.from_document))
            self._is_current = False
            counters.CLUSTERS.set(len(self._clusters))
        elif key.kind in KINDS:
            _replace(self._placements, key, _read(key, new, Placement.from_document))
        elif (about := new or old) is None:
            return
        elif key.kind in SNAPSHOT_KINDS:
            active = new if new is not None and is_active(new) else None
            _file(self._snapshots, parent_of(key, about), key, _read(key, active, PolicySnapshot.from_document))
        elif key.kind in BINDING_KINDS:
            parent = parent_of(key, about)
            _file(self._bindings, parent, key, new)
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


class BindingHead(View, frozen=True):
    """What is needed of each announcement of a binding."""

    state: str = ""
    """`Scheduled`, `Bound` or `Unscheduled`."""

    target_cluster: str = ""
    """Where it is."""


_decode_head = msgspec.json.Decoder(BindingHead).decode


def parent_of(key: ObjectKey, stored: StoredObject) -> ObjectKey:
    """The placement that a part belongs to."""
    return placement_key(key.kind, key.namespace, stored.labels.get(PARENT_LABEL, ""))


def head_of(stored: StoredObject) -> BindingHead:
    """A binding's state and cluster, read without the rest of it."""
    return _decode_head(b"{%b}" % stored.parts.spec)


def _read(key: ObjectKey, stored: StoredObject | None, read: Callable[[Document | bytes], Read]) -> Read | None:
    if stored is None:
        return None
    try:
        return read(stored.encoded())
    except InvalidResource as error:
        log.warning("object.unreadable", object=str(key), reason=error.message)
        return None


def _file(parts: dict[ObjectKey, dict[ObjectKey, Any]], parent: ObjectKey, key: ObjectKey, value: object) -> None:
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
