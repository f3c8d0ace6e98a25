"""Writes of reconcilers: on the version that was read, with what goes wrong as the controller understands it."""

from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.errors import Conflict, NotFound
from gardenbus.common.ports.store import Store, Superseded, WritePrecondition


async def update(
    store: Store, stored: StoredObject, document: Document, *preconditions: WritePrecondition
) -> StoredObject:
    """Write an object on the version that was read; one that was deleted and has no finalizer left is gone then.

    Raises Conflict when it is gone or has changed, Forbidden when something refers to what must be free, Unavailable.
    """
    try:
        written = await store.update(stored, document, preconditions=preconditions)
    except NotFound as error:
        raise Conflict(f"{stored.key} is gone") from error
    if isinstance(written, Superseded):
        raise Conflict(f"{stored.key} changed meanwhile")
    return written
