"""How the reconcilers write: on what they read, and under the conditions that a decision hangs on."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence

from gardenbus.common.errors import AlreadyExists, Conflict, GardenbusError, NotFound
from gardenbus.common.ports.store import Creation, Guard, Store
from gardenbus.common.resources.document import Document, StoredObject

CREATIONS_PER_CALL = 50
WRITES_AT_ONCE = 32
"""Updates under way at once: enough to keep the store busy, few enough to let others through."""

ATTEMPTS = 5
"""So often a write is tried again when only the status of its object has changed."""


def unchanged(stored: StoredObject) -> Guard:
    """The condition that an object has the version which was read."""
    return Guard("version", stored.key.stored, f"{stored.key} changed meanwhile", stored.version)


async def written(store: Store, base: StoredObject, document: Document, guards: Sequence[Guard] = ()) -> StoredObject:
    """Write on exactly what was read. Raises Conflict, also when it is gone, and Unavailable."""
    try:
        result = await store.update(base, document, guards=guards)
    except NotFound as error:
        raise Conflict(f"{base.key} is gone") from error
    if not isinstance(result, StoredObject):
        raise Conflict(f"{base.key} changed meanwhile")
    return result


async def rewritten(
    store: Store, base: StoredObject, change: Callable[[Document], Document], guards: Sequence[Guard] = ()
) -> None:
    """Write a change on what was read, or on what it has become if nothing but its status differs.

    One that is gone needs no change. Raises Conflict when it differs otherwise or a guard does not hold.
    """
    for _ in range(ATTEMPTS):
        try:
            await store.update(base, change(base.document()), guards=guards)
        except NotFound:
            return
        except Conflict:
            fresh = await store.get(base.key)
            if fresh is None:
                return
            if fresh.version == base.version or _decisive(fresh) != _decisive(base):
                raise
            base = fresh
        else:
            return
    raise Conflict(f"{base.key} changes all the time")


async def created_all(
    store: Store, documents: Iterable[Document], guards: Sequence[Guard] = (), *, strict: bool = False
) -> Sequence[StoredObject]:
    """Create objects and answer them; those that are there already are what somebody else came to on the same grounds.

    Unless `strict`: then they are a Conflict. Raises the first refusal once all of a call were tried.
    """
    creations = [Creation(document, guards=tuple(guards)) for document in documents]
    created: list[StoredObject] = []
    for start in range(0, len(creations), CREATIONS_PER_CALL):
        ended = await store.create_many(creations[start : start + CREATIONS_PER_CALL])
        for each in ended:
            if isinstance(each, GardenbusError) and (strict or not isinstance(each, AlreadyExists)):
                raise each
        created += [each for each in ended if isinstance(each, StoredObject)]
    return created


async def deleted(store: Store, stored: StoredObject, guards: Sequence[Guard] = ()) -> None:
    """Delete what was read, unless it is on its way out, or gone. Raises Conflict, Unavailable."""
    if stored.is_deleting:
        return
    try:
        await store.delete(stored, guards=guards)
    except NotFound:
        return


async def all_of(writes: Iterable[Awaitable[None]]) -> None:
    """Carry writes out, some at once. All of those begun end before the first error is raised."""
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


def _decisive(stored: StoredObject) -> object:
    return stored.uid, stored.deleting_at, stored.parts._replace(status=b"")
