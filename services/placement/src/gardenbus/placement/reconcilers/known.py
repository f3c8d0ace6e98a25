"""What is known of fleet and placements without asking the store: hints, never the ground of a write."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from gardenbus.common.resources.document import StoredObject
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.common.resources.member_clusters import MemberCluster
from gardenbus.common.resources.placements import Placement

if TYPE_CHECKING:
    from gardenbus.fleet.fleet import Fleet


class Known(Protocol):
    """The announced state, as far as it has arrived here."""

    def clusters(self) -> Mapping[str, MemberCluster]:
        """The member clusters by name, those that leave among them."""
        ...

    def placements(self) -> Mapping[ObjectKey, Placement]:
        """All placements, of both kinds."""
        ...

    def bindings_of(self, placement: ObjectKey) -> Sequence[StoredObject]:
        """The bindings of a placement, those that leave among them."""
        ...

    def fleet(self) -> "Fleet":
        """All member clusters, prepared for decisions."""
        ...
