"""Cache of placements, their bindings and the member clusters."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from gardenbus.common.api.document import Document
from gardenbus.common.api.fleet.placement_parts import of, placement_key
from gardenbus.common.api.fleet.placements import KINDS
from gardenbus.common.api.fleet.rows import (
    BindingRow,
    ClusterRow,
    PlacementRow,
    SnapshotRow,
    binding_row,
    cluster_row,
    placement_row,
    snapshot_row,
)
from gardenbus.common.api.garden.rows import TableRow
from gardenbus.common.api.keys import ObjectKey
from gardenbus.dashboard.domain.placement_rows import PlacementProgress, count_bindings, is_cluster_healthy

CLUSTER = "membercluster"
BINDING_KINDS = tuple(of(kind).binding.lower() for kind in KINDS)
SNAPSHOT_KINDS = tuple(of(kind).policy_snapshot.lower() for kind in KINDS)

ROW_OF: Mapping[str, Callable[[Document], TableRow]] = {
    CLUSTER: cluster_row,
    **dict.fromkeys(KINDS, placement_row),
    **dict.fromkeys(BINDING_KINDS, binding_row),
    **dict.fromkeys(SNAPSHOT_KINDS, snapshot_row),
}
"""Row constructors by kind."""


class FleetCache:
    """Rows by key, in `tables` by kind; `changed` is to be called with each row that came, went or changed."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[ObjectKey, Any]] = {kind: {} for kind in ROW_OF}
        self._bindings: defaultdict[ObjectKey, dict[ObjectKey, BindingRow]] = defaultdict(dict)
        self._on: defaultdict[str, dict[ObjectKey, ObjectKey]] = defaultdict(dict)
        self._snapshots: dict[ObjectKey, ObjectKey] = {}

    def changed(self, key: ObjectKey, old: TableRow | None, new: TableRow | None) -> None:
        """Update the indexes after a change of a row."""
        if isinstance(old, BindingRow):
            placement = placement_key(key.kind, key.namespace, old.placement)
            self._bindings[placement].pop(key, None)
            self._on[old.cluster].pop(key, None)
        if isinstance(new, BindingRow):
            placement = placement_key(key.kind, key.namespace, new.placement)
            self._bindings[placement][key] = new
            self._on[new.cluster][key] = placement
        if isinstance(old, SnapshotRow):
            placement = placement_key(key.kind, key.namespace, old.placement)
            if self._snapshots.get(placement) == key:
                del self._snapshots[placement]
        if isinstance(new, SnapshotRow) and new.latest:
            self._snapshots[placement_key(key.kind, key.namespace, new.placement)] = key

    def bindings_of(self, placement: ObjectKey) -> list[BindingRow]:
        """Return the bindings of a placement, by cluster."""
        return sorted(self._bindings.get(placement, {}).values(), key=lambda row: (row.cluster, row.name))

    def snapshot_of(self, placement: ObjectKey) -> ObjectKey | None:
        """Return the active policy snapshot of a placement."""
        return self._snapshots.get(placement)

    def placements_on(self, cluster: str) -> list[ObjectKey]:
        """Return the placements that have a binding on a cluster."""
        return sorted(set(self._on.get(cluster, {}).values()))

    def placements(self) -> list[tuple[ObjectKey, PlacementRow]]:
        """Return all placements, by namespace and name."""
        rows = ((key, row) for kind in KINDS for key, row in self.tables[kind].items())
        return sorted(rows, key=lambda each: each[0][1:])

    def progress_of(self, placement: ObjectKey) -> PlacementProgress:
        """Return a placement's numbers of clusters."""
        return count_bindings(self._bindings.get(placement, {}).values())

    def shown_placement(self, key: ObjectKey, row: PlacementRow) -> Document:
        """Return a placement's row with its numbers of clusters."""
        return msgspec.to_builtins(row) | msgspec.structs.asdict(self.progress_of(key))

    def clusters(self) -> list[ClusterRow]:
        """Return all member clusters, by name."""
        return sorted(self.tables[CLUSTER].values(), key=lambda row: row.name)

    def shown_cluster(self, row: ClusterRow, now: datetime) -> Document:
        """Return a cluster's row with its number of placements, and whether it is well."""
        on_it = set(self._on.get(row.name, {}).values())
        return msgspec.to_builtins(row) | {"well": is_cluster_healthy(row, now), "placements": len(on_it)}
