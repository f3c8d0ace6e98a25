"""Protects what Shoots and Seeds use by a finalizer: Secrets, ConfigMaps and WorkloadIdentities.

One loop over Shoots and one over Seeds set the finalizer, on what they name and on themselves; one for each kind of
what is named takes it off again when neither uses the object any more. Each counts uses in its own memory, from the
announcements.
"""

from collections.abc import Callable
from operator import attrgetter, methodcaller

import structlog

from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.document_parts import REFERENCE_FINALIZER
from gardenbus.common.api.garden.named_references import REFERENCED_KINDS
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.controller import Done, ReconcileResult, RequeueAfter
from gardenbus.common.controller.writes import update
from gardenbus.common.ports.store import Store
from gardenbus.controllermanager.domain.references import (
    GARDEN_ROLE,
    ReferenceIndex,
    referenced_objects,
    with_protection,
)
from gardenbus.controllermanager.domain.shoot_parts import is_status_alone, may_use_objects
from gardenbus.controllermanager.watch.loop import BuiltLoop, ChangeCallback, Loop, LoopContext, existing

USING_KINDS = ("shoot", "seed")
MISSING_SECONDS = 60.0
"""After which an object is looked at again that names something which is not there."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class ReferenceReconciler:
    """Protects what one Shoot or Seed uses, and itself while it uses something."""

    def __init__(self, context: LoopContext) -> None:
        self._store = context.store

    async def reconcile(self, stored: StoredObject) -> ReconcileResult:
        """Reconcile an object of the kind. Raises Conflict, Unavailable."""
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

    def __init__(self, context: LoopContext, index: ReferenceIndex) -> None:
        self._store = context.store
        self._index = index

    async def reconcile(self, stored: StoredObject) -> ReconcileResult:
        """Reconcile an object. Raises Conflict, Unavailable."""
        if self._index.is_used(stored.key):
            return Done("it is in use")
        await _protect(self._store, stored, is_protected=False)
        return Done("nothing uses it")


async def _protect(store: Store, stored: StoredObject, *, is_protected: bool) -> None:
    """Set the finalizer, or take it off."""
    document = with_protection(stored.document(), is_protected=is_protected)
    if document is None:
        return
    await update(store, stored, document)
    log.info("reference.protected" if is_protected else "reference.released", object=str(stored.key))


def _loop_over(kind: str) -> Loop:
    """The loop over Shoots or Seeds."""
    name = f"{kind}reference"

    def build(context: LoopContext) -> BuiltLoop:
        return BuiltLoop(existing(context, kind, ReferenceReconciler(context).reconcile), _protecting(context.enqueue))

    syncs = attrgetter("shoot_reference.concurrent_syncs") if kind == "shoot" else methodcaller("workers", name)
    return Loop(name, (kind,), build, syncs)


def _protecting(enqueue: Callable[[ObjectKey], None]) -> ChangeCallback:
    def changed(key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        """Enqueue Shoots or Seeds when what they use changes, and in their deletion."""
        if new is None or is_status_alone(old, new):
            return
        used = _references(new)
        if old is None and not used and REFERENCE_FINALIZER not in new.parts.finalizers:
            return
        if old is None or used != _references(old) or new.parts.finalizers != old.parts.finalizers:
            enqueue(key)

    return changed


def _references(user: StoredObject) -> frozenset[ObjectKey]:
    return referenced_objects(user.document()) if may_use_objects(user) else frozenset()


def _loop_of(kind: str) -> Loop:
    """The loop over what is used, of one kind."""

    def build(context: LoopContext) -> BuiltLoop:
        index = ReferenceIndex()
        reconcile = ReferencedObjectReconciler(context, index).reconcile
        return BuiltLoop(existing(context, kind, reconcile), _releasing(context.enqueue, kind, index))

    syncs = attrgetter("shoot_reference.concurrent_syncs")
    return Loop(f"shootreference{kind}", (*USING_KINDS, kind), build, syncs)


def _releasing(enqueue: Callable[[ObjectKey], None], kind: str, index: ReferenceIndex) -> ChangeCallback:
    def changed(key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        """Enqueue what has the finalizer and is not used, or not any more."""
        if is_status_alone(old, new):
            return
        if key.kind in USING_KINDS:
            used = _references(new) if new is not None else ()
            for unused in index.replace(key, frozenset(one for one in used if one.kind == kind)):
                enqueue(unused)
        elif new is not None and REFERENCE_FINALIZER in new.parts.finalizers and not index.is_used(key):
            enqueue(key)

    return changed


LOOPS = (*map(_loop_over, USING_KINDS), *map(_loop_of, REFERENCED_KINDS))
"""The loops over Shoots and Seeds, and those over what they use."""
