"""Reads groups of resource snapshots, and no more of them than needed: they are large."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from gardenbus.common.api.document import StoredObject, section
from gardenbus.common.api.fleet.placement_parts import NUMBER_OF_SNAPSHOTS, of
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.numbers import whole_number
from gardenbus.common.ports.store import Store
from gardenbus.placement.domain.resource_snapshots import is_master

_MASTER = re.compile(r"-([0-9]{1,18})-snapshot$")

MOST_PARTS = 10_000
"""Parts that a group may have; an annotation that states more is none of ours."""


class RolloutObjects(NamedTuple):
    """Input of a rollout."""

    master: StoredObject | None
    """The first part of the newest group."""

    bindings: Sequence[StoredObject]
    """All bindings, by name."""


async def rollout_objects(store: Store, placement: StoredObject) -> RolloutObjects:
    """Read the newest master and the bindings, in two round trips. Raises Unavailable."""
    names = of(placement.key.kind)
    keys = await store.dependents(placement.uid)
    masters = [key for key in keys if key.kind == names.resource_snapshot.lower() and _MASTER.search(key.name)]
    newest = [max(masters, key=_index)] if masters else []
    bindings = sorted(key for key in keys if key.kind == names.binding.lower())
    found = [each for each in await read_all(store, [*newest, *bindings]) if each is not None]
    return RolloutObjects(
        master=next((each for each in found if each.key in newest), None),
        bindings=[each for each in found if each.key not in newest],
    )


async def group_of(store: Store, master: ObjectKey) -> Sequence[StoredObject] | None:
    """Read all parts of a group, the first one first; None when any of them is missing. Raises Unavailable."""
    first = await store.get(master)
    if first is None or not is_master(first):
        return None
    count = whole_number(section(first.document(), "metadata", "annotations").get(NUMBER_OF_SNAPSHOTS), 1)
    if count > MOST_PARTS:
        return None
    stem = master.name.removesuffix("-snapshot")
    names = [f"{stem}-{number}" for number in range(count - 1)]
    others = await read_all(store, [master._replace(name=name) for name in names])
    parts = [first, *(each for each in others if each is not None)]
    return parts if len(parts) == len(names) + 1 else None


async def read_all(store: Store, keys: Sequence[ObjectKey]) -> Sequence[StoredObject | None]:
    """Read objects, in order; no round trip for an empty list. Raises Unavailable."""
    return await store.get_many(keys) if keys else ()


def _index(key: ObjectKey) -> int:
    found = _MASTER.search(key.name)
    return int(found[1]) if found else -1
