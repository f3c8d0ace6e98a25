"""Lookups of objects that are not in the gardenlet's view, by requests to the apiserver."""

from gardenbus.common.api.document import Document
from gardenbus.common.api.identity.principals import SEED_USER_PREFIX
from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.controller.api_client import ApiserverClient
from gardenbus.common.errors import NotFound
from gardenbus.common.ports.bus import Bus

TIMEOUT_SECONDS = 2.0
"""Limit of a lookup: the Lease is renewed between two of them."""


class ObjectLookup:
    """Reads objects as a seed's gardenlet. Implements `backend.port.GardenReader`."""

    def __init__(self, bus: Bus, subjects: Subjects, seed: str) -> None:
        user = f"{SEED_USER_PREFIX}{seed}"
        self._client = ApiserverClient(bus, subjects, user=user, timeout_seconds=TIMEOUT_SECONDS)

    async def exists(self, key: ObjectKey) -> bool:
        """True when the object is in the store. Raises Unavailable, and what the apiserver responds with."""
        return await self.get(key) is not None

    async def get(self, key: ObjectKey) -> Document | None:
        """The object; None when it is not in the store. Raises Unavailable, and what the apiserver responds with."""
        try:
            found: Document = await self._client.request(f"get.{key.tail}")
        except NotFound:
            return None
        return found
