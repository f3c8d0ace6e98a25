"""Lookups of objects that are not in the gardenlet's view, by requests to the apiserver."""

from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.controller.api_client import ApiserverClient
from gardenbus.common.errors import NotFound
from gardenbus.common.ports.bus import Bus

TIMEOUT_SECONDS = 2.0
"""Limit of a lookup: the Lease is renewed between two of them."""


class ObjectLookup:
    """Tells whether objects exist."""

    def __init__(self, bus: Bus, subjects: Subjects) -> None:
        self._client = ApiserverClient(bus, subjects, timeout_seconds=TIMEOUT_SECONDS)

    async def exists(self, key: ObjectKey) -> bool:
        """True when the object is in the store. Raises Unavailable, and what the apiserver responds with."""
        try:
            await self._client.request(f"get.{key.tail}")
        except NotFound:
            return False
        return True
