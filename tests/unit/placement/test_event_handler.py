"""Which changes make which placement look, and for what."""

from collections import defaultdict
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from gardenbus.common.api.document import Document, StoredObject, split
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.clock import timestamp
from gardenbus.placement.watch.event_handler import PlacementEventHandler, PlacementQueues
from gardenbus.placement.watch.placement_cache import PlacementCache
from tests.support.builders import merged
from tests.support.clocks import FakeClock
from tests.support.placements import WEB, a_crp, a_live_cluster, pick_n

API = "placement.kubernetes-fleet.io/v1beta1"
OWNED = {"kubernetes-fleet.io/parent-CRP": "web"}
SNAPSHOT = ObjectKey("clusterschedulingpolicysnapshot", "", "web-0")
BINDING = ObjectKey("clusterresourcebinding", "", "web-a-1")


def stored(document: Document, deleting_at: str = "") -> StoredObject:
    metadata = document["metadata"]
    key = ObjectKey(document["kind"].lower(), metadata.get("namespace", ""), metadata["name"])
    return StoredObject(
        key=key,
        parts=split(document),
        uid="uid",
        version=1,
        generation=1,
        created_at="2026-01-02T03:04:05Z",
        deleting_at=deleting_at,
    )


def a_snapshot(changes: Document | None = None, *, fulfilled: bool = True) -> Document:
    reason = "SchedulingPolicyFulfilled" if fulfilled else "SchedulingPolicyUnfulfilled"
    condition = {"type": "Scheduled", "status": str(fulfilled), "reason": reason, "observedGeneration": 1}
    document = {
        "apiVersion": API,
        "kind": "ClusterSchedulingPolicySnapshot",
        "metadata": {
            "name": "web-0",
            "labels": {**OWNED, "kubernetes-fleet.io/is-latest-snapshot": "true"},
            "annotations": {"kubernetes-fleet.io/CRP-generation": "1", "kubernetes-fleet.io/number-of-clusters": "2"},
        },
        "spec": {"policy": {"placementType": "PickN"}},
        "status": {"observedCRPGeneration": 1, "conditions": [condition], "targetClusters": []},
    }
    return merged(document, changes or {})


def a_binding(state: str = "Scheduled", **changes: Any) -> Document:
    document = {
        "apiVersion": API,
        "kind": "ClusterResourceBinding",
        "metadata": {"name": "web-a-1", "labels": OWNED},
        "spec": {"state": state, "targetCluster": "a"},
    }
    return merged(document, changes)


class EventHandlerBench:
    """A watch on what was announced, and what it has requested since."""

    def __init__(self, *documents: Document) -> None:
        self.clock = FakeClock()
        self.enqueued: dict[str, set[ObjectKey]] = defaultdict(set)
        self.lister = PlacementCache(self.clock)
        queues = PlacementQueues(*(self._recording(name) for name in PlacementQueues._fields))
        self.event_handler = PlacementEventHandler(self.lister, queues, self.clock)
        self._objects: dict[ObjectKey, StoredObject] = {}
        for document in documents:
            self.announce(stored(document))
        self.event_handler.has_synced = True
        self.enqueued.clear()

    def _recording(self, name: str) -> Callable[[ObjectKey], None]:
        def query(key: ObjectKey) -> None:
            self.enqueued[name].add(key)

        return query

    def announce(self, new: StoredObject) -> dict[str, set[ObjectKey]]:
        """What is asked for when this is announced."""
        self.enqueued.clear()
        old = self._objects.get(new.key)
        self._objects[new.key] = new
        self.lister.changed(new.key, old, new)
        self.event_handler.changed(new.key, old, new)
        return dict(self.enqueued)

    def announce_gone(self, key: ObjectKey) -> dict[str, set[ObjectKey]]:
        self.enqueued.clear()
        old = self._objects.pop(key)
        self.lister.changed(key, old, None)
        self.event_handler.changed(key, old, None)
        return dict(self.enqueued)


def a_cluster(name: str, clock: FakeClock, **changes: Any) -> StoredObject:
    return stored(a_live_cluster(name, clock, **changes))


CRP = merged(a_crp(policy=pick_n(2)), {"metadata": {"generation": 1}})


def test_a_new_placement_is_looked_at_for_everything() -> None:
    enqueued = EventHandlerBench().announce(stored(CRP))
    assert enqueued == {name: {WEB} for name in ("snapshots", "scheduling", "status", "rollout")}


def test_what_is_told_of_a_placement_asks_for_nothing() -> None:
    watched = EventHandlerBench(CRP)
    assert watched.announce(stored({**CRP, "status": {"conditions": []}})) == {}
    assert watched.announce(stored({**CRP, "status": {"observedResourceIndex": "1"}})) == {"rollout": {WEB}}


def test_a_snapshot_calls_for_a_cycle_when_number_or_generation_change() -> None:
    watched = EventHandlerBench(CRP, a_snapshot())
    number = {"metadata": {"annotations": {"kubernetes-fleet.io/number-of-clusters": "3"}}}
    assert watched.announce(stored(a_snapshot(number)))["scheduling"] == {WEB}
    cycle = merged(number, {"metadata": {"annotations": {"placement.gardenbus.io/cycle": "1"}}})
    assert watched.announce(stored(a_snapshot(cycle))) == {}


def test_an_outcome_that_lacks_clusters_is_looked_at_once_more() -> None:
    watched = EventHandlerBench(CRP, a_snapshot())
    assert watched.announce(stored(a_snapshot(fulfilled=False))) == {"scheduling": {WEB}, "status": {WEB}}
    assert watched.announce(stored(a_snapshot())) == {"status": {WEB}}


def test_an_outcome_with_a_cluster_that_has_left_meanwhile_is_looked_at_once_more() -> None:
    watched = EventHandlerBench(CRP, a_snapshot())
    watched.announce(a_cluster("a", watched.clock))
    chosen = {"status": {"targetClusters": [{"clusterName": "a", "selected": True, "reason": ""}]}}
    assert watched.announce(stored(a_snapshot(chosen))) == {"status": {WEB}}
    watched.announce(stored(a_snapshot()))
    watched.announce(stored(a_live_cluster("a", watched.clock), deleting_at="2026-01-02T03:04:05Z"))
    assert watched.announce(stored(a_snapshot(chosen))) == {"scheduling": {WEB}, "status": {WEB}}


def test_a_snapshot_that_is_taken_away_is_made_again() -> None:
    assert EventHandlerBench(CRP, a_snapshot()).announce_gone(SNAPSHOT)["snapshots"] == {WEB}


def test_a_binding_is_for_its_rollout_and_once_bound_for_its_works() -> None:
    watched = EventHandlerBench(CRP, a_snapshot())
    assert watched.announce(stored(a_binding())) == {"rollout": {WEB}, "status": {WEB}}
    assert watched.announce(stored(a_binding("Bound"))) == {"rollout": {WEB}, "status": {WEB}, "work": {BINDING}}
    updated = a_binding("Bound", status={"conditions": []})
    assert "work" not in watched.announce(stored({**updated, "status": {"conditions": [{"type": "Applied"}]}}))


def test_a_binding_that_leaves_or_is_gone_calls_for_a_cycle() -> None:
    watched = EventHandlerBench(CRP, a_snapshot(), a_binding("Bound"))
    enqueued = watched.announce(stored(a_binding("Bound"), deleting_at="2026-01-02T03:04:05Z"))
    assert enqueued["scheduling"] == {WEB}
    assert enqueued["work"] == {BINDING}
    assert watched.announce_gone(BINDING)["scheduling"] == {WEB}
    assert watched.lister.bindings_of(WEB) == []


def test_a_new_cluster_is_for_those_that_lack_some() -> None:
    lacking = EventHandlerBench(CRP, a_snapshot(fulfilled=False))
    assert lacking.announce(a_cluster("a", lacking.clock)) == {"scheduling": {WEB}}
    content = EventHandlerBench(CRP, a_snapshot())
    assert content.announce(a_cluster("a", content.clock)) == {}


def test_a_heartbeat_is_no_news_unless_the_cluster_had_been_given_up() -> None:
    watched = EventHandlerBench(CRP, a_snapshot(fulfilled=False))
    watched.announce(a_cluster("a", watched.clock))
    since = timestamp(watched.clock.now())
    watched.clock.advance(60)
    again = a_live_cluster("a", watched.clock)
    for condition in again["status"]["agentStatus"][0]["conditions"]:
        condition["lastTransitionTime"] = since
    assert watched.announce(stored(again)) == {}
    watched.clock.advance(301)
    watched.event_handler.tick()
    assert watched.enqueued == {"scheduling": {WEB}}
    watched.enqueued.clear()
    watched.event_handler.tick()
    assert watched.enqueued == {}
    back = merged(again, {})
    back["status"]["agentStatus"][0]["lastReceivedHeartbeat"] = timestamp(watched.clock.now() + timedelta(0))
    assert watched.announce(stored(back)) == {"scheduling": {WEB}}


def test_a_cluster_that_goes_is_told_to_all_that_is_on_it() -> None:
    watched = EventHandlerBench(CRP, a_snapshot(), a_binding("Bound"))
    watched.announce(a_cluster("a", watched.clock))
    enqueued = watched.announce_gone(ObjectKey("membercluster", "", "a"))
    assert enqueued["work"] == {BINDING}
    assert enqueued["rollout"] == {WEB}


def test_a_work_is_for_its_binding() -> None:
    work = {
        "apiVersion": API,
        "kind": "Work",
        "metadata": {
            "name": "web-work",
            "namespace": "fleet-member-a",
            "labels": {"kubernetes-fleet.io/parent-resource-binding": "web-a-1"},
        },
        "spec": {},
    }
    assert EventHandlerBench().announce(stored(work)) == {"work": {BINDING}}
    labels = {"kubernetes-fleet.io/parent-namespace": "web"}
    enqueued = EventHandlerBench().announce(stored(merged(work, {"metadata": {"labels": labels}})))
    assert enqueued == {"work": {ObjectKey("resourcebinding", "web", "web-a-1")}}


def test_an_eviction_is_looked_at_until_it_is_told() -> None:
    eviction = {
        "apiVersion": API,
        "kind": "ClusterResourcePlacementEviction",
        "metadata": {"name": "off"},
        "spec": {"placementName": "web", "clusterName": "a"},
    }
    watched = EventHandlerBench()
    key = ObjectKey("clusterresourceplacementeviction", "", "off")
    assert watched.announce(stored(eviction)) == {"eviction": {key}}
    assert watched.announce(stored({**eviction, "status": {"conditions": [{"type": "Valid"}]}})) == {}
