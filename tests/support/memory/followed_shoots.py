"""Shoots that other objects follow from seed to seed, as the functions in Redis find them."""

from gardenbus.common.api.index_keys import IndexKeys
from gardenbus.common.api.keys import ObjectKey


def followed_shoot(key: ObjectKey, index_keys: IndexKeys) -> ObjectKey | None:
    """The shoot whose seeds may read an object: a ManagedSeed's spec.shoot, the shoot of a ShootState's name."""
    if key.kind == "shootstate":
        return ObjectKey("shoot", key.namespace, key.name)
    if key.kind == "managedseed" and index_keys.references:
        return ObjectKey.from_stored(index_keys.references[0])
    return None
