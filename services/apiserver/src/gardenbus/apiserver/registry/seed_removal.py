"""Removal mark of a Seed whose ManagedSeed is deleted: no shoot is scheduled on it from then on.

The ManagedSeed is deleted only while its Seed is as it was annotated, or while there is none, so no shoot is placed
between the two writes. A set of seeds that scales in annotates them itself. Should the process end between the two
writes, the annotation stays until the deletion is requested again.
"""

from collections.abc import Sequence

from gardenbus.apiserver.domain.annotations import annotated
from gardenbus.common.api.document import StoredObject, section
from gardenbus.common.api.document_parts import FINALIZER
from gardenbus.common.api.garden.seed_management import REMOVAL_ANNOTATION
from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.errors import Conflict, NotFound
from gardenbus.common.ports.store import Objects, WritePrecondition


async def annotate_seed_removal(managed_seed: StoredObject, store: Objects) -> Sequence[WritePrecondition]:
    """Annotate the Seed of a ManagedSeed that is about to be deleted; returns the conditions of the deletion.

    Does nothing for any other object, nor for a ManagedSeed that no gardenlet has adopted: it has no Seed. Raises
    Forbidden when shoots are on the seed, Conflict, Unavailable.
    """
    key = managed_seed.key
    if not _is_carried_out(managed_seed) or managed_seed.is_deleting:
        return ()
    seed_key = ObjectKey("seed", "", key.name)
    seed = await store.get(seed_key)
    if seed is None:
        return (WritePrecondition("version", seed_key.stored, f"{seed_key} was created meanwhile"),)
    if not seed.is_deleting and not _removal_reason(seed):
        preconditions = (
            WritePrecondition("version", key.stored, f"{key} changed meanwhile", version=managed_seed.version),
            WritePrecondition(
                "usage", key.name, f"{key}: shoots are on its seed: move them first, with gardenbus drain {key.name}"
            ),
        )
        annotated_seed = await store.update(
            seed, annotated(seed.document(), REMOVAL_ANNOTATION, _reason(key)), preconditions=preconditions
        )
        assert isinstance(annotated_seed, StoredObject), "nothing supersedes a write without place in the order"
        seed = annotated_seed
    return (WritePrecondition("version", seed_key.stored, f"{seed_key} changed meanwhile", version=seed.version),)


async def revert_seed_removal(key: ObjectKey, store: Objects) -> None:
    """Make the Seed of a ManagedSeed that was not deleted after all schedulable again. Raises Unavailable."""
    managed_seed = await store.get(key)
    seed = await store.get(ObjectKey("seed", "", key.name))
    if managed_seed is None or managed_seed.is_deleting or seed is None or _removal_reason(seed) != _reason(key):
        return
    guard = WritePrecondition("version", key.stored, f"{key} changed meanwhile", version=managed_seed.version)
    try:
        await store.update(seed, annotated(seed.document(), REMOVAL_ANNOTATION, None), preconditions=(guard,))
    except (Conflict, NotFound):
        return  # another replica has changed it


def _is_carried_out(managed_seed: StoredObject) -> bool:
    key = managed_seed.key
    return (key.kind, key.namespace) == ("managedseed", GARDEN_NAMESPACE) and FINALIZER in managed_seed.parts.finalizers


def _removal_reason(seed: StoredObject) -> str:
    return str(section(seed.document(), "metadata", "annotations").get(REMOVAL_ANNOTATION) or "")


def _reason(key: ObjectKey) -> str:
    return f"the deletion of {key}"
