"""Resource snapshots in memory: they never change, they are large, and the bindings of a placement share them."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.fleet.overrides import ResourceId, resource_ids
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.store import Store
from gardenbus.placement.store.resource_snapshots import group_of

GROUPS_MAX = 16
"""Groups kept in memory: the bindings of a placement are reconciled one after the other."""


class ResourceGroup(NamedTuple):
    """One selection of resources."""

    parts: Sequence[Document]
    """The snapshots that make it up, the first one first."""

    ids: frozenset[ResourceId]
    """All that overrides can name to be about one of its resources."""


class ResourceGroups:
    """Reads groups, and keeps those that were used last."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._groups: OrderedDict[tuple[str, ObjectKey], ResourceGroup] = OrderedDict()

    async def get(self, owner_uid: str, master: ObjectKey) -> ResourceGroup | None:
        """Return the group of a placement (by its uid) whose first part this is; None while it is incomplete.

        Raises Unavailable.
        """
        place = (owner_uid, master)
        if place in self._groups:
            self._groups.move_to_end(place)
            return self._groups[place]
        stored = await group_of(self._store, master) if master.name else None
        if stored is None:
            return None
        parts = [each.document() for each in stored]
        resources = (each for part in parts for each in section(part, "spec").get("selectedResources") or ())
        group = ResourceGroup(parts, frozenset(named for each in resources for named in resource_ids(each)))
        self._groups[place] = group
        if len(self._groups) > GROUPS_MAX:
            self._groups.popitem(last=False)
        return group
