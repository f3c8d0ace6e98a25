"""Placements that a change of an override can concern: those it is for that select something of what it names."""

from gardenbus.common.api.fleet.overrides import OverrideSnapshot, ResourceId, overridden_ids
from gardenbus.common.api.fleet.placements import Placement
from gardenbus.common.api.keys import ObjectKey
from gardenbus.placement.domain.overrides import is_for
from gardenbus.placement.domain.resource_selectors import scopes_around, watch_scopes


def is_affected(placement: Placement, snapshot: OverrideSnapshot) -> bool:
    """Report whether an override may change what a placement carries; KubeFleet checks the placement it names alone."""
    return is_for(snapshot, placement.key) and any(_may_select(placement, each) for each in overridden_ids(snapshot))


def _may_select(placement: Placement, resource: ResourceId) -> bool:
    namespace, name = resource.namespace, resource.name
    if not namespace and resource.kind == "Namespace" and placement.metadata.namespace == name:
        return True  # an override of a whole namespace
    scopes = watch_scopes(placement)
    return any(each in scopes for each in scopes_around(ObjectKey(resource.kind.lower(), namespace, name)))
