"""Stale projects: checked once in a sync period, marked in their status, and deleted in the end.

That nobody uses a project is decided by the store, in the write itself: neither its mark nor its deletion happens while
a shoot is in its namespace, or uses its credentials or quotas by a binding of any namespace.
"""

from collections.abc import Sequence
from operator import attrgetter

import structlog

from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.garden.credentials_bindings import BINDING_KINDS, references_of
from gardenbus.common.api.garden.projects import Project
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.controller import Done, ReconcileResult, RequeueAfter
from gardenbus.common.controller.event_recorder import EventRecorder
from gardenbus.common.controller.listing import list_all
from gardenbus.common.controller.writes import update
from gardenbus.common.errors import Conflict, Forbidden, NotFound
from gardenbus.common.ports.clock import parse_timestamp, timestamp
from gardenbus.common.ports.store import WritePrecondition
from gardenbus.controllermanager import metrics
from gardenbus.controllermanager.domain.stale_projects import (
    ProjectUse,
    Staleness,
    assess,
    confirmed,
    is_exempt,
    is_recent,
    last_activity_of,
    staleness_of,
    with_staleness,
)
from gardenbus.controllermanager.watch.loop import REPORTER, BuiltLoop, Loop, LoopContext, existing, while_whole

NAME, KIND = "staleproject", "project"

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class StaleProjectReconciler:
    """Checks one project at a time."""

    def __init__(self, context: LoopContext) -> None:
        self._store = context.store
        self._clock = context.clock
        self._events = EventRecorder(context.store, REPORTER)
        self._configuration = context.configuration.project

    async def reconcile(self, stored: StoredObject) -> ReconcileResult:
        """Check a project. Raises Conflict, Unavailable."""
        if stored.is_deleting:
            return Done("it is being deleted")
        await self._check(stored)
        return RequeueAfter(self._configuration.stale_sync_period.total_seconds())

    async def _check(self, stored: StoredObject) -> None:
        project = stored.document()
        namespace = await self._store.get(ObjectKey("namespace", "", Project.from_document(project).namespace))
        created_at, now = parse_timestamp(stored.created_at), self._clock.now()
        if namespace is None or created_at is None:
            return
        use = ProjectUse(created_at, last_activity_of(project), is_exempt(namespace.document()), is_used=False)
        if not is_recent(use, now, self._configuration):
            use = use._replace(is_used=await self._is_used(stored, namespace.key.name))
        staleness = assess(use, staleness_of(project), now, self._configuration)
        if staleness.is_over(now):
            await self._delete(stored, staleness, namespace.key.name)
        elif staleness != staleness_of(project):
            await self._set_timestamps(stored, staleness, namespace.key.name)

    async def _is_used(self, stored: StoredObject, namespace: str) -> bool:
        if (await self._store.list_page("backupentry", namespace, limit=1)).objects:
            return True
        try:
            await self._store.dry_run(
                stored.key, stored, stored.document(), preconditions=await self._preconditions(namespace)
            )
        except Forbidden:
            return True
        return False

    async def _set_timestamps(self, stored: StoredObject, staleness: Staleness, namespace: str) -> None:
        preconditions = () if staleness == Staleness() else await self._preconditions(namespace)
        try:
            await update(self._store, stored, with_staleness(stored.document(), staleness), preconditions)
        except Forbidden as error:
            raise Conflict(error.message) from error
        log.info(
            "project.stale_timestamps_set",
            project=stored.key.name,
            since=staleness.since and timestamp(staleness.since),
            deleted_at=staleness.deleted_at and timestamp(staleness.deleted_at),
        )

    async def _delete(self, stored: StoredObject, staleness: Staleness, namespace: str) -> None:
        preconditions = await self._preconditions(namespace)
        document = confirmed(with_staleness(stored.document(), staleness))
        try:
            written = await update(self._store, stored, document, preconditions)
            await self._store.delete(written, preconditions=preconditions)
        except Forbidden as error:
            raise Conflict(error.message) from error
        except NotFound:
            return
        metrics.STALE_DELETED.inc()
        since = timestamp(staleness.since) if staleness.since else ""
        message = f"The project has not been used since {since}: it is deleted"
        await self._events.record(stored.key, stored.uid, reason="ProjectStale", message=message)
        log.info("project.expired", project=stored.key.name, since=since)

    async def _preconditions(self, namespace: str) -> Sequence[WritePrecondition]:
        """No shoot is in a namespace, nor uses a binding that refers to something there."""
        used = [ObjectKey("namespace", "", namespace)]
        for kind in BINDING_KINDS:
            for binding in await list_all(self._store, kind):
                references = map(ObjectKey.from_stored, references_of(binding.document()))
                if any(each.namespace == namespace for each in references):
                    used.append(binding.key)
        return [WritePrecondition("references", each.stored, f"{each} is in use") for each in used]


def _build(context: LoopContext) -> BuiltLoop:
    def changed(key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        """Enqueue each project once; it comes back by its timer. An exemption counts at once."""
        if key.kind == KIND and old is None:
            context.enqueue(key)
        elif key.kind == "namespace" and new is not None and (old is None or old.annotations != new.annotations):
            project = context.projects.project_of(key.name)
            if project is not None:
                context.enqueue(project)

    return BuiltLoop(existing(context, KIND, while_whole(context, StaleProjectReconciler(context).reconcile)), changed)


LOOP = Loop(NAME, ("project", "namespace"), _build, attrgetter("project.concurrent_syncs"))
