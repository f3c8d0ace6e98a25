"""Keeps the merged profile in the status of NamespacedCloudProfiles current when they or their parents change.

Every replica reconciles, and the first one writes; the others find nothing to do. An event only names the object:
profiles are read from the store, so a lost or repeated event is harmless.
"""

import contextlib

import structlog

from gardenbus.apiserver.controllers.informer_controller import InformerController
from gardenbus.apiserver.domain.cloud_profiles import parent_key, with_parent
from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import NotFound
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import Store

_log = structlog.stdlib.get_logger()


class NamespacedCloudProfiles(InformerController):
    """Keeps merged profiles current. `changed` is an informer's callback for `KINDS`."""

    KINDS = ("cloudprofile", "namespacedcloudprofile")

    def __init__(self, store: Store, clock: Clock) -> None:
        super().__init__(clock)
        self._store = store
        self._parents: dict[ObjectKey, ObjectKey] = {}

    def on_change(self, key: ObjectKey, _old: StoredObject | None, new: StoredObject | None) -> None:
        """Note whose status may be behind."""
        if key.kind == "cloudprofile":
            self.enqueue(*(profile for profile, parent in self._parents.items() if parent == key))
        elif new is None:
            self._parents.pop(key, None)
        elif parent := parent_key(new.document()):
            self._parents[key] = parent
            self.enqueue(key)

    async def reconcile(self, key: ObjectKey) -> bool:
        """Merge a profile with its parent, where that changes its status. Raises Conflict, Unavailable."""
        stored = await self._store.get(key)
        parent = parent_key(stored.document()) if stored is not None else None
        above = await self._store.get(parent) if parent is not None else None
        if stored is None or above is None:
            return False
        current = stored.document()
        merged = with_parent(current, above.document(), generation=stored.generation)
        if merged == current:
            return False
        with contextlib.suppress(NotFound):
            await self._store.update(stored, merged)
            _log.info("profile.merged", object=str(key), parent=str(parent), parent_version=above.version)
        return False
