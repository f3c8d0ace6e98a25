"""NamespacedCloudProfiles follow their parents: what is merged in a status is worked out again when either changes.

Every replica looks, and the first one writes; the others find nothing left to do. News only says where to look: what
is compared and written is read from the store, so a lost or repeated change is none.
"""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from gardenbus.apiserver.decide.profiles import parent_key, with_parent
from gardenbus.common.errors import Conflict, NotFound, Transient
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import Store
from gardenbus.common.resources.document import StoredObject
from gardenbus.common.resources.keys import ObjectKey

_log = structlog.stdlib.get_logger()

PAUSE_SECONDS = 0.5
"""Before another try when a server is away or somebody else was quicker."""


class Profiles:
    """Keeps merged profiles current. `changed` is an informer's callback for `KINDS`."""

    KINDS = ("cloudprofile", "namespacedcloudprofile")

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._parents: dict[ObjectKey, ObjectKey] = {}
        self._due: set[ObjectKey] = set()
        self._is_due = asyncio.Event()

    def changed(self, key: ObjectKey, _old: StoredObject | None, new: StoredObject | None) -> None:
        """Note whose status may be behind."""
        if key.kind == "cloudprofile":
            self._look_at(*(profile for profile, parent in self._parents.items() if parent == key))
        elif new is None:
            self._parents.pop(key, None)
        elif parent := parent_key(new.document()):
            self._parents[key] = parent
            self._look_at(key)

    async def run(self, start: Callable[[], Awaitable[None]]) -> None:
        """Have the news started, then follow them for ever."""
        await start()
        while True:
            await self._is_due.wait()
            self._is_due.clear()
            if not await self.catch_up():
                await self._clock.sleep(PAUSE_SECONDS)
                self._is_due.set()

    async def catch_up(self) -> bool:
        """Look at all that are due; answer whether none has to be looked at again."""
        due, self._due = self._due, set()
        for profile in sorted(due):
            try:
                await self._follow(profile)
            except Conflict:
                self._due.add(profile)
            except Transient as error:
                _log.warning("profiles.interrupted", reason=error.message)
                self._due |= due
                return False
        return not self._due

    async def _follow(self, profile: ObjectKey) -> None:
        stored = await self._store.get(profile)
        parent = parent_key(stored.document()) if stored is not None else None
        above = await self._store.get(parent) if parent is not None else None
        if stored is None or above is None:
            return
        current = stored.document()
        merged = with_parent(current, above.document(), generation=stored.generation)
        if merged == current:
            return
        try:
            await self._store.update(stored, merged)
        except NotFound:
            return
        _log.info("profile.merged", object=str(profile), parent=str(parent), parent_version=above.version)

    def _look_at(self, *profiles: ObjectKey) -> None:
        self._due.update(profiles)
        if self._due:
            self._is_due.set()
