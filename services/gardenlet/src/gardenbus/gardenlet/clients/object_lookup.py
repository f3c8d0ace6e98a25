"""Lookups of objects that are not in the gardenlet's view, by requests to the apiserver."""

from collections.abc import Sequence
from typing import NamedTuple

from gardenbus.common.api.document import Document
from gardenbus.common.api.identity.principals import SEED_USER_PREFIX
from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.controller.api_client import ApiserverClient
from gardenbus.common.errors import NotFound
from gardenbus.common.ports.bus import Bus

TIMEOUT_SECONDS = 2.0
"""Limit of a lookup: the Lease is renewed between two of them."""


class AnnouncedSeed(NamedTuple):
    """A gardenlet's Seed as it was announced to it last; None when that it was deleted was."""

    seed: Document | None


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

    async def announced_seed(self) -> AnnouncedSeed | None:
        """The seed's own Seed as announced last; None when it has not been. Raises as `get` does."""
        found: Document = await self._client.request("announced")
        return AnnouncedSeed(found["seed"]) if found["isAnnounced"] else None

    async def list(self, kind: str, field_selector: str = "", *, namespace: str = "") -> Sequence[Document]:
        """All objects of a kind, or those of a namespace, that a field selector selects. Raises as `get` does."""
        where = f"{kind}.{namespace}" if namespace else kind
        found: list[Document] = []
        token = ""
        while True:
            query = {"fieldSelector": field_selector} | ({"continue": token} if token else {})
            page: Document = await self._client.request(f"list.{where}", query)
            found += page["items"]
            token = str(page.get("continue") or "")
            if not token:
                return found
