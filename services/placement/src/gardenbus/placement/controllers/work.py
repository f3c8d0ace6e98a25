"""Makes the Works of bindings, and records their progress in the bindings.

| binding                              | action                                                              |
|--------------------------------------|---------------------------------------------------------------------|
| Scheduled, or never Bound            | none                                                                |
| Bound, or Unscheduled after that     | finalizer added; Works made and kept equal to its resources         |
| on a leaving cluster                 | Works stay as they are, as the agent removes all of them            |
| deleting                             | Works deleted; released once they are gone                          |
| deleting, its cluster is gone        | Works removed at once, as there is no agent left to do it           |
| deleting, annotated with `ABANDON`   | the same, and the Works carry the annotation: their agent leaves    |
|                                      | the manifests in the cluster                                        |

Each write to a Work holds only while the binding has the version that was read: no Work is created once its binding is
deleting. A deleting Work is removed when its agent reports that nothing of it is left.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import structlog

from gardenbus.common.api.document import Document, StoredObject, section
from gardenbus.common.api.document_parts import with_finalizer, without_finalizer
from gardenbus.common.api.fleet.member_clusters import MemberCluster
from gardenbus.common.api.fleet.placement_parts import WORK_CLEANUP, ResourceBinding, binding_kind, of
from gardenbus.common.api.fleet.placements import placement_kind
from gardenbus.common.api.fleet.works import WORK_KIND, Work, abandoned, is_abandoned
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.controller import Done, ReconcileRequest, ReconcileResult, RequeueAfter
from gardenbus.common.controller.writes import delete, update, version_precondition
from gardenbus.common.errors import AlreadyExists, InvalidResource
from gardenbus.common.ports.clock import Clock, timestamp
from gardenbus.common.ports.store import Store, WritePrecondition
from gardenbus.fleet.availability import may_be_placed
from gardenbus.placement import metrics
from gardenbus.placement.domain.overrides import OverrideFailed, target_of
from gardenbus.placement.domain.works import ObstacleKind, is_made_from, renewed, with_obstacle, with_progress, works_of
from gardenbus.placement.store.override_snapshots import OverrideGone, override_snapshots
from gardenbus.placement.store.resource_groups import ResourceGroups

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

LEAVING_SECONDS = 30.0
"""Recheck interval while Works are being deleted."""

OBSTACLE_SECONDS = 5.0
"""Recheck interval after Works could not be made."""


class _BindingDependents(NamedTuple):
    cluster: StoredObject | None
    works: Sequence[StoredObject]


class _Synced(NamedTuple):
    written: int = 0
    obstacle: str = ""
    kind: ObstacleKind = ObstacleKind.WAITING


class WorkGeneratorReconciler:
    """Reconciles the Works of bindings; safe to run concurrently, in any number of processes."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._groups = ResourceGroups(store)

    async def reconcile(self, request: ReconcileRequest) -> ReconcileResult:
        """Reconcile a binding. Raises Conflict, Unavailable."""
        stored = await self._store.get(ObjectKey(binding_kind(request.namespace), request.namespace, request.name))
        if stored is None:
            return Done("it is gone")
        binding = ResourceBinding.from_document(stored.encoded())
        if not binding.is_deleting and not may_be_placed(binding):
            return Done("it is not Bound")
        related = await self._read_dependents(stored, binding)
        if binding.is_deleting:
            return await self._reconcile_deletion(stored, related)
        if related.cluster is None:
            return Done("its cluster is gone")
        await self._remove_cleaned_up(related.works)
        if WORK_CLEANUP not in stored.parts.finalizers:
            stored = await update(self._store, stored, with_finalizer(stored.document(), WORK_CLEANUP))
        if related.cluster.is_deleting:
            return Done("its cluster leaves")
        return await self._keep_works(stored, binding, related)

    async def _read_dependents(self, stored: StoredObject, binding: ResourceBinding) -> _BindingDependents:
        keys = [key for key in await self._store.dependents(stored.uid) if key.kind == WORK_KIND]
        cluster, *works = await self._store.get_many(
            [ObjectKey("membercluster", "", binding.spec.target_cluster), *keys]
        )
        return _BindingDependents(cluster, [each for each in works if each is not None])

    async def _keep_works(
        self, stored: StoredObject, binding: ResourceBinding, related: _BindingDependents
    ) -> ReconcileResult:
        synced = await self._sync(stored, binding, related)
        now, present = timestamp(self._clock.now()), stored.document()
        if synced.obstacle:
            updated = with_obstacle(present, synced.obstacle, now, synced.kind)
        else:
            works = [Work.from_document(each.encoded()) for each in related.works if not each.is_deleting]
            updated = with_progress(present, works, now, written=synced.written > 0)
        if updated != present:
            await update(self._store, stored, updated)
        if synced.written:
            log.info(
                "works.written", binding=str(stored.key), cluster=binding.spec.target_cluster, works=synced.written
            )
        return RequeueAfter(OBSTACLE_SECONDS, synced.obstacle) if synced.obstacle else Done()

    async def _sync(self, stored: StoredObject, binding: ResourceBinding, related: _BindingDependents) -> _Synced:
        """Bring the Works up to date, as far as possible."""
        living = {each.key: each for each in related.works if not each.is_deleting}
        wanted = await self._wanted(stored, binding, related.cluster)
        if isinstance(wanted, _Synced):
            views = [Work.from_document(each.encoded()) for each in living.values()]
            is_gone = wanted.kind in (ObstacleKind.RESOURCES_GONE, ObstacleKind.OVERRIDE_GONE)
            if is_gone and views and all(is_made_from(each, binding.spec) for each in views):
                return _Synced()  # they were made before the snapshot went
            return wanted
        leaving = {each.key for each in related.works if each.is_deleting}
        preconditions, count = [version_precondition(stored)], 0
        for key, work in wanted.items():
            if key in leaving:
                return _Synced(obstacle=f"{key} is still being taken off.")
            try:
                count += await self._apply_work(living.get(key), work, preconditions)
            except AlreadyExists:
                return _Synced(obstacle=f"{key} is still that of an earlier binding.")
        for key, work in living.items():
            if key not in wanted:
                await delete(self._store, work, preconditions)
                metrics.WORKS.labels("deleted").inc()
                count += 1
        return _Synced(written=count)

    async def _wanted(
        self, stored: StoredObject, binding: ResourceBinding, cluster: StoredObject | None
    ) -> Mapping[ObjectKey, Document] | _Synced:
        """Return the Works of a binding, or why there are none."""
        snapshot, namespace = binding.spec.resource_snapshot_name, stored.key.namespace
        key = ObjectKey(of(placement_kind(namespace)).resource_snapshot.lower(), namespace, snapshot)
        group = await self._groups.get(_owner_uid(stored), key)
        if group is None:
            return _Synced(obstacle=f"There is no {snapshot} to make Works of.", kind=ObstacleKind.RESOURCES_GONE)
        try:
            overrides = await override_snapshots(self._store, binding.spec.overrides)
            target = target_of(MemberCluster.from_document(cluster.encoded())) if cluster and overrides else None
            return {_key(each): each for each in works_of(stored.document(), group.parts, overrides, target)}
        except OverrideGone as error:
            return _Synced(obstacle=f"{error}.", kind=ObstacleKind.OVERRIDE_GONE)
        except (OverrideFailed, InvalidResource) as error:
            return _Synced(obstacle=f"{error}.", kind=ObstacleKind.OVERRIDE)
        except ValueError as error:
            return _Synced(obstacle=f"{error}.", kind=ObstacleKind.FAILED)

    async def _apply_work(
        self, present: StoredObject | None, wanted: Document, preconditions: Sequence[WritePrecondition]
    ) -> int:
        """Create or change one Work; return the number written."""
        if present is None:
            await self._store.create(wanted, preconditions=preconditions)
            metrics.WORKS.labels("created").inc()
            return 1
        document = present.document()
        new = renewed(document, wanted)
        if new == document:
            return 0
        await update(self._store, present, new, preconditions)
        metrics.WORKS.labels("changed").inc()
        return 1

    async def _reconcile_deletion(self, stored: StoredObject, related: _BindingDependents) -> ReconcileResult:
        """Delete the Works of a binding, and release it once they are gone."""
        works = related.works
        if is_abandoned(stored.document()):
            works = [await self._abandon(each) for each in works]
        left = 0
        for each in works:
            left += not await self._delete_work(each, at_once=related.cluster is None)
        if left:
            return RequeueAfter(LEAVING_SECONDS, f"{left} Work(s) are being taken off")
        if WORK_CLEANUP in stored.parts.finalizers:
            await update(self._store, stored, without_finalizer(stored.document(), WORK_CLEANUP))
            log.info("binding.released", binding=str(stored.key))
        return Done("its Works are gone")

    async def _abandon(self, work: StoredObject) -> StoredObject:
        """Annotate a Work before it is deleted; one that is being deleted already is removed."""
        return work if work.is_deleting else await update(self._store, work, abandoned(work.document()))

    async def _delete_work(self, work: StoredObject, *, at_once: bool) -> bool:
        """Delete a Work, and remove it when its agent is done or there is none; return whether it is gone."""
        if not work.is_deleting:
            await delete(self._store, work)
            metrics.WORKS.labels("deleted").inc()
            fresh = await self._store.get(work.key)
            if fresh is None or fresh.uid != work.uid:
                return True
            work = fresh
        if not at_once and not Work.from_document(work.encoded()).is_cleaned_up:
            return False
        finalizers: list[str] = [] if at_once else [each for each in work.parts.finalizers if each != WORK_CLEANUP]
        document = work.document()
        document["metadata"]["finalizers"] = finalizers
        await update(self._store, work, document)
        return not finalizers

    async def _remove_cleaned_up(self, works: Sequence[StoredObject]) -> None:
        for each in works:
            if each.is_deleting and Work.from_document(each.encoded()).is_cleaned_up:
                await self._delete_work(each, at_once=False)


def _key(work: Document) -> ObjectKey:
    metadata = section(work, "metadata")
    return ObjectKey(WORK_KIND, str(metadata["namespace"]), str(metadata["name"]))


def _owner_uid(stored: StoredObject) -> str:
    """Return the uid of the placement that a binding belongs to."""
    owners = section(stored.document(), "metadata").get("ownerReferences") or ()
    return next((str(each.get("uid") or "") for each in owners if each.get("controller")), "")
