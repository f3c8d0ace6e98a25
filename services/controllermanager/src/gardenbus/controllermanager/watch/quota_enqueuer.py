"""Enqueues shoots that Quotas may limit."""

from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.garden.quotas import EXPIRATION_ANNOTATION, bindings_of, quota_keys
from gardenbus.common.api.keys import ObjectKey
from gardenbus.controllermanager.domain.shoot_parts import bindings_part, is_status_alone
from gardenbus.controllermanager.watch.loop import LoopContext


class QuotaEnqueuer:
    """See the module. `changed` is an informer's callback for shoots and bindings."""

    def __init__(self, context: LoopContext) -> None:
        self._objects = context.objects
        self._enqueue = context.enqueue

    def changed(self, key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        """Enqueue a shoot once, when its bindings or its annotation change, and when the Quotas of a binding do."""
        if key.kind == "shoot":
            if new is not None and not is_status_alone(old, new):
                self._shoot_changed(old, new)
        elif old is not None and new is not None and quota_keys(old.document()) != quota_keys(new.document()):
            for shoot in self._objects.objects("shoot").values():
                if key in bindings_of(bindings_part(shoot)):
                    self._enqueue(shoot.key)

    def _shoot_changed(self, old: StoredObject | None, new: StoredObject) -> None:
        is_same = old is not None and _relevant(old) == _relevant(new)
        if not new.is_deleting and not is_same and self._may_be_limited(new):
            self._enqueue(new.key)

    def _may_be_limited(self, shoot: StoredObject) -> bool:
        """False when no binding of a shoot names a Quota; one that is not cached yet may."""
        bindings = bindings_of(bindings_part(shoot))
        cached = [self._objects.objects(key.kind).get(key) for key in bindings]
        return EXPIRATION_ANNOTATION in shoot.annotations or any(
            binding is None or quota_keys(binding.document()) for binding in cached
        )


def _relevant(stored: StoredObject) -> object:
    return bindings_of(bindings_part(stored)), stored.annotations.get(EXPIRATION_ANNOTATION)
