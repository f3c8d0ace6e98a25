"""Enqueues objects that are new or being deleted, deleted ones that were let go of, and quotas of bindings."""

from collections.abc import Iterable

from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.document_parts import FINALIZER
from gardenbus.common.api.garden.credentials_bindings import BINDING_KINDS, references_of
from gardenbus.common.api.index_keys import index_keys_of
from gardenbus.common.api.keys import ObjectKey
from gardenbus.controllermanager.watch.loop import LoopContext


class ProtectionEnqueuer:
    """See the module. For the objects of one kind; `changed` is an informer's callback."""

    def __init__(self, context: LoopContext, kind: str) -> None:
        self._enqueue = context.enqueue
        self._kind = kind
        self._deleted: set[ObjectKey] = set()
        """Objects that wait to be released: while there are none, nobody's references matter."""

    def changed(self, key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        """Handle a change of an object of the kind, or of what may refer to one."""
        if key.kind == self._kind:
            self._changed_itself(key, old, new)
            return
        if old is not None and self._deleted:
            self._enqueue_referenced(index_keys_of(old.document()).references)
        if self._kind == "quota" and key.kind in BINDING_KINDS:
            for binding in (each for each in (old, new) if each is not None):
                self._enqueue_referenced(references_of(binding.document()))

    def _changed_itself(self, key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        if new is None or not new.is_deleting:
            self._deleted.discard(key)
        else:
            self._deleted.add(key)
        if new is not None and (
            old is None or old.is_deleting != new.is_deleting or FINALIZER not in new.parts.finalizers
        ):
            self._enqueue(key)

    def _enqueue_referenced(self, references: Iterable[str]) -> None:
        for reference in references:
            if reference.startswith(f"{self._kind}:") and "#" not in reference:
                self._enqueue(ObjectKey.from_stored(reference))
