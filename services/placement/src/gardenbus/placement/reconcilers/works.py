"""Makes the Works of bindings, and tells in the bindings what comes of them.

| binding                              | what is done                                                        |
|--------------------------------------|---------------------------------------------------------------------|
| Scheduled, or never Bound            | nothing                                                             |
| Bound, or given up after that        | held by a finalizer; Works made and kept as its resources are       |
| on a cluster that leaves             | Works stay as they are, as the agent takes all of them off          |
| being deleted                        | Works deleted; let go once they are gone                            |
| being deleted, its cluster is gone   | Works removed at once, as no agent is left to take them off         |

Each write to a Work holds only while the binding has the version that was read: no Work comes about once its binding is
being deleted. A Work that is being deleted is removed when its agent says that nothing of it is left.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

import structlog

from gardenbus.common.errors import AlreadyExists
from gardenbus.common.machinery.controller import After, Done, Outcome, WorkRequest
from gardenbus.common.ports.clock import Clock, timestamp
from gardenbus.common.ports.store import Guard, Store
from gardenbus.common.resources.document import Document, StoredObject, section
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.common.resources.placement_parts import WORK_CLEANUP, ResourceBinding, of
from gardenbus.common.resources.placements import CLUSTER_KIND, NAMESPACED_KIND
from gardenbus.common.resources.works import WORK_KIND, Work
from gardenbus.fleet.availability import may_be_placed
from gardenbus.placement.decide.bindings import with_finalizer, without_finalizer
from gardenbus.placement.decide.works import is_made_from, renewed, with_obstacle, with_progress, works_of
from gardenbus.placement.reconcilers import rolling_counters as counters
from gardenbus.placement.reconcilers.known import Known
from gardenbus.placement.reconcilers.resource_groups import group_of
from gardenbus.placement.reconcilers.writing import deleted, unchanged, written

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

LEAVING_SECONDS = 30.0
"""When to look again at Works that are being taken off, should no news come."""

OBSTACLE_SECONDS = 5.0
"""When to look again after Works could not be made."""

GROUPS_MAX = 16
"""Resource snapshots kept in memory: many bindings of a placement are looked at one after the other."""


class _Surroundings(NamedTuple):
    cluster: StoredObject | None
    works: Sequence[StoredObject]


class _Synced(NamedTuple):
    written: int = 0
    obstacle: str = ""
    failed: bool = False


class WorkReconciler:
    """Looks at one binding at a time; any number of them, in any number of processes, may look at once."""

    def __init__(self, store: Store, clock: Clock, known: Known) -> None:
        self._store = store
        self._clock = clock
        self._known = known
        self._groups: OrderedDict[tuple[str, ObjectKey], Sequence[Document]] = OrderedDict()

    async def reconcile(self, request: WorkRequest) -> Outcome:
        """Look at a binding. Raises Conflict, Unavailable."""
        stored = await self._store.get(binding_key(request))
        if stored is None:
            return Done("it is gone")
        binding = ResourceBinding.from_document(stored.encoded())
        if not binding.is_deleting and not may_be_placed(binding):
            return Done("it is not Bound")
        around = await self._surroundings(stored, binding)
        if binding.is_deleting:
            return await self._leave(stored, around)
        if around.cluster is None:
            return Done("its cluster is gone")
        await self._remove_cleaned_up(around.works)
        if WORK_CLEANUP not in stored.parts.finalizers:
            stored = await written(self._store, stored, with_finalizer(stored.document(), WORK_CLEANUP))
        if around.cluster.is_deleting:
            return Done("its cluster leaves")
        return await self._keep(stored, binding, around)

    async def _surroundings(self, stored: StoredObject, binding: ResourceBinding) -> _Surroundings:
        keys = [key for key in await self._store.dependents(stored.uid) if key.kind == WORK_KIND]
        cluster, *works = await self._store.get_many(
            [ObjectKey("membercluster", "", binding.spec.target_cluster), *keys]
        )
        return _Surroundings(cluster, [each for each in works if each is not None])

    async def _keep(self, stored: StoredObject, binding: ResourceBinding, around: _Surroundings) -> Outcome:
        synced = await self._sync(stored, binding, around)
        now, present = timestamp(self._clock.now()), stored.document()
        if synced.obstacle:
            told = with_obstacle(present, synced.obstacle, now, failed=synced.failed)
        else:
            works = [Work.from_document(each.encoded()) for each in around.works if not each.is_deleting]
            told = with_progress(present, works, now, written=synced.written > 0)
        if told != present:
            await written(self._store, stored, told)
        if synced.written:
            log.info(
                "works.written", binding=str(stored.key), cluster=binding.spec.target_cluster, works=synced.written
            )
        return After(OBSTACLE_SECONDS, synced.obstacle) if synced.obstacle else Done()

    async def _sync(self, stored: StoredObject, binding: ResourceBinding, around: _Surroundings) -> _Synced:
        """Make the Works as they are to be, as far as that can be done."""
        parts = await self._parts(stored, binding.spec.resource_snapshot_name)
        living = {each.key: each for each in around.works if not each.is_deleting}
        if parts is None:
            views = [Work.from_document(each.encoded()) for each in living.values()]
            if views and all(is_made_from(each, binding.spec.resource_snapshot_name) for each in views):
                return _Synced()  # they were made before the snapshot went
            return _Synced(obstacle=f"There is no {binding.spec.resource_snapshot_name} to make Works of.", failed=True)
        leaving = {each.key for each in around.works if each.is_deleting}
        guards, count = [unchanged(stored)], 0
        wanted = {_key(each): each for each in works_of(stored.document(), parts)}
        for key, work in wanted.items():
            if key in leaving:
                return _Synced(obstacle=f"{key} is still being taken off.")
            try:
                count += await self._put(living.get(key), work, guards)
            except AlreadyExists:
                return _Synced(obstacle=f"{key} is still that of an earlier binding.")
        for key, work in living.items():
            if key not in wanted:
                await deleted(self._store, work, guards)
                counters.WORKS.labels("deleted").inc()
                count += 1
        return _Synced(written=count)

    async def _put(self, present: StoredObject | None, wanted: Document, guards: Sequence[Guard]) -> int:
        """Create or change one Work; how many were written."""
        if present is None:
            await self._store.create(wanted, guards=guards)
            counters.WORKS.labels("created").inc()
            return 1
        document = present.document()
        new = renewed(document, wanted)
        if new == document:
            return 0
        await written(self._store, present, new, guards)
        counters.WORKS.labels("changed").inc()
        return 1

    async def _parts(self, stored: StoredObject, snapshot: str) -> Sequence[Document] | None:
        """The parts of a resource snapshot, which do not change; None when they are not there."""
        placement_kind = NAMESPACED_KIND if stored.key.namespace else CLUSTER_KIND
        key = ObjectKey(of(placement_kind).resource_snapshot.lower(), stored.key.namespace, snapshot)
        place = (_owner_uid(stored), key)
        if place in self._groups:
            self._groups.move_to_end(place)
            return self._groups[place]
        group = await group_of(self._store, key) if snapshot else None
        if group is None:
            return None
        parts = [each.document() for each in group]
        self._groups[place] = parts
        if len(self._groups) > GROUPS_MAX:
            self._groups.popitem(last=False)
        return parts

    async def _leave(self, stored: StoredObject, around: _Surroundings) -> Outcome:
        """Take the Works of a binding off, and let it go once they are gone."""
        left = 0
        for each in around.works:
            left += not await self._take_off(each, at_once=around.cluster is None)
        if left:
            return After(LEAVING_SECONDS, f"{left} Work(s) are being taken off")
        if WORK_CLEANUP in stored.parts.finalizers:
            await written(self._store, stored, without_finalizer(stored.document(), WORK_CLEANUP))
            log.info("binding.released", binding=str(stored.key))
        return Done("its Works are gone")

    async def _take_off(self, work: StoredObject, *, at_once: bool) -> bool:
        """Delete a Work, and remove it when its agent is done or there is none; whether it is gone."""
        if not work.is_deleting:
            await deleted(self._store, work)
            counters.WORKS.labels("deleted").inc()
            fresh = await self._store.get(work.key)
            if fresh is None or fresh.uid != work.uid:
                return True
            work = fresh
        if not at_once and not Work.from_document(work.encoded()).is_cleaned_up:
            return False
        finalizers: list[str] = [] if at_once else [each for each in work.parts.finalizers if each != WORK_CLEANUP]
        document = work.document()
        document["metadata"]["finalizers"] = finalizers
        await written(self._store, work, document)
        return not finalizers

    async def _remove_cleaned_up(self, works: Sequence[StoredObject]) -> None:
        for each in works:
            if each.is_deleting and Work.from_document(each.encoded()).is_cleaned_up:
                await self._take_off(each, at_once=False)


def binding_key(request: WorkRequest) -> ObjectKey:
    """The binding that a piece of work is about: a namespace tells that it is one of a ResourcePlacement."""
    placement_kind = NAMESPACED_KIND if request.namespace else CLUSTER_KIND
    return ObjectKey(of(placement_kind).binding.lower(), request.namespace, request.name)


def _key(work: Document) -> ObjectKey:
    metadata = section(work, "metadata")
    return ObjectKey(WORK_KIND, str(metadata["namespace"]), str(metadata["name"]))


def _owner_uid(stored: StoredObject) -> str:
    """The uid of the placement that a binding belongs to."""
    owners = section(stored.document(), "metadata").get("ownerReferences") or ()
    return next((str(each.get("uid") or "") for each in owners if each.get("controller")), "")
