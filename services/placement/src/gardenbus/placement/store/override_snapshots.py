"""Reads the override snapshots that a binding names."""

from collections.abc import Sequence

from gardenbus.common.api.fleet.overrides import CLUSTER_SNAPSHOT, SNAPSHOT, AppliedOverrides, OverrideSnapshot
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.store import Store
from gardenbus.placement.store.resource_snapshots import read_all


class OverrideGone(Exception):
    """A binding names a snapshot that is there no more: its override has been deleted, or changed many times since."""


async def override_snapshots(store: Store, applied: AppliedOverrides) -> Sequence[OverrideSnapshot]:
    """Read the snapshots in the order in which they act. Raises OverrideGone, InvalidResource, Unavailable."""
    keys = [
        *(ObjectKey(CLUSTER_SNAPSHOT, "", name) for name in applied.cluster_scoped),
        *(ObjectKey(SNAPSHOT, each.namespace, each.name) for each in applied.namespaced),
    ]
    found: list[OverrideSnapshot] = []
    for key, stored in zip(keys, await read_all(store, keys), strict=True):
        if stored is None:
            raise OverrideGone(f"{key} is gone")
        found.append(OverrideSnapshot.from_document(stored.encoded()))
    return found
