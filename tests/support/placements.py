"""A store with placements and clusters, and the service's looks at them one after another, in memory."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Self

from gardenbus.common.api.document import Document, StoredObject, section
from gardenbus.common.api.fleet.overrides import SNAPSHOT_KINDS
from gardenbus.common.api.fleet.placement_parts import of
from gardenbus.common.api.fleet.placements import CLUSTER_KIND
from gardenbus.common.api.keys import CLUSTER_SCOPE, ObjectKey
from gardenbus.common.controller.controller import ReconcileRequest, ReconcileResult
from gardenbus.common.errors import Transient
from gardenbus.common.ports.clock import Clock, timestamp
from gardenbus.common.ports.store import Store
from gardenbus.placement.controllers.scheduling import SchedulingReconciler
from gardenbus.placement.controllers.snapshot import SnapshotReconciler
from gardenbus.placement.controllers.status import StatusReconciler
from gardenbus.placement.watch.placement_cache import PlacementCache
from tests.support.builders import merged
from tests.support.stores import StoreUnderTest, in_memory, stored

WEB = ObjectKey(CLUSTER_KIND, "", "web")
_API_VERSION = "placement.kubernetes-fleet.io/v1beta1"


def a_crp(name: str = "web", policy: Document | None = None, **changes: Any) -> Document:
    """A ClusterResourcePlacement of the ConfigMap-like namespace `web`."""
    spec: Document = {
        "resourceSelectors": [{"group": "", "version": "v1", "kind": "Namespace", "name": "web"}],
        **({} if policy is None else {"policy": policy}),
    }
    document: Document = {
        "apiVersion": _API_VERSION,
        "kind": "ClusterResourcePlacement",
        "metadata": {"name": name},
        "spec": spec,
    }
    return merged(document, changes)


def pick_n(number: int, **more: Any) -> Document:
    """A policy PickN."""
    return {"placementType": "PickN", "numberOfClusters": number, **more}


def a_live_cluster(name: str, clock: Clock, labels: Mapping[str, str] | None = None, **changes: Any) -> Document:
    """A MemberCluster that joined and is heard at this moment."""
    now = timestamp(clock.now())
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": now} for kind in ("Joined", "Healthy")]
    document: Document = {
        "apiVersion": "cluster.kubernetes-fleet.io/v1beta1",
        "kind": "MemberCluster",
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {},
        "status": {
            "agentStatus": [{"type": "MemberAgent", "conditions": conditions, "lastReceivedHeartbeat": now}],
        },
    }
    return merged(document, changes)


def request_for(placement: ObjectKey, controller: str = "placement") -> ReconcileRequest:
    """The work that a queue would hand out."""
    tail = f"{placement.namespace or CLUSTER_SCOPE}.{placement.name}"
    subject = f"garden.queue.{controller}.{tail}"
    return ReconcileRequest(subject=subject, tail=tail, attempt=0, deliveries=1, reconcile_id="test", queued_ms=0)


class StoreCache(PlacementCache):
    """Clusters and overrides as the store has them: what an informer that is never behind would know."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self._read: dict[ObjectKey, StoredObject] = {}

    async def read(self, store: Store) -> Self:
        """Look at the store."""
        page = await store.list_page("membercluster")
        there = {each.key.name: each for each in page.objects}
        for name in {*self.clusters(), *there}:
            self.changed(ObjectKey("membercluster", "", name), None, there.get(name))
        for kind in SNAPSHOT_KINDS:
            snapshots = {each.key: each for each in (await store.list_page(kind)).objects}
            for key, gone in self._read.items():
                if key.kind == kind and key not in snapshots:
                    self.changed(key, gone, None)
            self._read = {key: each for key, each in self._read.items() if key.kind != kind} | snapshots
            for key, each in snapshots.items():
                self.changed(key, None, each)
        return self


class Bench:
    """A store in memory (or one that breaks) and the reconcilers that work on it."""

    def __init__(self, kit: StoreUnderTest | None = None, store: Store | None = None) -> None:
        self.kit = kit or in_memory()
        self.store = store or self.kit.store
        self.clock = self.kit.clock
        self.cache = StoreCache(self.clock)
        self.snapshots = SnapshotReconciler(
            self.store, self.clock, self.cache, collection=timedelta(0), interval=timedelta(0)
        )
        self.scheduling = SchedulingReconciler(self.store, self.clock, self.cache, lambda _: None)
        self.status = StatusReconciler(self.store, self.clock)

    async def add(self, *documents: Document) -> None:
        for document in documents:
            stored(await self.kit.store.create(document))

    async def clusters(self, *names: str, **labels: str) -> None:
        await self.add(*(a_live_cluster(name, self.clock, labels) for name in names))

    async def reconcile_once(self, placement: ObjectKey = WEB) -> list[ReconcileResult]:
        """Each sort of look once."""
        await self.cache.read(self.kit.store)
        return [await each.reconcile(request_for(placement)) for each in (self.snapshots, self.scheduling, self.status)]

    async def converge(self, placement: ObjectKey = WEB) -> None:
        """Look until nothing changes any more."""
        for _ in range(20):
            before = await self.version()
            try:
                await self.reconcile_once(placement)
            except Transient:
                continue
            if await self.version() == before:
                return
        raise AssertionError("it does not come to rest")

    async def version(self) -> int:
        return (await self.kit.store.list_page("membercluster", limit=1)).version

    async def get(self, key: ObjectKey = WEB) -> Document:
        return (await self.kit.now(key)).document()

    async def change(self, patch: Document, key: ObjectKey = WEB) -> None:
        base = await self.kit.now(key)
        await self.kit.changed(base, merged(base.document(), patch))

    async def parts(self, kind: str, placement: ObjectKey = WEB) -> list[Document]:
        """Parts of a placement by the field of PartKinds."""
        singular = getattr(of(placement.kind), kind).lower()
        page = await self.kit.store.list_page(singular, placement.namespace or None)
        return [each.document() for each in page.objects]

    async def states(self, placement: ObjectKey = WEB) -> dict[str, str]:
        """The state of the binding on each cluster."""
        bindings = [section(each, "spec") for each in await self.parts("binding", placement)]
        return {str(spec["targetCluster"]): str(spec["state"]) for spec in bindings}


def a_namespace(name: str = "web") -> Document:
    """A namespace to be placed."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def a_configmap(name: str = "settings", namespace: str = "web", **data: str) -> Document:
    """Something in it."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": data,
    }
