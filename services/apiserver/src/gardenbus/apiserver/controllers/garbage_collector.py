"""Garbage collector: dependents of a removed owner are deleted, or lose the reference where others own them.

Requests come as `garden.queue.garbage._.<uid of the owner>`, from the same write that removed the owner (or that
created a dependent of an owner that was gone already).
"""

import structlog

from gardenbus.apiserver.domain import migration
from gardenbus.apiserver.domain.admission import Admission
from gardenbus.apiserver.registry.seed_removal import annotate_seed_removal
from gardenbus.common.api.document_parts import mappings, with_metadata
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.controller import Done, ReconcileRequest, ReconcileResult, RequeueAfter
from gardenbus.common.errors import Forbidden, NotFound
from gardenbus.common.ports.store import Store

_log = structlog.stdlib.get_logger()

CONTROLLER = "garbage"

RETRY_SECONDS = 60.0
"""Interval of retries for dependents that must not be deleted yet."""


class GarbageCollector:
    """Collects what the removal of an owner left behind."""

    def __init__(self, store: Store, admission: Admission) -> None:
        self._store = store
        self._admission = admission

    async def reconcile(self, request: ReconcileRequest) -> ReconcileResult:
        """Reconcile one removed owner, whose uid is the name of the request. Raises Conflict, Unavailable."""
        return RequeueAfter(RETRY_SECONDS) if await self.collect(request.name) else Done()

    async def collect(self, uid: str) -> int:
        """Collect every dependent of an owner that is gone; returns how many must not be deleted yet.

        Those are in use, or their deletion is not confirmed. Raises Conflict, Unavailable.
        """
        if await self._store.exists_uid(uid):
            return 0
        remaining = 0
        for key in await self._store.dependents(uid):
            try:
                await self._collect_dependent(key, uid)
            except Forbidden as error:
                remaining += 1
                _log.warning("dependent.kept", object=str(key), owner=uid, reason=error.message)
        return remaining

    async def _collect_dependent(self, key: ObjectKey, uid: str) -> None:
        stored = await self._store.get(key)
        if stored is None:
            return
        document = stored.document()
        owners = mappings(document["metadata"].get("ownerReferences"))
        others = [owner for owner in owners if owner.get("uid") != uid]
        living = [owner for owner in others if await self._store.exists_uid(str(owner.get("uid")))]
        try:
            if living:
                await self._store.update(stored, with_metadata(document, "ownerReferences", others))
            else:
                self._admission.admit_deletion(document)
                migration.admit_deletion(document)
                guards = self._admission.deletion_guards(document)
                preconditions = (*guards, *await annotate_seed_removal(stored, self._store))
                await self._store.delete(stored, preconditions=preconditions)
        except NotFound:
            return
        _log.info("dependent.collected", object=str(key), owner=uid, deleted=not living)
