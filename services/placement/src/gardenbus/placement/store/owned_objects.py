"""Reads a placement and its parts from the store, never from the cache."""

from collections.abc import Sequence
from typing import NamedTuple

from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.fleet.placement_parts import of
from gardenbus.common.api.fleet.placements import placement_kind
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.controller import ReconcileRequest
from gardenbus.common.ports.store import Store


class PlacementParts(NamedTuple):
    """Parts of a placement, of the requested kinds."""

    policy_snapshots: Sequence[StoredObject]
    resource_snapshots: Sequence[StoredObject]
    bindings: Sequence[StoredObject]


def placement_of(request: ReconcileRequest) -> ObjectKey:
    """Return the placement of a request: with a namespace it is a ResourcePlacement."""
    return ObjectKey(placement_kind(request.namespace), request.namespace, request.name)


async def owned_objects(store: Store, placement: StoredObject, *kinds: str) -> PlacementParts:
    """Read the parts after the placement, in two round trips; `kinds` are fields of PartKinds. Raises Unavailable."""
    names = of(placement.key.kind)
    wanted = {getattr(names, kind).lower() for kind in kinds}
    keys = [key for key in await store.dependents(placement.uid) if key.kind in wanted]
    found = [each for each in await store.get_many(keys) if each is not None] if keys else []
    return PlacementParts(
        policy_snapshots=_of_kind(found, names.policy_snapshot),
        resource_snapshots=_of_kind(found, names.resource_snapshot),
        bindings=_of_kind(found, names.binding),
    )


def _of_kind(found: Sequence[StoredObject], kind: str) -> list[StoredObject]:
    return sorted((each for each in found if each.key.kind == kind.lower()), key=lambda each: each.key.name)
