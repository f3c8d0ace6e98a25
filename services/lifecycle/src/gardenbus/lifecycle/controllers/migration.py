"""Reconciles shoots under migration: reports the destination's readiness to the source, and protects the ShootState.

Messages come as `garden.queue.migration.<ns>.<name>`, from the write by which spec.seedName and status.seedName begin
or cease to differ. Such a shoot is polled every few seconds, and enqueued when its destination changes.
"""

from collections.abc import Callable
from contextlib import suppress

import structlog

from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.garden.migration_feasibility import seeds_of
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.controller import Done, ReconcileRequest, ReconcileResult, RequeueAfter
from gardenbus.common.errors import NotFound
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import Store
from gardenbus.lifecycle.domain.migration import (
    affects_readiness,
    destination_readiness,
    is_moving,
    needs_state,
    with_readiness,
    with_state_finalizer,
    without_readiness,
)

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

CONTROLLER = "migration"
POLL_SECONDS = 5.0


class MigrationReconciler:
    """Reconciles one shoot; `enqueue` requests a reconciliation of it."""

    def __init__(self, store: Store, clock: Clock, enqueue: Callable[[ObjectKey], None]) -> None:
        self._store = store
        self._clock = clock
        self._enqueue = enqueue
        self._waiting: dict[ObjectKey, str] = {}

    def watch(self, key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        """Enqueue the shoots that migrate to a seed which has changed."""
        waiting = [shoot for shoot, seed in self._waiting.items() if seed == key.name]
        if waiting and affects_readiness(old.document() if old else None, new.document() if new else None):
            for shoot in waiting:
                self._enqueue(shoot)

    async def reconcile(self, request: ReconcileRequest) -> ReconcileResult:
        """Reconcile one shoot. Raises Conflict, Unavailable."""
        key = ObjectKey("shoot", request.namespace, request.name)
        stored = await self._store.get(key)
        document = stored.document() if stored is not None else None
        if stored is None or document is None or not is_moving(document):
            self._waiting.pop(key, None)
        if stored is not None and document is not None:
            await self._update_constraint(stored, document)
        is_needed = document is not None and needs_state(document)
        await self._set_state_finalizer(key, held=is_needed)
        if is_needed or (document is not None and is_moving(document)):
            return RequeueAfter(POLL_SECONDS, "in progress")
        return Done("it is on its destination")

    async def _update_constraint(self, stored: StoredObject, document: Document) -> None:
        """Write the readiness constraint of one shoot."""
        new = without_readiness(document)
        if is_moving(document):
            destination, source = seeds_of(document)
            self._waiting[stored.key] = (
                destination  # set before its Seed is read: later changes of it enqueue the shoot
            )
            keys = [ObjectKey("seed", "", name) for name in (source, destination)]
            there = [seed.document() if seed is not None else None for seed in await self._store.get_many(keys)]
            readiness = destination_readiness(destination, there[1], there[0])
            new = with_readiness(document, readiness, self._clock.now())
            if new is not None:
                log.info("migration.assessed", shoot=str(stored.key), ready=readiness.status, reason=readiness.reason)
        if new is not None:
            with suppress(NotFound):
                await self._store.update(stored, new)

    async def _set_state_finalizer(self, shoot: ObjectKey, *, held: bool) -> None:
        """Set or remove the ShootState's finalizer."""
        stored = await self._store.get(ObjectKey("shootstate", shoot.namespace, shoot.name))
        new = with_state_finalizer(stored.document(), held=held) if stored is not None else None
        if stored is not None and new is not None:
            with suppress(NotFound):
                await self._store.update(stored, new)
