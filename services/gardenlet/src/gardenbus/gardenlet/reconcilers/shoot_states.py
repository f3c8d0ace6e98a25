"""Keeps the ShootStates of one seed's shoots: what a shoot is rebuilt from on another seed, or here after a loss.

Saving is asking: a state counts as saved when it comes back in this seed's view. Until then it is said again.
"""

import structlog

from gardenbus.common.resources.document import Document
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.gardenlet.backend.port import ShootName
from gardenbus.gardenlet.decide.flows import OperationType
from gardenbus.gardenlet.decide.operations import ShootTold, state_generation
from gardenbus.gardenlet.decide.record import ShootRecord
from gardenbus.gardenlet.decide.shoot_state import (
    State,
    generation_of,
    is_deletable,
    is_stored,
    restorable,
    shoot_state,
    state_in,
    state_of,
)
from gardenbus.gardenlet.reconcilers.reports import Reporter
from gardenbus.gardenlet.reconcilers.told import SHOOT_STATE, Gone, Told

_log = structlog.stdlib.get_logger()

NOT_STORED = "The ShootState has not been stored yet."
SAVE_AGAIN_SECONDS = 5.0
"""When a state that a migration waits for is said again."""

KEEP_AGAIN_SECONDS = 60.0
"""When a state that nobody waits for is said again."""


class ShootStates:
    """See the module."""

    def __init__(self, told: Told, reporter: Reporter) -> None:
        self._told = told
        self._reporter = reporter

    def can_restore(self, told: ShootTold, record: ShootRecord | None) -> bool:
        """Whether what the shoot was handed over with is in the view."""
        return restorable(self._held(told), told, generation=state_generation(told, record)) is not None

    def brought(self, told: ShootTold, record: ShootRecord, operation: OperationType) -> dict[str, Document]:
        """What a new run starts from: of a loss, what was saved; of a migration, that and all that is kept here."""
        saved = state_in(self._held(told), told.uid) or {}
        if operation == "Migrate":
            return saved | record.state | state_of(record)
        if operation == "Delete":
            return {}
        return record.state or (saved if not record.resources else {})

    async def save(self, told: ShootTold, state: State, *, generation: int) -> str | None:
        """Have a state stored for a migration; answers what is missing, None once it is. Raises Unavailable."""
        if is_stored(self._held(told), told, state, generation=generation):
            return None
        await self._say(told, shoot_state(told, state, generation=generation))
        return NOT_STORED

    async def keep(self, told: ShootTold, record: ShootRecord) -> bool:
        """Have the state of a settled shoot stored; answers whether it had to be said. Raises Unavailable."""
        state = state_of(record)
        if not self._told.is_complete or state_in(self._held(told), told.uid) == state:
            return False
        generation: int = record.status.get("observedGeneration") or 0
        await self._say(told, shoot_state(told, state, generation=generation))
        return True

    async def release(self, told: ShootTold) -> None:
        """Let the state of a shoot that is deleted go with it. Raises Unavailable."""
        held = self._held(told)
        state = state_in(held, told.uid)
        if state is not None and not is_deletable(held):
            await self._say(told, shoot_state(told, state, generation=generation_of(held), is_deletable=True))

    async def obey(self, shoot: ShootName) -> None:
        """Have a ShootState's tombstone taken away: there is nothing here that hangs on it. Raises Unavailable.

        One that only a replay tells of, and whose shoot is not told of at all, is asked about: it may be over.
        """
        key = ObjectKey(SHOOT_STATE, *shoot)
        said = self._told.objects.get(key)
        if isinstance(said, Gone):
            await self._reporter.gone(key, tombstone=said.sequence)
            self._told.forget_object(key, said)
        elif self._told.is_complete and self._told.is_hearsay(key) and self._told.shoot(shoot) is None:
            await self._reporter.ask(key, "")

    def _held(self, told: ShootTold) -> Document | None:
        return self._told.shoot_state(told.namespace, told.name)

    async def _say(self, told: ShootTold, manifest: Document) -> None:
        await self._reporter.apply(ObjectKey(SHOOT_STATE, told.namespace, told.name), manifest)
        _log.info("state.saved", shoot=f"{told.namespace}/{told.name}", entries=len(manifest["spec"]["gardener"]))
