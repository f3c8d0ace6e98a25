"""ShootStates of one seed's shoots: the data that a shoot is restored from on another seed, or here after a loss.

A state counts as saved once it is observed in this seed's view; until then it is applied again.
"""

import structlog

from gardenbus.common.api.confirmation import is_confirmed
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.gardenlet.clients.reporter import SeedReporter
from gardenbus.gardenlet.domain.flows import OperationType
from gardenbus.gardenlet.domain.operations import ObservedShoot, state_generation
from gardenbus.gardenlet.domain.shoot_record import ShootName, ShootRecord
from gardenbus.gardenlet.domain.shoot_state import (
    StepStates,
    generation_of,
    is_stored,
    restorable,
    shoot_state,
    state_in,
    state_of,
)
from gardenbus.gardenlet.watch.binding_cache import SHOOT_STATE, BindingCache, Tombstone

_log = structlog.stdlib.get_logger()

NOT_STORED = "The ShootState has not been stored yet."
SAVE_AGAIN_SECONDS = 5.0
"""Retry delay of a state that a migration waits for."""

KEEP_AGAIN_SECONDS = 60.0
"""Retry delay of a state that nothing waits for."""


class ShootStates:
    """See the module."""

    def __init__(self, cache: BindingCache, reporter: SeedReporter) -> None:
        self._cache = cache
        self._reporter = reporter

    def can_restore(self, observed: ObservedShoot, record: ShootRecord | None) -> bool:
        """True if the state that the shoot was handed over with is cached."""
        return (
            restorable(self._stored_state(observed), observed, generation=state_generation(observed, record))
            is not None
        )

    def initial_state(
        self, observed: ObservedShoot, record: ShootRecord, operation: OperationType
    ) -> dict[str, Document]:
        """State that a new run starts from: what was saved after a loss; that and the record's for a migration."""
        saved = state_in(self._stored_state(observed), observed.uid) or {}
        if operation == "Migrate":
            return saved | record.state | state_of(record)
        if operation == "Delete":
            return {}
        return record.state or (saved if not record.resources else {})

    async def save(self, observed: ObservedShoot, state: StepStates, *, generation: int) -> str | None:
        """Save a state for a migration; returns what is missing, None once it is stored. Raises Unavailable."""
        if is_stored(self._stored_state(observed), observed, state, generation=generation):
            return None
        await self._apply_state(observed, shoot_state(observed, state, generation=generation))
        return NOT_STORED

    async def keep(self, observed: ObservedShoot, record: ShootRecord) -> bool:
        """Save the state of a reconciled shoot if it changed; returns whether it did. Raises Unavailable."""
        state = state_of(record)
        if not self._cache.is_complete or state_in(self._stored_state(observed), observed.uid) == state:
            return False
        generation: int = record.status.get("observedGeneration") or 0
        await self._apply_state(observed, shoot_state(observed, state, generation=generation))
        return True

    async def release(self, observed: ObservedShoot, record: ShootRecord) -> None:
        """Confirm the deletion of a deleted shoot's state, also of one that is not observed yet. Raises Unavailable."""
        held = self._stored_state(observed)
        state = state_in(held, observed.uid)
        if state is not None and is_confirmed(held or {}):
            return
        if state := state or state_of(record):
            generation = max(generation_of(held), record.status.get("observedGeneration") or 0)
            await self._apply_state(observed, shoot_state(observed, state, generation=generation, is_deletable=True))

    async def handle_tombstone(self, shoot: ShootName) -> None:
        """Confirm a ShootState's tombstone: no record depends on it. Raises Unavailable.

        An unconfirmed one whose shoot is not cached is queried: it may be stale.
        """
        key = ObjectKey(SHOOT_STATE, *shoot)
        entry = self._cache.objects.get(key)
        if isinstance(entry, Tombstone):
            await self._reporter.confirm_gone(key, tombstone=entry.sequence)
            self._cache.forget_object(key, entry)
        elif self._cache.is_complete and self._cache.is_unconfirmed(key) and self._cache.shoot(shoot) is None:
            await self._reporter.query(key, "")

    def _stored_state(self, observed: ObservedShoot) -> Document | None:
        return self._cache.shoot_state(*observed.full_name)

    async def _apply_state(self, observed: ObservedShoot, manifest: Document) -> None:
        await self._reporter.apply(ObjectKey(SHOOT_STATE, observed.namespace, observed.name), manifest)
        _log.info(
            "state.saved", shoot=f"{observed.namespace}/{observed.name}", entries=len(manifest["spec"]["gardener"])
        )
