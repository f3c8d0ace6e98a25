"""Reads a placement and what belongs to it, from the store: never from what was announced."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from gardenbus.common.machinery.controller import WorkRequest
from gardenbus.common.ports.store import Store
from gardenbus.common.resources.document import StoredObject
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.common.resources.placement_parts import PartKinds, of
from gardenbus.common.resources.placements import CLUSTER_KIND, NAMESPACED_KIND


class Family(NamedTuple):
    """What belongs to a placement, of the kinds that were asked for."""

    policy_snapshots: Sequence[StoredObject]
    resource_snapshots: Sequence[StoredObject]
    bindings: Sequence[StoredObject]


def placement_of(request: WorkRequest) -> ObjectKey:
    """The placement that a piece of work is about: a namespace tells that it is a ResourcePlacement."""
    kind = NAMESPACED_KIND if request.namespace else CLUSTER_KIND
    return ObjectKey(kind, request.namespace, request.name)


async def family_of(store: Store, placement: StoredObject, *kinds: str) -> Family:
    """Read it after the placement, in two round trips; `kinds` are fields of PartKinds. Raises Unavailable."""
    names = of(placement.key.kind)
    wanted = {getattr(names, kind).lower() for kind in kinds}
    keys = [key for key in await store.dependents(placement.uid) if key.kind in wanted]
    found = [each for each in await store.get_many(keys) if each is not None] if keys else []
    return Family(
        policy_snapshots=_of_kind(found, names.policy_snapshot),
        resource_snapshots=_of_kind(found, names.resource_snapshot),
        bindings=_of_kind(found, names.binding),
    )


def part_kinds(names: Collection[PartKinds]) -> tuple[str, ...]:
    """All kinds of parts, as keys write them."""
    return tuple(kind.lower() for each in names for kind in each)


def _of_kind(found: Sequence[StoredObject], kind: str) -> list[StoredObject]:
    return sorted((each for each in found if each.key.kind == kind.lower()), key=lambda each: each.key.name)
