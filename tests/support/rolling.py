"""Bindings on their way, for decisions; and a store with all of the placement service and agents that obey."""

from collections.abc import Iterable, Sequence
from typing import Any

from gardenbus.common.api.document import Document, StoredObject, section
from gardenbus.common.api.fleet.overrides import OVERRIDE_KINDS
from gardenbus.common.api.fleet.placement_parts import PREVIOUS_STATE, ResourceBinding, of
from gardenbus.common.api.fleet.works import CLEANED_UP
from gardenbus.common.api.keys import CLUSTER_SCOPE, ObjectKey
from gardenbus.common.controller.controller import ReconcileRequest
from gardenbus.common.errors import Conflict, Transient
from gardenbus.common.ports.clock import timestamp
from gardenbus.common.ports.store import Store
from gardenbus.placement.controllers.eviction import EvictionReconciler
from gardenbus.placement.controllers.override import OverrideReconciler
from gardenbus.placement.controllers.rollout import RolloutReconciler
from gardenbus.placement.controllers.work import WorkGeneratorReconciler
from tests.support.fleets import at
from tests.support.placements import WEB, Bench
from tests.support.stores import StoreUnderTest

LATEST = "web-1-snapshot"
EARLIER = "web-0-snapshot"
READY = ("True", "AllWorkAreAvailable")
UNTRACKABLE = ("True", "NotAllWorkAreAvailabilityTrackable")
FAILED = ("False", "NotAllWorkAreAvailable")
PENDING = ("False", "ResourceNotAvailableYet")


def on_its_way(
    cluster: str,
    state: str = "Bound",
    available: tuple[str, str] | None = READY,
    *,
    resources: str = LATEST,
    previous: str | None = None,
    generation: int = 1,
    observed: int | None = None,
    since: float = -3600,
    started: str | None = "True",
    deleting: float | None = None,
    name: str | None = None,
    **more: Document,
) -> ResourceBinding:
    """A binding with its condition `Available`; times in seconds from NOW."""
    seen = generation if observed is None else observed
    conditions: list[Document] = []
    if started is not None:
        conditions.append({"type": "RolloutStarted", "status": started, "observedGeneration": seen})
    if available is not None:
        conditions.append(
            {
                "type": "Available",
                "status": available[0],
                "reason": available[1],
                "observedGeneration": seen,
                "lastTransitionTime": at(since),
            }
        )
    metadata: Document = {"name": name or f"web-{cluster}", "generation": generation}
    if previous is not None:
        metadata["annotations"] = {PREVIOUS_STATE: previous}
    if deleting is not None:
        metadata["deletionTimestamp"] = at(deleting)
    spec = {"state": state, "targetCluster": cluster, "resourceSnapshotName": resources, **more}
    return ResourceBinding.from_document({"metadata": metadata, "spec": spec, "status": {"conditions": conditions}})


def unscheduled(cluster: str, available: tuple[str, str] | None = READY, **more: Any) -> ResourceBinding:
    """A binding that was Bound before it was given up."""
    previous: Any = more.pop("previous", "Bound")
    return on_its_way(cluster, "Unscheduled", available, previous=previous, **more)


def scheduled(cluster: str, **more: Any) -> ResourceBinding:
    """A binding that nobody has handed out yet."""
    return on_its_way(cluster, "Scheduled", None, resources="", started=None, **more)


class RollingBench(Bench):
    """The whole placement service, with agents: `broken` ones apply in vain, `silent` ones do nothing."""

    def __init__(self, kit: StoreUnderTest | None = None, store: Store | None = None) -> None:
        super().__init__(kit, store)
        self.broken: set[str] = set()
        self.silent: set[str] = set()
        self.rollout = RolloutReconciler(self.store, self.clock, self.cache)
        self.evictions = EvictionReconciler(self.store, self.clock)
        self.works = WorkGeneratorReconciler(self.store, self.clock)
        self.overrides = OverrideReconciler(self.store)

    async def everything(self, placement: ObjectKey = WEB) -> None:
        """Each sort of look once, and what agents do then."""
        await self.snapshot_overrides()
        await self.reconcile_once(placement)
        await self.roll(placement)
        await self.work(placement)
        await self.agents()

    async def rest(self, placement: ObjectKey = WEB, *, rounds: int = 60) -> None:
        """Look, and let agents work, until nothing changes any more."""
        for _ in range(rounds):
            before = await self.version()
            try:
                await self.everything(placement)
            except Transient:
                continue
            if await self.version() == before:
                return
        raise AssertionError("it does not come to rest")

    async def roll(self, placement: ObjectKey = WEB) -> None:
        await self.cache.read(self.kit.store)
        await self.rollout.reconcile(a_request(placement, "placementrollout"))

    async def snapshot_overrides(self) -> None:
        """Look at every override."""
        for kind in OVERRIDE_KINDS:
            for override in (await self.kit.store.list_page(kind)).objects:
                await self.overrides.reconcile(a_request(override.key, "placementoverride"))

    async def work(self, placement: ObjectKey = WEB) -> None:
        for binding in await self.bindings(placement):
            await self.works.reconcile(a_request(binding.key, "placementwork"))

    async def evict(self, name: str) -> Document:
        """Look at an eviction until it is judged, and answer it."""
        key = ObjectKey("clusterresourceplacementeviction", "", name)
        for _ in range(5):
            try:
                await self.evictions.reconcile(a_request(key, "placementeviction"))
            except Conflict:
                continue
            break
        return await self.get(key)

    async def agents(self) -> None:
        """What the agents of all clusters do with the Works addressed to them."""
        for work in await self.all_works():
            cluster = work.key.namespace.removeprefix("fleet-member-")
            if cluster in self.silent or cluster not in self.cache.clusters():
                continue
            document = work.document()
            document["status"] = self._respond(work, cluster)
            await self.kit.changed(work, document)

    def _respond(self, work: StoredObject, cluster: str) -> Document:
        now, is_broken = timestamp(self.clock.now()), cluster in self.broken
        if work.is_deleting:
            return {"conditions": [a_condition("Applied", ("False", CLEANED_UP), work.generation, now)]}
        applied = ("False", "ManifestsNotApplied") if is_broken else ("True", "ManifestsApplied")
        available = ("False", "ManifestsNotAvailable") if is_broken else ("True", "ManifestsAvailable")
        status: Document = {"conditions": [a_condition("Applied", applied, work.generation, now)]}
        if is_broken:
            failed = a_condition("Applied", applied, 0, now)
            manifest = {"identifier": {"kind": "Namespace", "version": "v1", "name": "web"}, "conditions": [failed]}
            status["manifestConditions"] = [manifest]
        else:
            status["conditions"].append(a_condition("Available", available, work.generation, now))
        return status

    async def bindings(self, placement: ObjectKey = WEB) -> Sequence[StoredObject]:
        page = await self.kit.store.list_page(of(placement.kind).binding.lower(), placement.namespace or None)
        return page.objects

    async def views(self, placement: ObjectKey = WEB) -> list[ResourceBinding]:
        return [ResourceBinding.from_document(each.encoded()) for each in await self.bindings(placement)]

    async def all_works(self) -> Sequence[StoredObject]:
        return (await self.kit.store.list_page("work")).objects

    async def on_clusters(self) -> dict[str, Iterable[str]]:
        """The names of the Works in each cluster's namespace."""
        found: dict[str, list[str]] = {}
        for work in await self.all_works():
            found.setdefault(work.key.namespace.removeprefix("fleet-member-"), []).append(work.key.name)
        return {cluster: sorted(names) for cluster, names in found.items()}

    async def resources_of(self) -> dict[str, str]:
        """The resource snapshot of the binding on each cluster."""
        specs = [section(each.document(), "spec") for each in await self.bindings()]
        return {str(spec["targetCluster"]): str(spec["resourceSnapshotName"]) for spec in specs}


def a_condition(kind: str, reported: tuple[str, str], generation: int, now: str) -> Document:
    return {
        "type": kind,
        "status": reported[0],
        "reason": reported[1],
        "message": "so it is",
        "observedGeneration": generation,
        "lastTransitionTime": now,
    }


def a_request(key: ObjectKey, controller: str) -> ReconcileRequest:
    """The work that a queue would hand out."""
    tail = f"{key.namespace or CLUSTER_SCOPE}.{key.name}"
    subject = f"garden.queue.{controller}.{tail}"
    return ReconcileRequest(subject=subject, tail=tail, attempt=0, deliveries=1, reconcile_id="test", queued_ms=0)


def an_eviction(name: str, cluster: str, placement: str = "web") -> Document:
    """A ClusterResourcePlacementEviction."""
    return {
        "apiVersion": "placement.kubernetes-fleet.io/v1beta1",
        "kind": "ClusterResourcePlacementEviction",
        "metadata": {"name": name},
        "spec": {"placementName": placement, "clusterName": cluster},
    }


def a_budget(placement: str = "web", **spec: int | str) -> Document:
    """A ClusterResourcePlacementDisruptionBudget."""
    return {
        "apiVersion": "placement.kubernetes-fleet.io/v1beta1",
        "kind": "ClusterResourcePlacementDisruptionBudget",
        "metadata": {"name": placement},
        "spec": spec,
    }
