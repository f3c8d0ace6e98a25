"""Garbage collector: dependents of a removed owner are deleted, or lose the reference where others own them.

A dependent is deleted as whoever set the reference (`domain.collecting`), who must be allowed to delete it, under the
same conditions: what nobody has confirmed, or another one has to approve, stays. Requests come as
`garden.queue.garbage._.<uid of the owner>`, from the same write that removed the owner (or that created a dependent of
an owner that was gone already).
"""

import structlog

from gardenbus.apiserver.access.authorizer import Authorizer
from gardenbus.apiserver.domain import migration
from gardenbus.apiserver.domain.admission import Admission
from gardenbus.apiserver.domain.authorization.actions import Action, Requester
from gardenbus.apiserver.domain.collecting import COLLECTOR, collector_of
from gardenbus.apiserver.registry.read_cache import ManifestCache, ReadCache
from gardenbus.apiserver.registry.seed_removal import annotate_seed_removal
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.document_parts import mappings, with_metadata
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.owners import setters_of
from gardenbus.common.controller.agent_credentials import AgentCredentials
from gardenbus.common.controller.controller import Done, ReconcileRequest, ReconcileResult, RequeueAfter
from gardenbus.common.errors import Forbidden, NotFound
from gardenbus.common.ports.recovery import RECOVERY_POLL_SECONDS
from gardenbus.common.ports.store import Store

_log = structlog.stdlib.get_logger()

CONTROLLER = "garbage"

RETRY_SECONDS = 60.0
"""Interval of retries for dependents that must not be deleted yet."""


class GarbageCollector:
    """Collects what the removal of an owner left behind."""

    def __init__(
        self,
        store: Store,
        admission: Admission,
        authorizer: Authorizer,
        manifests: ManifestCache,
        credentials: AgentCredentials,
    ) -> None:
        self._store = store
        self._admission = admission
        self._authorizer = authorizer
        self._manifests = manifests
        self._credentials = credentials

    async def reconcile(self, request: ReconcileRequest) -> ReconcileResult:
        """Reconcile one removed owner, whose uid is the name of the request. Raises Conflict, Unavailable."""
        recovery = await self._store.recovery()
        if recovery is not None:
            return RequeueAfter(RECOVERY_POLL_SECONDS, f"an owner may be lost, not removed: {recovery.text}")
        return RequeueAfter(RETRY_SECONDS) if await self.collect(request.name) else Done()

    async def collect(self, uid: str) -> int:
        """Collect every dependent of an owner that is gone; returns how many must not be deleted yet.

        Those are in use, their deletion is not confirmed, or whoever set the reference may not delete them. Raises
        Conflict, Unavailable.
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
                await self._delete(
                    stored, document, collector_of(key, uid, setters_of(stored.owner_setters).get(uid, ""))
                )
        except NotFound:
            return
        _log.info("dependent.collected", object=str(key), owner=uid, deleted=not living)

    async def _delete(self, stored: StoredObject, document: Document, collector: Requester) -> None:
        """Delete a dependent as somebody. Raises Forbidden when that one may not, or not yet."""
        if stored.is_deleting:
            return
        reads = ReadCache(self._store, self._manifests)
        grant = await self._authorizer.grant(collector, Action.on("delete", stored.key), reads)
        related = await reads.related(self._admission.deletion_queries(document))
        self._admission.admit_deletion(document, related, user=None if collector is COLLECTOR else collector.user)
        migration.admit_deletion(document)
        guards = self._admission.deletion_guards(document)
        preconditions = (*guards, *await annotate_seed_removal(stored, self._store))
        if not stored.parts.finalizers:
            await self._credentials.end_with(stored)
        await self._store.delete(stored, preconditions=preconditions)
        grant.written("collected")
