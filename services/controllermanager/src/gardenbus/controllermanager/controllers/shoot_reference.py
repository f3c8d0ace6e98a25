"""Protects what shoots use by a finalizer: Secrets, ConfigMaps and WorkloadIdentities.

One loop over shoots sets the finalizer, on what they name and on themselves; one for each kind of what is named takes
it off again when no shoot uses the object any more. Each counts uses in its own memory, from the announcements.
"""

from collections.abc import Callable

import structlog

from gardenbus.common.api.configuration.controller_manager import ControllerManagerConfiguration
from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.controller import Done, Reconcile, ReconcileRequest, ReconcileResult, RequeueAfter
from gardenbus.common.errors import Conflict, NotFound
from gardenbus.common.ports.store import Store
from gardenbus.controllermanager.controllers.loop import BuiltLoop, Loop, LoopContext
from gardenbus.controllermanager.domain.shoot_references import (
    FINALIZER,
    GARDEN_ROLE,
    PROTECTED_KINDS,
    ReferenceIndex,
    referenced_objects,
    with_protection,
)
from gardenbus.controllermanager.handlers.shoot_parts import is_status_alone, may_use_objects

NAME, KIND = "shootreference", "shoot"
MISSING_SECONDS = 60.0
"""After which a shoot is looked at again that names something which is not there."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class ShootReferenceReconciler:
    """Protects what one shoot uses, and the shoot while it uses something."""

    def __init__(self, context: LoopContext) -> None:
        self._store = context.store

    async def reconcile(self, request: ReconcileRequest) -> ReconcileResult:
        """Reconcile a shoot. Raises Conflict, Unavailable."""
        stored = await self._store.get(ObjectKey(KIND, request.namespace, request.name))
        if stored is None:
            return Done("it is gone")
        names = sorted(referenced_objects(stored.document()))
        found = [(key, used) for key, used in zip(names, await self._store.get_many(names), strict=True)]
        for _, used in found:
            if used is not None and GARDEN_ROLE not in used.labels:
                await _protect(self._store, used, is_protected=True)
        is_protecting = any(used is not None and GARDEN_ROLE not in used.labels for _, used in found)
        await _protect(self._store, stored, is_protected=is_protecting)
        missing = [str(key) for key, used in found if used is None]
        return RequeueAfter(MISSING_SECONDS, f"not there: {', '.join(missing)}") if missing else Done()


class ReferencedObjectReconciler:
    """Takes the finalizer off one object that nothing uses any more."""

    def __init__(self, context: LoopContext, kind: str, index: ReferenceIndex) -> None:
        self._store = context.store
        self._kind = kind
        self._index = index

    async def reconcile(self, request: ReconcileRequest) -> ReconcileResult:
        """Reconcile an object. Raises Conflict, Unavailable."""
        key = ObjectKey(self._kind, request.namespace, request.name)
        stored = await self._store.get(key)
        if stored is None:
            return Done("it is gone")
        if self._index.is_used(key):
            return Done("a shoot uses it")
        await _protect(self._store, stored, is_protected=False)
        return Done("nothing uses it")


async def _protect(store: Store, stored: StoredObject, *, is_protected: bool) -> None:
    """Set the finalizer, or take it off."""
    document = with_protection(stored.document(), is_protected=is_protected)
    if document is None:
        return
    try:
        await store.update(stored, document)
    except NotFound as error:
        raise Conflict(f"{stored.key} is gone") from error
    log.info("reference.protected" if is_protected else "reference.released", object=str(stored.key))


def _build(context: LoopContext) -> BuiltLoop:
    def changed(key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        """Enqueue shoots when what they use changes, and in their deletion."""
        if new is None or is_status_alone(old, new):
            return
        used = _references(new)
        if old is None and not used and FINALIZER not in new.parts.finalizers:
            return
        if old is None or used != _references(old) or new.parts.finalizers != old.parts.finalizers:
            context.enqueue(key)

    return BuiltLoop(ShootReferenceReconciler(context).reconcile, changed)


def _references(shoot: StoredObject) -> frozenset[ObjectKey]:
    return referenced_objects(shoot.document()) if may_use_objects(shoot) else frozenset()


def _loop_of(kind: str) -> Loop:
    """The loop over what shoots use, of one kind."""

    def build(context: LoopContext) -> BuiltLoop:
        index = ReferenceIndex()
        reconcile: Reconcile = ReferencedObjectReconciler(context, kind, index).reconcile
        return BuiltLoop(reconcile, _release(context.enqueue, kind, index))

    return Loop(f"{NAME}{kind}", kind, (KIND, kind), build, _workers)


def _release(
    enqueue: Callable[[ObjectKey], None], kind: str, index: ReferenceIndex
) -> Callable[[ObjectKey, StoredObject | None, StoredObject | None], None]:
    def changed(key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        """Enqueue what has the finalizer and is not used, or not any more."""
        if is_status_alone(old, new):
            return
        if key.kind == KIND:
            used = _references(new) if new is not None else ()
            for unused in index.replace(key, frozenset(one for one in used if one.kind == kind)):
                enqueue(unused)
        elif new is not None and FINALIZER in new.parts.finalizers and not index.is_used(key):
            enqueue(key)

    return changed


def _workers(configuration: ControllerManagerConfiguration) -> int:
    return configuration.shoot_reference.concurrent_syncs


LOOP = Loop(NAME, KIND, (KIND,), _build, _workers)
LOOPS = (LOOP, *map(_loop_of, PROTECTED_KINDS))
"""The loop over shoots, and those over what they use."""
