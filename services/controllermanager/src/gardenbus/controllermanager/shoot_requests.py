"""Writes of the loops over Shoots: spec and annotations through admission, status straight to the store.

A request is carried out only while the object has the version that the decision was made on.
"""

from collections.abc import Callable
from datetime import datetime

from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.api_client import ApiserverClient, RequestPrecondition
from gardenbus.common.controller.controller import RequeueAfter
from gardenbus.common.controller.writes import update
from gardenbus.common.errors import Conflict, NotFound
from gardenbus.common.ports.store import Store

LATE_SECONDS = 0.1
"""Past an instant that is waited for, so that a clock that was set meanwhile does not make it one too early."""

_ATTEMPTS = 5


def until(instant: datetime, now: datetime, reason: str = "") -> RequeueAfter:
    """Wait for an instant."""
    return RequeueAfter(max((instant - now).total_seconds(), 0.0) + LATE_SECONDS, reason)


class ShootRequests:
    """Requests to the apiserver, and writes of the status."""

    def __init__(self, store: Store, api: ApiserverClient) -> None:
        self._store = store
        self._api = api

    async def patch(self, stored: StoredObject, patch: Document) -> None:
        """Patch an object as it was read. Raises Conflict when it has changed, and what admission rejects it with."""
        await self._api.patch(stored.key, patch, RequestPrecondition(stored.key, stored.version))

    async def delete_confirmed(self, stored: StoredObject) -> None:
        """Confirm and request the deletion of a shoot as it was read; one that is gone is no error."""
        key = stored.key
        body = {"kind": key.kind, "namespace": key.namespace, "name": key.name, "confirm": True}
        try:
            await self._api.request("delete", body, precondition=RequestPrecondition(key, stored.version))
        except NotFound:
            return

    async def write_status(self, stored: StoredObject, document: Document) -> StoredObject:
        """Write an object as it was read. Raises Conflict when it has changed or is gone."""
        return await update(self._store, stored, document)

    async def update_status(self, key: ObjectKey, change: Callable[[Document], Document]) -> None:
        """Change the latest state of an object, if there is one; raises Conflict when it never stands still."""
        for attempt in range(1, _ATTEMPTS + 1):
            latest = await self._store.get(key)
            if latest is None:
                return
            try:
                await self.write_status(latest, change(latest.document()))
            except Conflict:
                if attempt == _ATTEMPTS:
                    raise
            else:
                return
