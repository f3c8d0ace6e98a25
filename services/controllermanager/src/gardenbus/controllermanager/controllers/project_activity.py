"""Activity of projects: when something that counts was created, changed or removed in their namespaces.

What was created more than an hour ago and is seen for the first time was there before this process: it does not count.
Source: Gardener's `pkg/controllermanager/controller/project/activity`.
"""

from datetime import timedelta
from operator import attrgetter

import structlog

from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.garden.credentials_bindings import BINDING_KINDS, CREDENTIALS_KINDS
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.controller import Done, ReconcileResult
from gardenbus.common.controller.writes import update
from gardenbus.common.ports.clock import parse_timestamp
from gardenbus.controllermanager.domain.protection import REFERENCE_LABEL_PREFIX
from gardenbus.controllermanager.domain.stale_projects import last_activity_of, with_activity
from gardenbus.controllermanager.watch.loop import BuiltLoop, Loop, LoopContext, existing

NAME, KIND = "projectactivity", "project"

BY_GENERATION = frozenset({"shoot", "backupentry"})
"""Kinds whose status is written all the time: what counts is their spec."""

BY_CONTENT = frozenset({*CREDENTIALS_KINDS, "quota", *BINDING_KINDS})
"""Kinds of which labels and finalizers are written by this service: what counts is the rest.

Of credentials and quotas those count that bindings refer to: their labels say so.
"""

NEW = timedelta(hours=1)
RESOLUTION = timedelta(minutes=1)
"""Activities within a minute are one: a burst of shoots is one write of the project."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class ProjectActivityReconciler:
    """Records the activity of one project at a time."""

    def __init__(self, context: LoopContext) -> None:
        self._store = context.store
        self._clock = context.clock

    async def reconcile(self, stored: StoredObject) -> ReconcileResult:
        """Record that a project is active now. Raises Conflict, Unavailable."""
        if stored.is_deleting:
            return Done("it is being deleted")
        project, now = stored.document(), self._clock.now()
        last = last_activity_of(project)
        if last is None or now - last >= RESOLUTION:
            await update(self._store, stored, with_activity(project, now))
        return Done()


def _build(context: LoopContext) -> BuiltLoop:
    def changed(key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        """Enqueue the project in whose namespace something that counts has happened."""
        if key.kind == KIND or not _counts(context, old, new):
            return
        project = context.projects.project_of(key.namespace)
        if project is not None:
            context.enqueue(project)

    return BuiltLoop(existing(context, KIND, ProjectActivityReconciler(context).reconcile), changed)


def _counts(context: LoopContext, old: StoredObject | None, new: StoredObject | None) -> bool:
    if not any(_is_of_use(each) for each in (old, new) if each is not None):
        return False
    if old is None and new is not None:
        created_at = parse_timestamp(new.created_at)
        return created_at is not None and context.clock.now() - created_at <= NEW
    return old is None or new is None or _content(old) != _content(new)


def _is_of_use(stored: StoredObject) -> bool:
    if stored.key.kind not in (*CREDENTIALS_KINDS, "quota"):
        return True
    return any(f"{REFERENCE_LABEL_PREFIX}{kind}" in stored.labels for kind in BINDING_KINDS)


def _content(stored: StoredObject) -> object:
    if stored.key.kind in BY_GENERATION:
        return stored.uid, stored.generation
    return stored.uid, stored.deleting_at, stored.parts.spec, stored.parts.rest


LOOP = Loop(NAME, (KIND, *sorted(BY_GENERATION | BY_CONTENT)), _build, attrgetter("project.concurrent_syncs"))
