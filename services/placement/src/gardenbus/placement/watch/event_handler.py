"""Enqueues the placements, bindings and evictions that a change affects: an informer's callback.

`domain.triggers` decides which placements a cluster affects. Source: KubeFleet's `pkg/scheduler/watchers`.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from gardenbus.common.api.document import Document, StoredObject, section
from gardenbus.common.api.fleet.member_clusters import MemberCluster
from gardenbus.common.api.fleet.overrides import OVERRIDE_KINDS, OverrideSnapshot
from gardenbus.common.api.fleet.overrides import SNAPSHOT_KINDS as OVERRIDE_SNAPSHOT_KINDS
from gardenbus.common.api.fleet.placement_parts import (
    IS_LATEST_LABEL,
    NUMBER_OF_CLUSTERS,
    PARENT_BINDING_LABEL,
    PLACEMENT_GENERATION,
    SCHEDULED,
    ResourceBinding,
    binding_kind,
)
from gardenbus.common.api.fleet.placements import KINDS
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.views import condition_in
from gardenbus.common.controller.enqueue_on_change import beyond_status
from gardenbus.common.errors import InvalidResource
from gardenbus.common.ports.clock import Clock
from gardenbus.fleet.eligibility import ineligibility_reason
from gardenbus.placement.domain.affected_placements import is_affected
from gardenbus.placement.domain.triggers import ClusterChange, binding_may_change
from gardenbus.placement.watch.placement_cache import (
    BINDING_KINDS,
    CLUSTER,
    SNAPSHOT_KINDS,
    PlacementCache,
    head_of,
    parent_of,
)

WORK = "work"
EVICTION = "clusterresourceplacementeviction"

Enqueue = Callable[[ObjectKey], None]


class PlacementQueues(NamedTuple):
    """Enqueue functions, by controller."""

    snapshots: Enqueue
    scheduling: Enqueue
    status: Enqueue
    rollout: Enqueue
    eviction: Enqueue
    work: Enqueue
    override: Enqueue


class PlacementEventHandler:
    """Enqueues what changes affect: `changed` is the callback, `tick` to be called periodically."""

    def __init__(self, cache: PlacementCache, queues: PlacementQueues, clock: Clock) -> None:
        self._cache = cache
        self._queues = queues
        self._clock = clock
        self._ticked_at = clock.now().timestamp()
        self.has_synced = False
        """True once the first list is in: until then each placement is enqueued anyway."""

    def changed(self, key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        """Enqueue what a change affects."""
        if key.kind in KINDS:
            self._placement_changed(key, old, new)
        elif key.kind in SNAPSHOT_KINDS:
            self._snapshot_changed(key, old, new)
        elif key.kind in BINDING_KINDS:
            self._binding_changed(key, old, new)
        elif key.kind == CLUSTER:
            self._cluster_changed(old, new)
        elif key.kind in OVERRIDE_KINDS:
            if new is None or old is None or beyond_status(old) != beyond_status(new):
                self._queues.override(key)
        elif key.kind in OVERRIDE_SNAPSHOT_KINDS:
            self._override_changed(old, new)
        elif key.kind == WORK:
            self._work_changed(old, new)
        elif key.kind == EVICTION and new is not None and (old is None or beyond_status(old) != beyond_status(new)):
            self._queues.eviction(key)

    def tick(self) -> None:
        """Enqueue placements whose decision time alone may change, as heartbeats go stale."""
        was, now = self._ticked_at, self._clock.now().timestamp()
        self._ticked_at = now
        for cluster in self._cache.clusters().values():
            if ineligibility_reason(cluster, was) != ineligibility_reason(cluster, now):
                self._enqueue_affected(ClusterChange(cluster, cluster, was=was, now=now))

    def _placement_changed(self, key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        if new is None:
            return
        if old is None or beyond_status(old) != beyond_status(new):
            self._queues.snapshots(key)
            if new.is_deleting or old is None or old.uid != new.uid:
                self._queues.scheduling(key)
            self._queues.status(key)
            self._queues.rollout(key)
        elif _resource_index(old) != _resource_index(new):
            self._queues.rollout(key)

    def _snapshot_changed(self, key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        about = new or old
        if about is None:
            return
        placement = parent_of(key, about)
        before, after = (_scheduling_input(each) for each in (old, new))
        if new is None:
            self._queues.snapshots(placement)
        elif before != after and after[0] == "true":
            self._queues.scheduling(placement)
        if _status(old) != _status(new) or before != after:
            if new is not None and after[0] == "true" and self._may_be_superseded(placement):
                self._queues.scheduling(placement)
            self._queues.status(placement)

    def _may_be_superseded(self, placement: ObjectKey) -> bool:
        """Report whether a cluster's change during a decision could alter it.

        Such a change reaches this cache before the decision does, and was checked against the previous decision.
        """
        snapshot, clusters = self._cache.snapshot_of(placement), self._cache.clusters()
        if snapshot is None or not self.has_synced:
            return False
        stated = condition_in(snapshot.status.conditions, "Scheduled")
        if stated is None or stated.status == "False":
            return stated is not None
        if snapshot.spec.policy is not None and snapshot.spec.policy.cluster_affinity.required_always is not None:
            return True
        chosen = (clusters.get(each.cluster_name) for each in snapshot.status.target_clusters if each.selected)
        return any(cluster is None or cluster.is_deleting for cluster in chosen)

    def _binding_changed(self, key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        about = new or old
        if about is None:
            return
        placement = self._cache.parents.get(key) or parent_of(key, about)
        if self._needs_scheduling(placement, old, new):
            self._queues.scheduling(placement)
        self._queues.rollout(placement)
        self._queues.status(placement)
        if new is not None and _has_works(new) and (old is None or beyond_status(old) != beyond_status(new)):
            self._queues.work(key)

    def _needs_scheduling(self, placement: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> bool:
        if new is None or (new.is_deleting and (old is None or not old.is_deleting)):
            return True
        cached, snapshot = self._cache.placements().get(placement), self._cache.snapshot_of(placement)
        if cached is None or cached.metadata.deletion_timestamp is not None or snapshot is None or not self.has_synced:
            return cached is not None and cached.metadata.deletion_timestamp is not None
        policy = snapshot.spec.policy
        if policy is None or policy.cluster_affinity.required_always is None:
            return False
        try:
            before, after = (
                None if each is None else ResourceBinding.from_document(each.encoded()) for each in (old, new)
            )
        except InvalidResource:
            return True
        return binding_may_change(snapshot, before, after)

    def _cluster_changed(self, old: StoredObject | None, new: StoredObject | None) -> None:
        if not self.has_synced:
            return
        was, now = self._ticked_at, self._clock.now().timestamp()
        before, after = _read_cluster(old), _read_cluster(new)
        if old is not None and new is not None and before is not None and after is not None:
            is_heartbeat = _without_heartbeat(old) == _without_heartbeat(new)
            if is_heartbeat and ineligibility_reason(before, was) == ineligibility_reason(after, now):
                return
        self._enqueue_affected(ClusterChange(before, after, was=was, now=now))
        if old is not None and new is not None and old.labels != new.labels and self._cache.override_snapshots():
            for binding in self._cache.bindings_on(old.key.name):
                self._queues.work(binding)
                self._queues.rollout(self._cache.parents[binding])
        if old is not None and (new is None or new.is_deleting != old.is_deleting):
            for binding in self._cache.bindings_on(old.key.name):
                self._queues.work(binding)
                self._queues.rollout(self._cache.parents[binding])

    def _override_changed(self, old: StoredObject | None, new: StoredObject | None) -> None:
        """Enqueue the rollouts of the placements that an override is, or was, about."""
        about = new or old
        if about is None or not self.has_synced:
            return
        try:
            snapshot = OverrideSnapshot.from_document(about.encoded())
        except InvalidResource:
            return  # no rollout goes by it
        for key, placement in self._cache.placements().items():
            if is_affected(placement, snapshot):
                self._queues.rollout(key)

    def _enqueue_affected(self, change: ClusterChange) -> None:
        if not change.is_relevant:
            return
        for key, placement in self._cache.placements().items():
            snapshot = self._cache.snapshot_of(key)
            if snapshot is not None and change.affects(placement, snapshot):
                self._queues.scheduling(key)

    def _work_changed(self, old: StoredObject | None, new: StoredObject | None) -> None:
        about = new or old
        binding = None if about is None else binding_of(about.document())
        if binding is not None and (new is None or old is None or old.parts != new.parts or new.is_deleting):
            self._queues.work(binding)


def binding_of(work: Document) -> ObjectKey | None:
    """Return the binding of a Work; None when it has none."""
    labels = section(work, "metadata", "labels")
    name = str(labels.get(PARENT_BINDING_LABEL) or "")
    namespace = str(labels.get("kubernetes-fleet.io/parent-namespace") or "")
    return ObjectKey(binding_kind(namespace), namespace, name) if name else None


def _read_cluster(stored: StoredObject | None) -> MemberCluster | None:
    try:
        return None if stored is None else MemberCluster.from_document(stored.encoded())
    except InvalidResource:
        return None


def _without_heartbeat(stored: StoredObject) -> object:
    """Return a cluster without its heartbeat."""
    document = stored.document()
    status: Mapping[str, Any] = section(document, "status")
    agents = [
        {name: value for name, value in agent.items() if name != "lastReceivedHeartbeat"}
        for agent in status.get("agentStatus") or ()
    ]
    return stored.parts._replace(status=b""), stored.deleting_at, {**status, "agentStatus": agents}


def _status(stored: StoredObject | None) -> bytes:
    return b"" if stored is None else stored.parts.status


def _has_works(binding: StoredObject) -> bool:
    """Report whether a binding has Works, or will have: one that is only Scheduled has none."""
    return binding.is_deleting or head_of(binding).state != SCHEDULED


def _scheduling_input(stored: StoredObject | None) -> tuple[str, str, str, str]:
    if stored is None:
        return "", "", "", ""
    annotations = stored.annotations
    return (
        stored.labels.get(IS_LATEST_LABEL, ""),
        annotations.get(NUMBER_OF_CLUSTERS, ""),
        annotations.get(PLACEMENT_GENERATION, ""),
        stored.uid,
    )


def _resource_index(stored: StoredObject) -> str:
    return str(section(stored.document(), "status").get("observedResourceIndex") or "")
