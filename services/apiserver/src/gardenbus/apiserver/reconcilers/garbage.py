"""Garbage collection: an owner is gone, so its dependents go, or forget it where other owners are left.

Work comes as `garden.queue.garbage._.<uid of the owner>`, from the same write that removed the owner (or that created
a dependent of an owner that was gone already).
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import structlog

from gardenbus.apiserver.decide import admission, migration
from gardenbus.apiserver.reconcilers.leaving_seeds import mark_seed_of
from gardenbus.common.errors import Forbidden, NotFound
from gardenbus.common.machinery.controller import After, Done, Outcome, WorkRequest
from gardenbus.common.ports.store import Store
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.keys import ObjectKey

_log = structlog.stdlib.get_logger()

CONTROLLER = "garbage"

LOOK_AGAIN_SECONDS = 60.0
"""When dependents that may not be deleted are looked at again; nothing waits for it."""


class Garbage:
    """Collects what the removal of an owner left behind."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def reconcile(self, request: WorkRequest) -> Outcome:
        """Look at one removed owner, whose uid is the work's name. Raises Conflict, Unavailable."""
        return After(LOOK_AGAIN_SECONDS) if await self.collect(request.name) else Done()

    async def collect(self, uid: str) -> int:
        """Treat every dependent of an owner that is gone; answer how many may not be deleted yet.

        Those are in use, or need a confirmation that nobody has given. Raises Conflict, Unavailable.
        """
        if await self._store.exists_uid(uid):
            return 0
        left = 0
        for key in await self._store.dependents(uid):
            try:
                await self._treat(key, uid)
            except Forbidden as error:
                left += 1
                _log.warning("dependent.kept", object=str(key), owner=uid, reason=error.message)
        return left

    async def _treat(self, key: ObjectKey, uid: str) -> None:
        stored = await self._store.get(key)
        if stored is None:
            return
        document = stored.document()
        others = [owner for owner in _owners(document) if owner.get("uid") != uid]
        living = [owner for owner in others if await self._store.exists_uid(str(owner.get("uid")))]
        try:
            if living:
                await self._store.update(stored, _owned_by(document, others))
            else:
                admission.confirm_deletion(document)
                migration.admit_deletion(document)
                guards = (*admission.delete_guards(document), *await mark_seed_of(stored, self._store))
                await self._store.delete(stored, guards=guards)
        except NotFound:
            return
        _log.info("dependent.collected", object=str(key), owner=uid, deleted=not living)


def _owners(document: Document) -> Sequence[Mapping[str, Any]]:
    owners = cast("list[Any]", document["metadata"].get("ownerReferences") or [])
    return [cast("Document", owner) for owner in owners if isinstance(owner, dict)]


def _owned_by(document: Document, owners: Sequence[Mapping[str, Any]]) -> Document:
    metadata = {name: value for name, value in document["metadata"].items() if name != "ownerReferences"}
    return {**document, "metadata": {**metadata, "ownerReferences": list(owners)}}
