"""Reader of single objects from the apiserver."""

from collections.abc import Awaitable, Callable

from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.controller.api_client import ApiserverClient
from gardenbus.common.errors import NotFound
from gardenbus.common.ports.bus import Bus

ReadObject = Callable[[ObjectKey], Awaitable[Document | None]]
"""Reads an object as it is now; None when it does not exist. Raises GardenbusError."""


def object_reader(bus: Bus, subjects: Subjects, user: str = "") -> ReadObject:
    """Build a reader on a bus, anonymous unless a user is given."""
    client = ApiserverClient(bus, subjects, user=user)

    async def read(key: ObjectKey) -> Document | None:
        try:
            document: Document = await client.request(f"get.{key.tail}")
        except NotFound:
            return None
        return document

    return read
