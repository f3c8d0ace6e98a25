"""Writes of reconcilers: on the version that was read, under preconditions, with what the controller understands."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence

from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.controller.enqueue_on_change import beyond_status
from gardenbus.common.errors import AlreadyExists, Conflict, GardenbusError, NotFound
from gardenbus.common.ports.store import Creation, EventRecord, Store, WritePrecondition

CREATIONS_PER_CALL = 50
WRITES_AT_ONCE = 32
"""Concurrent updates: enough to keep the store busy, few enough to let others through."""

ATTEMPTS = 5
"""Attempts of a write when only the status of its object has changed."""


def version_precondition(stored: StoredObject) -> WritePrecondition:
    """Return the precondition that an object has the version that was read."""
    return WritePrecondition("version", stored.key.stored, f"{stored.key} changed meanwhile", stored.version)


async def update(
    store: Store, base: StoredObject, document: Document, preconditions: Sequence[WritePrecondition] = ()
) -> StoredObject:
    """Write on exactly what was read; one that was deleted and has no finalizer left is gone then.

    Raises Conflict when it is gone or has changed, Forbidden when something refers to what must be free, Unavailable.
    """
    try:
        result = await store.update(base, document, preconditions=preconditions)
    except NotFound as error:
        raise Conflict(f"{base.key} is gone") from error
    if not isinstance(result, StoredObject):
        raise Conflict(f"{base.key} changed meanwhile")
    return result


async def update_ignoring_status(
    store: Store,
    base: StoredObject,
    change: Callable[[Document], Document],
    preconditions: Sequence[WritePrecondition] = (),
) -> None:
    """Write a change on what was read, or on the present object if nothing but its status differs.

    One that is gone needs no change. Raises Conflict when it differs otherwise or a precondition fails.
    """
    for _ in range(ATTEMPTS):
        try:
            await store.update(base, change(base.document()), preconditions=preconditions)
        except NotFound:
            return
        except Conflict:
            fresh = await store.get(base.key)
            if fresh is None:
                return
            if fresh.version == base.version or beyond_status(fresh) != beyond_status(base):
                raise
            base = fresh
        else:
            return
    raise Conflict(f"{base.key} keeps changing")


async def create_all(
    store: Store,
    documents: Iterable[Document],
    preconditions: Sequence[WritePrecondition] = (),
    *,
    strict: bool = False,
) -> Sequence[StoredObject]:
    """Create objects and return them; existing ones are an equal result of another process.

    Unless `strict`: then they are a Conflict. Raises the first error once all of a call were tried.
    """
    creations = [Creation(document, preconditions=tuple(preconditions)) for document in documents]
    created: list[StoredObject] = []
    for start in range(0, len(creations), CREATIONS_PER_CALL):
        ended = await store.create_many(creations[start : start + CREATIONS_PER_CALL])
        for each in ended:
            if isinstance(each, GardenbusError) and (strict or not isinstance(each, AlreadyExists)):
                raise each
        created += [each for each in ended if isinstance(each, StoredObject)]
    return created


async def delete(store: Store, stored: StoredObject, preconditions: Sequence[WritePrecondition] = ()) -> None:
    """Delete what was read, unless it is deleting, or gone. Raises Conflict, Unavailable."""
    if stored.is_deleting:
        return
    try:
        await store.delete(stored, preconditions=preconditions)
    except NotFound:
        return


async def run_all(writes: Iterable[Awaitable[None]]) -> None:
    """Run writes, some at once. All of those begun end before the first error is raised."""
    waiting = list(writes)
    errors: list[BaseException] = []
    for start in range(0, len(waiting), WRITES_AT_ONCE):
        if errors:
            for each in waiting[start:]:
                _drop(each)
            break
        ended = await asyncio.gather(*waiting[start : start + WRITES_AT_ONCE], return_exceptions=True)
        errors += [each for each in ended if isinstance(each, BaseException)]
    if errors:
        raise errors[0]


def _drop(write: Awaitable[None]) -> None:
    if asyncio.iscoroutine(write):
        write.close()


async def record_warning(
    store: Store, about: StoredObject, *, reason: str, message: str, reporter: str, action: str
) -> None:
    """Record a Warning Event about an object. Raises Unavailable."""
    event = EventRecord(about.key, about.uid, "Warning", reason, message, reporter, action)
    await store.record_event(event)
