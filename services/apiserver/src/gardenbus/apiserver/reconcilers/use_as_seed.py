"""Shoots that ask by annotation to be seeds have their ManagedSeed, and those that do so no more have it no longer.

The ManagedSeed is written right after its shoot, by who wrote that, and on the version of the shoot that it was made
from: whoever comes with an older one is turned away and looks again. A process that dies between the two writes leaves
the second undone; therefore every replica also looks at each such shoot when it starts and when one changes, and does
what is missing. Doing it twice changes nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

import structlog

from gardenbus.apiserver.decide.use_as_seed import (
    FIELD,
    follows_annotation,
    used_as_seed,
)
from gardenbus.apiserver.decide.use_as_seed_admission import managed_seed_key
from gardenbus.apiserver.reconcilers.attempts import Contingent, Written
from gardenbus.apiserver.reconcilers.preconditions import Condition
from gardenbus.apiserver.reconcilers.reads import Library, Reads
from gardenbus.apiserver.reconcilers.writing import Writer
from gardenbus.common.errors import Conflict, GardenbusError, NotFound, Terminal, Transient
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import Store
from gardenbus.common.resources.document import Document, StoredObject, encode
from gardenbus.common.resources.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.resources.seed_management import USE_AS_SEED

_log = structlog.stdlib.get_logger()

USER = "apiserver"
"""Who is recorded as the maker of what a dead process left undone."""

LOOKS = 10
"""How often a shoot that changes all the time is looked at in one go; afterwards its next change is waited for."""

PAUSE_SECONDS = 0.5
"""Before another try when a server is away or somebody else was quicker."""

REFUSED_PAUSE_SECONDS = 60.0
"""Before another try of what was refused, unless something changes first."""


_ANNOTATED = encode(USE_AS_SEED)
"""Stands in the metadata of a shoot that has the annotation."""


class UseAsSeed:
    """Keeps the ManagedSeeds of annotations. `follow` goes with writes; `changed` is an informer's for `KINDS`."""

    KINDS = ("shoot", "managedseed")
    NAMESPACES: Mapping[str, str] = dict.fromkeys(KINDS, GARDEN_NAMESPACE)

    def __init__(self, store: Store, clock: Clock, writer: Writer, library: Library) -> None:
        self._store = store
        self._clock = clock
        self._writer = writer
        self._library = library
        self._due: set[ObjectKey] = set()
        self._refused: set[ObjectKey] = set()
        self._is_due = asyncio.Event()

    async def follow(self, written: Written, reads: Reads, user: str) -> Sequence[str]:
        """Make the ManagedSeed of a shoot just written true to its annotation; answer warnings. Raises Unavailable."""
        if written.key.kind != "shoot" or written.key.namespace != GARDEN_NAMESPACE or written.outcome == "superseded":
            return ()
        return await self._settle(written.key, reads, user)

    def changed(self, key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        """Note which shoot is to be looked at."""
        if key.kind == "managedseed" or any(one is not None and _ANNOTATED in one.parts.meta for one in (old, new)):
            self._look_at(ObjectKey("shoot", key.namespace, key.name))

    async def run(self, start: Callable[[], Awaitable[None]]) -> None:
        """Have the news started, then follow them for ever."""
        await start()
        while True:
            try:
                async with asyncio.timeout(REFUSED_PAUSE_SECONDS if self._refused else None):
                    await self._is_due.wait()
            except TimeoutError:
                self._due |= self._refused
            self._is_due.clear()
            if not await self.catch_up():
                await self._clock.sleep(PAUSE_SECONDS)
                self._is_due.set()

    async def catch_up(self) -> bool:
        """Look at all shoots that are due; answer whether none has to be looked at again soon."""
        due, self._due = self._due, set()
        for shoot in sorted(due):
            self._refused.discard(shoot)
            try:
                if warnings := await self._settle(shoot, Reads(self._store, self._library), USER):
                    self._refused.add(shoot)
                    _log.warning("managed_seed.refused", shoot=str(shoot), reason="; ".join(warnings))
            except Transient as error:
                _log.warning("use_as_seed.interrupted", reason=error.message)
                self._due |= due
                return False
        return not self._due

    # ------------------------------------------------------------------------------------------ steps

    async def _settle(self, shoot: ObjectKey, reads: Reads, user: str) -> Sequence[str]:
        """Look at a shoot until what was done was done on its newest version; answer why it could not be done."""
        for _ in range(LOOKS):
            stored = await reads.get(shoot)
            standing = await reads.get(managed_seed_key(shoot))
            try:
                await self._make_true(stored, standing, reads, user)
            except Contingent as refusal:
                return (_refused(refusal.error),)
            except Terminal as error:
                return (_refused(error),)
            except (Conflict, NotFound):  # the shoot or its ManagedSeed is not what was read: look again
                for known in (shoot, managed_seed_key(shoot)):
                    reads.forget(known)
                continue
            return ()
        self._look_at(shoot)
        return ()

    async def _make_true(
        self, stored: StoredObject | None, standing: StoredObject | None, reads: Reads, user: str
    ) -> None:
        if stored is None:
            return
        shoot = stored.document()
        current = standing.document() if standing is not None else None
        if current is not None and not follows_annotation(current, shoot):
            return
        condition = Condition(stored.key, stored.version)
        wanted = None if stored.is_deleting else used_as_seed(shoot).managed_seed
        if wanted is not None:
            if standing is None or not standing.is_deleting:
                await self._make(wanted, condition, reads, user)
        elif standing is not None and not standing.is_deleting:
            await self._writer.delete(standing.key, reads, condition=condition)
            _log.info("managed_seed.deleted", object=str(standing.key), shoot=str(stored.key))

    async def _make(self, wanted: Document, condition: Condition, reads: Reads, user: str) -> None:
        written = await self._writer.apply(wanted, reads, user=user, condition=condition)
        if written.outcome in ("created", "configured"):
            _log.info("managed_seed.made", object=str(written.key), shoot=str(condition.key), outcome=written.outcome)

    def _look_at(self, shoot: ObjectKey) -> None:
        self._due.add(shoot)
        self._is_due.set()


def _refused(error: GardenbusError) -> str:
    return f"{FIELD}: its ManagedSeed stays as it is for now, and is tried again: {error.message}"
