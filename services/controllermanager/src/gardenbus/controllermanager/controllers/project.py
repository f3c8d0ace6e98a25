"""Projects: their namespaces, resource quotas and phases, from creation to deletion.

A project is accepted (finalizer, phase Pending) before anything is made for it, and released only in a write that holds
while no shoot refers to its namespace. Each further write holds only while the project, or the namespace, has the
version that was read: of several replicas one has an effect, and one that was held up has none.
"""

from operator import attrgetter
from typing import assert_never

import structlog

from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.document_parts import FINALIZER, without_finalizer
from gardenbus.common.api.garden.credentials_bindings import BINDING_KINDS, CREDENTIALS_KINDS
from gardenbus.common.api.garden.projects import Project
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.agent_credentials import AgentCredentials
from gardenbus.common.controller.controller import Done, ReconcileResult, RequeueAfter
from gardenbus.common.controller.enqueue_on_change import beyond_status
from gardenbus.common.controller.event_recorder import EventRecorder
from gardenbus.common.controller.writes import update, version_precondition
from gardenbus.common.errors import AlreadyExists, Conflict, Forbidden, InvalidResource, NotFound, Unavailable
from gardenbus.common.ports.store import WritePrecondition
from gardenbus.controllermanager import metrics
from gardenbus.controllermanager.domain.project_namespaces import (
    AdoptNamespace,
    CreateNamespace,
    EmptyNamespace,
    KeepNamespace,
    MarkNamespace,
    NothingToRelease,
    RejectNamespace,
    ReleaseNamespace,
    plan_namespace,
    plan_release,
)
from gardenbus.controllermanager.domain.projects import (
    DEFAULT_QUOTA,
    RESOURCE_QUOTA,
    Phase,
    accepted,
    has_been_ready,
    quota_of,
    resource_quota,
    with_phase,
)
from gardenbus.controllermanager.namespace_contents import NamespaceContents
from gardenbus.controllermanager.watch.loop import REPORTER, BuiltLoop, Loop, LoopContext, existing

NAME = KIND = "project"
KEPT = ("namespace", "resourcequota")
"""Kinds that are a project's own."""

CONTENTS = ("shoot", "bastion", "quota", "namespacedcloudprofile", "configmap", *BINDING_KINDS, *CREDENTIALS_KINDS)
"""Kinds whose objects may be held by a finalizer: a deleted project goes on as soon as one of them has gone."""

NOT_EMPTY_SECONDS = 60.0
"""After which a project is looked at again that waits for its shoots."""

CONTENTS_SECONDS = 10.0
"""After which one is that waits for its namespace, which anything may hold."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class ProjectReconciler:
    """Reconciles one project at a time; any number of replicas may run concurrently."""

    def __init__(self, context: LoopContext) -> None:
        self._store = context.store
        self._events = EventRecorder(context.store, REPORTER)
        self._contents = NamespaceContents(context.store)
        self._credentials = AgentCredentials(context.store, context.clock)
        self._quotas = context.configuration.project.quotas

    async def reconcile(self, stored: StoredObject) -> ReconcileResult:
        """Reconcile a project. Raises Conflict, Unavailable."""
        if stored.is_deleting:
            return await self._delete(stored) if FINALIZER in stored.parts.finalizers else Done("it is being deleted")
        return await self._keep(stored)

    # ------------------------------------------------------------------------------------------ while it is there

    async def _keep(self, stored: StoredObject) -> ReconcileResult:
        stored = await self._updated(stored, accepted(stored.document(), stored.generation))
        try:
            if problem := await self._reconcile_namespace(stored):
                return await self._fail(stored, problem)
            await self._reconcile_quota(stored)
        except (Forbidden, InvalidResource) as error:
            return await self._fail(stored, error.message)
        ready = with_phase(stored.document(), "Ready", stored.generation)
        if ready != stored.document():
            await self._updated(stored, ready)
            message = f'Successfully reconciled namespace "{_namespace_key(stored).name}" for project'
            await self._record(stored, "NamespaceReconcileSuccessful", message, is_warning=False)
            log.info("project.ready", project=stored.key.name, namespace=_namespace_key(stored).name)
        return Done()

    async def _reconcile_namespace(self, stored: StoredObject) -> str:
        """Create or adopt the namespace; the reason why neither can be done, or ""."""
        key = _namespace_key(stored)
        namespace = await self._store.get(key)
        plan = plan_namespace(stored.document(), None if namespace is None else namespace.document())
        unchanged = version_precondition(stored)
        match plan:
            case KeepNamespace():
                return ""
            case RejectNamespace(message=message):
                return message
            case CreateNamespace(namespace=document):
                await self._create(document, unchanged)
                metrics.NAMESPACES_MADE.inc()
            case AdoptNamespace(namespace=document):
                assert namespace is not None
                await self._updated(namespace, document, unchanged)
            case _:
                assert_never(plan)
        log.info("namespace.reconciled", project=stored.key.name, namespace=key.name, plan=type(plan).__name__)
        return ""

    async def _reconcile_quota(self, stored: StoredObject) -> None:
        if self._quotas is not None:
            quota = quota_of(stored.labels, self._quotas)
        else:
            quota = None if has_been_ready(stored.document()) else DEFAULT_QUOTA
        if quota is None:
            return
        namespace = _namespace_key(stored)
        found = await self._store.get_many([ObjectKey("resourcequota", namespace.name, RESOURCE_QUOTA), namespace])
        existing, owner = found
        if owner is None:
            raise Conflict(f"{namespace} is gone")
        document = None if existing is None else existing.document()
        wanted = resource_quota(stored.document(), namespace.name, quota, document)
        unchanged = version_precondition(owner)
        if existing is None:
            await self._create(wanted, unchanged)
        elif wanted != document:
            await self._updated(existing, wanted, unchanged)

    async def _fail(self, stored: StoredObject, problem: str) -> ReconcileResult:
        """Record a failure, which may end without any event: the project is tried again with backoff."""
        await self._updated(stored, with_phase(stored.document(), "Failed", stored.generation))
        await self._record(stored, "NamespaceReconcileFailed", problem)
        raise Unavailable(problem)

    # ------------------------------------------------------------------------------------------ after its deletion

    async def _delete(self, stored: StoredObject) -> ReconcileResult:
        key = _namespace_key(stored)
        if (await self._store.list_page("shoot", key.name, limit=1)).objects:
            await self._record(
                stored, "NamespaceNotEmpty", f'Cannot release namespace "{key.name}" because it still contains Shoots'
            )
            await self._set_phase(stored, "Terminating")
            return RequeueAfter(NOT_EMPTY_SECONDS, "there are shoots in its namespace")
        stored = await self._set_phase(stored, "Terminating")
        if not await self._release(stored, key):
            return RequeueAfter(CONTENTS_SECONDS, "its namespace is still there")
        await self._updated(stored, without_finalizer(stored.document()), _without_shoots(key))
        log.info("project.released", project=stored.key.name)
        return Done("it is released")

    async def _release(self, stored: StoredObject, key: ObjectKey) -> bool:
        """Release the namespace; True when done. Raises Conflict when a shoot was created meanwhile."""
        namespace = await self._store.get(key)
        plan = plan_release(stored.document(), None if namespace is None else namespace.document())
        if isinstance(plan, NothingToRelease):
            return True
        assert namespace is not None
        match plan:
            case ReleaseNamespace(namespace=document):
                await self._updated(namespace, document, _without_shoots(key))
                metrics.NAMESPACES_RELEASED.inc()
                return True
            case MarkNamespace():
                return await self._mark(stored, namespace)
            case EmptyNamespace():
                return await self._empty(namespace)
            case _:
                assert_never(plan)

    async def _mark(self, stored: StoredObject, namespace: StoredObject) -> bool:
        if not namespace.parts.finalizers:
            await self._credentials.end_with(namespace)
        try:
            marked = await self._store.delete(namespace, preconditions=(_without_shoots(namespace.key),))
        except Forbidden as error:
            raise Conflict(error.message) from error
        except NotFound:
            return True
        message = f'Successfully marked project namespace "{namespace.key.name}" for deletion'
        await self._record(stored, "NamespaceMarkedForDeletion", message, is_warning=False)
        return not isinstance(marked, StoredObject) or await self._empty(marked)

    async def _empty(self, namespace: StoredObject) -> bool:
        """Delete what is in a namespace, and the namespace when nothing is; whether that is done."""
        if await self._contents.delete(namespace):
            return False
        await self._credentials.end_with(namespace)
        await self._updated(namespace, without_finalizer(namespace.document()), _without_shoots(namespace.key))
        metrics.NAMESPACES_RELEASED.inc()
        log.info("namespace.released", namespace=namespace.key.name)
        return True

    # ------------------------------------------------------------------------------------------ writes

    async def _set_phase(self, stored: StoredObject, phase: Phase) -> StoredObject:
        return await self._updated(stored, with_phase(stored.document(), phase, stored.generation))

    async def _create(self, document: Document, precondition: WritePrecondition) -> None:
        try:
            await self._store.create(document, preconditions=(precondition,))
        except AlreadyExists as error:  # another replica was faster, or somebody else
            raise Conflict(error.message) from error

    async def _updated(
        self, stored: StoredObject, document: Document, *preconditions: WritePrecondition
    ) -> StoredObject:
        """Write an object; Conflict when it has changed, or a shoot was created, so that it is reconciled again."""
        try:
            return await update(self._store, stored, document, preconditions)
        except Forbidden as error:
            if preconditions:
                raise Conflict(error.message) from error
            raise

    async def _record(self, stored: StoredObject, reason: str, message: str, *, is_warning: bool = True) -> None:
        await self._events.record(
            stored.key, stored.uid, reason=reason, message=message, type="Warning" if is_warning else "Normal"
        )


def _namespace_key(stored: StoredObject) -> ObjectKey:
    return ObjectKey("namespace", "", Project.from_document(stored.document()).namespace)


def _without_shoots(namespace: ObjectKey) -> WritePrecondition:
    return WritePrecondition("references", namespace.stored, f"there are shoots in {namespace}")


def _build(context: LoopContext) -> BuiltLoop:
    def changed(key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        """Enqueue projects that changed, whose namespace or quota did, and deleted ones that something has left."""
        if key.kind == KIND:
            if new is not None and (old is None or beyond_status(old) != beyond_status(new)):
                context.enqueue(key)
            return
        if new is not None and (key.kind in CONTENTS or (old is not None and beyond_status(old) == beyond_status(new))):
            return
        project = context.projects.project_of(key.name if key.kind == "namespace" else key.namespace)
        owner = context.objects.objects(KIND).get(project) if project is not None else None
        if owner is not None and (owner.is_deleting or key.kind in KEPT):
            context.enqueue(owner.key)

    return BuiltLoop(existing(context, KIND, ProjectReconciler(context).reconcile), changed)


LOOP = Loop(NAME, (KIND, *KEPT, *CONTENTS), _build, attrgetter("project.concurrent_syncs"))
