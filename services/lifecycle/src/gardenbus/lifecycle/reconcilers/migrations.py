"""Looks at shoots that move from seed to seed: tells the source when the destination is ready, and keeps the state.

Work comes as `garden.queue.migration.<ns>.<name>`, from the write by which a shoot starts or stops to stand elsewhere
than it shall. A shoot on its way is looked at every few seconds, and at once when its destination changes.
"""

from collections.abc import Callable
from contextlib import suppress

import structlog

from gardenbus.common.errors import NotFound
from gardenbus.common.machinery.controller import After, Done, Outcome, WorkRequest
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import Store
from gardenbus.common.resources.document import Document, StoredObject
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.lifecycle.decide.migration import (
    destination_readiness,
    is_moving,
    matters,
    needs_state,
    seeds_of,
    with_readiness,
    with_state_held,
    without_readiness,
)

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

CONTROLLER = "migration"
LOOK_AGAIN_SECONDS = 5.0


class MigrationReconciler:
    """See the module. `nudge` asks for a look at a shoot."""

    def __init__(self, store: Store, clock: Clock, nudge: Callable[[ObjectKey], None]) -> None:
        self._store = store
        self._clock = clock
        self._nudge = nudge
        self._waiting: dict[ObjectKey, str] = {}

    def watch(self, key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        """Have the shoots looked at that are on their way to a seed which has changed."""
        waiting = [shoot for shoot, seed in self._waiting.items() if seed == key.name]
        if waiting and matters(old.document() if old else None, new.document() if new else None):
            for shoot in waiting:
                self._nudge(shoot)

    async def reconcile(self, request: WorkRequest) -> Outcome:
        """Look at one shoot. Raises Conflict, Unavailable."""
        key = ObjectKey("shoot", request.namespace, request.name)
        stored = await self._store.get(key)
        document = stored.document() if stored is not None else None
        if stored is None or document is None or not is_moving(document):
            self._waiting.pop(key, None)
        if stored is not None and document is not None:
            await self._judge(stored, document)
        is_needed = document is not None and needs_state(document)
        await self._hold_state(key, held=is_needed)
        if is_needed or (document is not None and is_moving(document)):
            return After(LOOK_AGAIN_SECONDS, "on its way")
        return Done("it is where it shall be")

    async def _judge(self, stored: StoredObject, document: Document) -> None:
        """Keep the constraint of one shoot."""
        new = without_readiness(document)
        if is_moving(document):
            source, destination = seeds_of(document)
            self._waiting[stored.key] = destination  # before its Seed is read: what changes afterwards is a nudge
            keys = [ObjectKey("seed", "", name) for name in (source, destination)]
            there = [seed.document() if seed is not None else None for seed in await self._store.get_many(keys)]
            readiness = destination_readiness(destination, there[1], there[0])
            new = with_readiness(document, readiness, self._clock.now())
            if new is not None:
                log.info("migration.judged", shoot=str(stored.key), ready=readiness.status, reason=readiness.reason)
        if new is not None:
            with suppress(NotFound):
                await self._store.update(stored, new)

    async def _hold_state(self, shoot: ObjectKey, *, held: bool) -> None:
        """Keep the ShootState from being removed, or let it go."""
        stored = await self._store.get(ObjectKey("shootstate", shoot.namespace, shoot.name))
        new = with_state_held(stored.document(), held=held) if stored is not None else None
        if stored is not None and new is not None:
            with suppress(NotFound):
                await self._store.update(stored, new)
