"""Writes replicas through the apiserver, so that admission applies to them as to anybody's objects.

Each request carries a precondition: it is carried out only while the set has the version that the decision was written
at (Conflict otherwise), so a replica of this service that was held up cannot act on an outdated decision.
"""

from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.controller.api_client import ApiserverClient, RequestPrecondition
from gardenbus.common.errors import NotFound
from gardenbus.common.ports.bus import Bus

USER = "managedseedset"


class GardenClient:
    """Writes as the user `managedseedset`. All methods raise the response's error, or Unavailable without one."""

    def __init__(self, bus: Bus, subjects: Subjects) -> None:
        self._api = ApiserverClient(bus, subjects, user=USER)

    async def apply(self, document: Document, precondition: RequestPrecondition) -> None:
        """Create an object, or update it to a manifest."""
        await self._api.request("apply", document, precondition=precondition)

    async def patch(self, key: ObjectKey, patch: Document, precondition: RequestPrecondition) -> None:
        """Update an object by a merge patch."""
        await self._api.patch(key, patch, precondition)

    async def delete(self, key: ObjectKey, precondition: RequestPrecondition) -> None:
        """Delete an object; one that is gone is no error."""
        try:
            await self._api.request(f"delete.{key.tail}", precondition=precondition)
        except NotFound:
            return

    async def bind(self, shoot: ObjectKey, seed: str, precondition: RequestPrecondition) -> None:
        """Migrate a shoot to another seed."""
        body = {"namespace": shoot.namespace, "name": shoot.name, "seed": seed}
        await self._api.request("bind", body, precondition=precondition)
