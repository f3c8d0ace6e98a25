"""Sizes of ManagedSeedSets, and generations of CloudProfiles, as the landscape's history has them."""

from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.garden.rows import set_row
from gardenbus.common.api.history import SetSize
from gardenbus.common.api.keys import ObjectKey


class HistorySources:
    """`watch` keeps them current as an informer's callback."""

    KINDS = ("managedseedset", "cloudprofile")

    def __init__(self) -> None:
        self.sets: dict[str, SetSize] = {}
        self.profiles: dict[str, int] = {}

    def watch(self, key: ObjectKey, _old: StoredObject | None, new: StoredObject | None) -> None:
        """Handle a change."""
        name = f"{key.namespace}/{key.name}"
        if new is None:
            self.sets.pop(name, None)
            self.profiles.pop(key.name, None) if key.kind == "cloudprofile" else None
        elif key.kind == "cloudprofile":
            self.profiles[key.name] = new.generation
        else:
            row = set_row(new.document())
            self.sets[name] = SetSize(row.wanted, row.replicas, row.ready)
