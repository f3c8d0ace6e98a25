"""A seed whose ManagedSeed is deleted takes no shoot from then on: it is marked for removal first.

The ManagedSeed is deleted only while its Seed is as it was marked, or while there is none, so nobody is placed between
the two writes. A set of seeds that shrinks marks by itself. Should the process end between the two, the mark stands
until the deletion is asked for again.
"""

from collections.abc import Sequence

from gardenbus.apiserver.decide.annotations import annotated
from gardenbus.common.errors import Conflict, NotFound
from gardenbus.common.ports.store import Guard, Objects
from gardenbus.common.resources.derived import FINALIZER
from gardenbus.common.resources.document import StoredObject, section
from gardenbus.common.resources.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.resources.seed_management import MARKED_FOR_REMOVAL


async def mark_seed_of(managed_seed: StoredObject, store: Objects) -> Sequence[Guard]:
    """Mark the Seed of a ManagedSeed that is about to be deleted; answer what must hold when it is.

    Nothing is done for any other object, nor for one that nobody has begun to carry out: it has no Seed. Raises
    Forbidden when shoots are on the seed, Conflict, Unavailable.
    """
    key = managed_seed.key
    if not _is_carried_out(managed_seed) or managed_seed.is_deleting:
        return ()
    seed_key = ObjectKey("seed", "", key.name)
    seed = await store.get(seed_key)
    if seed is None:
        return (Guard("version", seed_key.stored, f"{seed_key} has come about meanwhile"),)
    if not seed.is_deleting and not _mark_of(seed):
        guards = (
            Guard("version", key.stored, f"{key} changed meanwhile", version=managed_seed.version),
            Guard(
                "usage", key.name, f"{key}: shoots are on its seed: move them first, with gardenbus drain {key.name}"
            ),
        )
        marked = await store.update(seed, annotated(seed.document(), MARKED_FOR_REMOVAL, _reason(key)), guards=guards)
        assert isinstance(marked, StoredObject), "nothing supersedes a write without place in the order"
        seed = marked
    return (Guard("version", seed_key.stored, f"{seed_key} changed meanwhile", version=seed.version),)


async def take_mark_back(key: ObjectKey, store: Objects) -> None:
    """Let the Seed of a ManagedSeed that was not deleted after all take shoots again. Raises Unavailable."""
    managed_seed = await store.get(key)
    seed = await store.get(ObjectKey("seed", "", key.name))
    if managed_seed is None or managed_seed.is_deleting or seed is None or _mark_of(seed) != _reason(key):
        return
    guard = Guard("version", key.stored, f"{key} changed meanwhile", version=managed_seed.version)
    try:
        await store.update(seed, annotated(seed.document(), MARKED_FOR_REMOVAL, None), guards=(guard,))
    except (Conflict, NotFound):
        return  # somebody else is at it


def _is_carried_out(managed_seed: StoredObject) -> bool:
    key = managed_seed.key
    return (key.kind, key.namespace) == ("managedseed", GARDEN_NAMESPACE) and FINALIZER in managed_seed.parts.finalizers


def _mark_of(seed: StoredObject) -> str:
    return str(section(seed.document(), "metadata", "annotations").get(MARKED_FOR_REMOVAL) or "")


def _reason(key: ObjectKey) -> str:
    return f"the deletion of {key}"
