"""Keeps what is in use: a finalizer on each profile, exposure class, quota and binding until nothing refers to it.

Whether something refers to it is decided by the store, in the write that takes the finalizer off.
"""

from operator import methodcaller

import structlog

from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.document_parts import FINALIZER, with_finalizer, without_finalizer
from gardenbus.common.api.garden.credentials_bindings import BINDING_KINDS
from gardenbus.common.controller.controller import Done, ReconcileResult, RequeueAfter
from gardenbus.common.controller.event_recorder import EventRecorder
from gardenbus.common.controller.writes import update
from gardenbus.common.errors import Forbidden
from gardenbus.common.ports.store import WritePrecondition
from gardenbus.controllermanager.domain.protection import labelled
from gardenbus.controllermanager.watch.loop import REPORTER, BuiltLoop, Loop, LoopContext, existing
from gardenbus.controllermanager.watch.protection_enqueuer import ProtectionEnqueuer

REFERRING_KINDS = ("shoot", "namespacedcloudprofile", *BINDING_KINDS)
IN_USE_SECONDS = 60.0
"""After which a deleted object that is in use is checked again, should the event of its release have been lost."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class ProtectionReconciler:
    """Reconciles one object of a kind at a time."""

    def __init__(self, context: LoopContext) -> None:
        self._store = context.store
        self._bindings = context.bindings
        self._events = EventRecorder(context.store, REPORTER)

    async def reconcile(self, stored: StoredObject) -> ReconcileResult:
        """Protect an object, or release it. Raises Conflict, Unavailable."""
        if not stored.is_deleting:
            await self._protect(stored)
            return Done()
        return await self._release(stored) if FINALIZER in stored.parts.finalizers else Done("it is being deleted")

    async def _protect(self, stored: StoredObject) -> None:
        document = with_finalizer(stored.document())
        if stored.key.kind == "quota":
            document = labelled(document, self._bindings.referring_to(stored.key))
        if document != stored.document():
            await update(self._store, stored, document)

    async def _release(self, stored: StoredObject) -> ReconcileResult:
        unused = WritePrecondition("references", stored.key.stored, f"{stored.key} is in use")
        try:
            await update(self._store, stored, without_finalizer(stored.document()), (unused,))
        except Forbidden as error:
            await self._events.record(stored.key, stored.uid, reason="ResourceReferenced", message=error.message)
            return RequeueAfter(IN_USE_SECONDS, error.message)
        log.info("object.released", object=str(stored.key))
        return Done("it is released")


def _loop(kind: str) -> Loop:
    def build(context: LoopContext) -> BuiltLoop:
        return BuiltLoop(
            existing(context, kind, ProtectionReconciler(context).reconcile), ProtectionEnqueuer(context, kind).changed
        )

    referring = REFERRING_KINDS if kind != "quota" else BINDING_KINDS
    return Loop(kind, tuple(dict.fromkeys((kind, *referring))), build, methodcaller("workers", kind))


LOOPS = tuple(
    _loop(kind) for kind in ("cloudprofile", "namespacedcloudprofile", "exposureclass", "quota", *BINDING_KINDS)
)
"""A loop for each kind: the queue has its name."""
