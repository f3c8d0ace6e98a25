"""Reconciles the ManagedSeeds that shoots request by annotation: creates, updates and deletes them.

The ManagedSeed is written right after its shoot, by the same handler, and on the version of the shoot that it was made
from: a write based on an older one fails and is retried. A process that dies between the two writes leaves the second
undone; therefore every replica also reconciles each such shoot at its start and on changes. Repeating it changes
nothing.
"""

from collections.abc import Mapping, Sequence

import structlog

from gardenbus.apiserver.controllers.informer_controller import InformerController
from gardenbus.apiserver.domain.use_as_seed import FIELD, follows_annotation, requested_seed
from gardenbus.apiserver.domain.use_as_seed_admission import managed_seed_key
from gardenbus.apiserver.registry.preconditions import Precondition
from gardenbus.apiserver.registry.read_cache import ManifestCache, ReadCache
from gardenbus.apiserver.registry.retry_on_conflict import UnmetDependency, WriteResult, cause_of
from gardenbus.apiserver.registry.writer import Writer
from gardenbus.common.api.document import Document, StoredObject, encode
from gardenbus.common.api.garden.seed_management import USE_AS_SEED
from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.errors import Conflict, GardenbusError, NotFound, Terminal
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import Store

_log = structlog.stdlib.get_logger()

USER = "apiserver"
"""Recorded as creator of what a dead process left undone."""

MAX_CONFLICT_RETRIES = 10
"""Attempts on a shoot that keeps changing; afterwards its next change is waited for."""


_ANNOTATED = encode(USE_AS_SEED)
"""Part of the metadata of a shoot with the annotation."""


class UseAsSeed(InformerController):
    """Keeps the ManagedSeeds of annotations. `follow_up` runs after writes, `on_change` on events for `KINDS`."""

    KINDS = ("shoot", "managedseed")
    NAMESPACES: Mapping[str, str] = dict.fromkeys(KINDS, GARDEN_NAMESPACE)

    def __init__(self, store: Store, clock: Clock, writer: Writer, manifests: ManifestCache) -> None:
        super().__init__(clock)
        self._store = store
        self._writer = writer
        self._manifests = manifests

    async def follow_up(self, written: WriteResult, reads: ReadCache, user: str) -> Sequence[str]:
        """Reconcile the ManagedSeed of a shoot that was just written; returns warnings. Raises Unavailable."""
        if written.key.kind != "shoot" or written.key.namespace != GARDEN_NAMESPACE or written.outcome == "superseded":
            return ()
        return await self._reconcile(written.key, reads, user)

    def on_change(self, key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        """Enqueue the shoot of a changed object."""
        if key.kind == "managedseed" or any(one is not None and _ANNOTATED in one.parts.meta for one in (old, new)):
            self.enqueue(ObjectKey("shoot", key.namespace, key.name))

    async def reconcile(self, key: ObjectKey) -> bool:
        """Make the ManagedSeed of a shoot true to its annotation. Raises Unavailable."""
        warnings = await self._reconcile(key, ReadCache(self._store, self._manifests), USER)
        if warnings:
            _log.warning("managed_seed.rejected", shoot=str(key), reason="; ".join(warnings))
        return bool(warnings)

    # ------------------------------------------------------------------------------------------ steps

    async def _reconcile(self, shoot: ObjectKey, reads: ReadCache, user: str) -> Sequence[str]:
        """Reconcile a shoot until it succeeds on its newest version; returns the reason why it could not."""
        for _ in range(MAX_CONFLICT_RETRIES):
            stored = await reads.get(shoot)
            existing = await reads.get(managed_seed_key(shoot))
            try:
                await self._reconcile_once(stored, existing, reads, user)
            except (UnmetDependency, Terminal) as error:
                return (_rejected(cause_of(error)),)
            except (Conflict, NotFound):  # the shoot or its ManagedSeed has changed since it was read
                for key in (shoot, managed_seed_key(shoot)):
                    reads.invalidate(key)
                continue
            return ()
        self.enqueue(shoot)
        return ()

    async def _reconcile_once(
        self, stored: StoredObject | None, existing: StoredObject | None, reads: ReadCache, user: str
    ) -> None:
        if stored is None:
            return
        shoot = stored.document()
        current = existing.document() if existing is not None else None
        if current is not None and not follows_annotation(current, shoot):
            return
        condition = Precondition(stored.key, stored.version)
        wanted = None if stored.is_deleting else requested_seed(shoot).managed_seed
        if wanted is not None:
            if existing is None or not existing.is_deleting:
                await self._apply(wanted, condition, reads, user)
        elif existing is not None and not existing.is_deleting:
            await self._writer.delete(existing.key, reads, condition=condition)
            _log.info("managed_seed.deleted", object=str(existing.key), shoot=str(stored.key))

    async def _apply(self, wanted: Document, condition: Precondition, reads: ReadCache, user: str) -> None:
        written = await self._writer.apply(wanted, reads, user=user, condition=condition)
        if written.outcome in ("created", "configured"):
            _log.info(
                "managed_seed.created", object=str(written.key), shoot=str(condition.key), outcome=written.outcome
            )


def _rejected(error: GardenbusError) -> str:
    return f"{FIELD}: its ManagedSeed stays as it is for now, and is tried again: {error.message}"
