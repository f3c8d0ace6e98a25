"""What changed, and which placements have to be looked at for what: an informer's callback that nudges.

It only asks for looks; a look reads the store. Which placements a cluster concerns is `fleet.triggers`' to say.
Source: KubeFleet's `pkg/scheduler/watchers`.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import structlog

from gardenbus.common.errors import InvalidResource
from gardenbus.common.ports.clock import Clock
from gardenbus.common.resources.document import Document, StoredObject, section
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.common.resources.member_clusters import MemberCluster
from gardenbus.common.resources.placement_parts import (
    IS_LATEST_LABEL,
    NUMBER_OF_CLUSTERS,
    PARENT_BINDING_LABEL,
    PLACEMENT_GENERATION,
    SCHEDULED,
    ResourceBinding,
)
from gardenbus.common.resources.placements import KINDS
from gardenbus.fleet.eligibility import objection
from gardenbus.fleet.triggers import ClusterChange, binding_may_change
from gardenbus.placement.reconcilers.knowledge import (
    BINDING_KINDS,
    CLUSTER,
    SNAPSHOT_KINDS,
    Knowledge,
    head_of,
    parent_of,
)

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

WORK = "work"
EVICTION = "clusterresourceplacementeviction"

Nudge = Callable[[ObjectKey], None]


class Queues(NamedTuple):
    """How a look is asked for, by what it is for."""

    snapshots: Nudge
    scheduling: Nudge
    status: Nudge
    rollout: Nudge
    eviction: Nudge
    work: Nudge


class Watch:
    """See the module. `changed` is the callback, `tick` to be called from time to time."""

    def __init__(self, knowledge: Knowledge, queues: Queues, clock: Clock) -> None:
        self._known = knowledge
        self._queues = queues
        self._clock = clock
        self._ticked_at = clock.now().timestamp()
        self.is_settled = False
        """Whether the first list is in: until then each placement is looked at anyway."""

    def changed(self, key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        """Nudge what a change concerns."""
        if key.kind in KINDS:
            self._placement_changed(key, old, new)
        elif key.kind in SNAPSHOT_KINDS:
            self._snapshot_changed(key, old, new)
        elif key.kind in BINDING_KINDS:
            self._binding_changed(key, old, new)
        elif key.kind == CLUSTER:
            self._cluster_changed(old, new)
        elif key.kind == WORK:
            self._work_changed(old, new)
        elif key.kind == EVICTION and new is not None and (old is None or _beyond_status(old) != _beyond_status(new)):
            self._queues.eviction(key)

    def tick(self) -> None:
        """Nudge the placements whose answer the passing of time may change, as heartbeats go stale."""
        was, now = self._ticked_at, self._clock.now().timestamp()
        self._ticked_at = now
        for cluster in self._known.clusters().values():
            if objection(cluster, was) != objection(cluster, now):
                self._concern(ClusterChange.of(cluster, cluster, was=was, now=now))

    def _placement_changed(self, key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        if new is None:
            return
        if old is None or _beyond_status(old) != _beyond_status(new):
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
        before, after = (_meaning_of_snapshot(each) for each in (old, new))
        if new is None:
            self._queues.snapshots(placement)
        elif before != after and after[0] == "true":
            self._queues.scheduling(placement)
        if _status(old) != _status(new) or before != after:
            if new is not None and after[0] == "true" and self._is_doubtful(placement):
                self._queues.scheduling(placement)
            self._queues.status(placement)

    def _is_doubtful(self, placement: ObjectKey) -> bool:
        """Whether a cluster that changed while an outcome was decided could alter it.

        Such a change is known here before the outcome is, and was judged by the outcome before.
        """
        snapshot, clusters = self._known.snapshot_of(placement), self._known.clusters()
        if snapshot is None or not self.is_settled:
            return False
        stated = next((each for each in snapshot.status.conditions if each.type == "Scheduled"), None)
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
        placement = self._known.parents.get(key) or parent_of(key, about)
        if self._calls_for_a_cycle(placement, old, new):
            self._queues.scheduling(placement)
        self._queues.rollout(placement)
        self._queues.status(placement)
        if new is not None and _concerns_works(new) and (old is None or _beyond_status(old) != _beyond_status(new)):
            self._queues.work(key)

    def _calls_for_a_cycle(self, placement: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> bool:
        if new is None or (new.is_deleting and (old is None or not old.is_deleting)):
            return True
        known, snapshot = self._known.placements().get(placement), self._known.snapshot_of(placement)
        if known is None or known.metadata.deletion_timestamp is not None or snapshot is None or not self.is_settled:
            return known is not None and known.metadata.deletion_timestamp is not None
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
        if not self.is_settled:
            return
        was, now = self._ticked_at, self._clock.now().timestamp()
        before, after = _cluster(old), _cluster(new)
        if old is not None and new is not None and before is not None and after is not None:
            is_heartbeat = _but_heartbeat(old) == _but_heartbeat(new)
            if is_heartbeat and objection(before, was) == objection(after, now):
                return
        self._concern(ClusterChange.of(before, after, was=was, now=now))
        if old is not None and (new is None or new.is_deleting != old.is_deleting):
            for binding in self._known.bindings_on(old.key.name):
                self._queues.work(binding)
                self._queues.rollout(self._known.parents[binding])

    def _concern(self, change: ClusterChange) -> None:
        if not change.matters:
            return
        for key, placement in self._known.placements().items():
            snapshot = self._known.snapshot_of(key)
            if snapshot is not None and change.touches(placement, snapshot):
                self._queues.scheduling(key)

    def _work_changed(self, old: StoredObject | None, new: StoredObject | None) -> None:
        about = new or old
        binding = None if about is None else binding_of(about.document())
        if binding is not None and (new is None or old is None or old.parts != new.parts or new.is_deleting):
            self._queues.work(binding)


def binding_of(work: Document) -> ObjectKey | None:
    """The binding that a Work carries out; None when it is nobody's."""
    labels = section(work, "metadata", "labels")
    name = str(labels.get(PARENT_BINDING_LABEL) or "")
    namespace = str(labels.get("kubernetes-fleet.io/parent-namespace") or "")
    kind = BINDING_KINDS[1] if namespace else BINDING_KINDS[0]
    return ObjectKey(kind, namespace, name) if name else None


def _cluster(stored: StoredObject | None) -> MemberCluster | None:
    try:
        return None if stored is None else MemberCluster.from_document(stored.encoded())
    except InvalidResource:
        return None


def _but_heartbeat(stored: StoredObject) -> object:
    """What a cluster tells besides that it is alive."""
    document = stored.document()
    status: Mapping[str, Any] = section(document, "status")
    agents = [
        {name: value for name, value in agent.items() if name != "lastReceivedHeartbeat"}
        for agent in status.get("agentStatus") or ()
    ]
    return stored.parts._replace(status=b""), stored.deleting_at, {**status, "agentStatus": agents}


def _beyond_status(stored: StoredObject) -> object:
    return stored.uid, stored.deleting_at, stored.parts._replace(status=b"")


def _status(stored: StoredObject | None) -> bytes:
    return b"" if stored is None else stored.parts.status


def _concerns_works(binding: StoredObject) -> bool:
    """Whether there are Works of a binding, or shall be: not of one that was scheduled only."""
    return binding.is_deleting or head_of(binding).state != SCHEDULED


def _meaning_of_snapshot(stored: StoredObject | None) -> tuple[str, str, str, str]:
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
