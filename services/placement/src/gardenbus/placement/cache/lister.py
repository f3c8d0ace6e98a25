"""Lister of the announced fleet and placements: it may lag behind the store, so no write may rest on it alone."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.fleet.member_clusters import MemberCluster
from gardenbus.common.api.fleet.placements import Placement
from gardenbus.common.api.keys import ObjectKey

if TYPE_CHECKING:
    from gardenbus.fleet.fleet import Fleet


class PlacementLister(Protocol):
    """Announced objects, as far as they have arrived."""

    def clusters(self) -> Mapping[str, MemberCluster]:
        """Return the member clusters by name, leaving ones among them."""
        ...

    def placements(self) -> Mapping[ObjectKey, Placement]:
        """Return all placements, of both kinds."""
        ...

    def bindings_of(self, placement: ObjectKey) -> Sequence[StoredObject]:
        """Return the bindings of a placement, deleting ones among them."""
        ...

    def fleet(self) -> "Fleet":
        """Return all member clusters, prepared for decisions."""
        ...
