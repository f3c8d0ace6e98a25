"""ControllerInstallations of the informer, by their seeds."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from gardenbus.common.api.document import Document, StoredObject, section
from gardenbus.common.api.garden.extensions import is_required
from gardenbus.common.api.keys import ObjectKey


class Installed:
    """Call `changed` with each change of a ControllerInstallation; it may be older than the store."""

    def __init__(self) -> None:
        self._on: dict[str, set[ObjectKey]] = {}

    def on(self, seed: str) -> AbstractSet[ObjectKey]:
        """The installations of a seed."""
        return self._on.get(seed, set())

    def changed(self, key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> Iterable[str]:
        """Note an installation; its seed, if it has gone, is being deleted, or is required, or not, by now."""
        before, after = (None if each is None else each.document() for each in (old, new))
        seed = seed_of(after if after is not None else before)
        if new is None:
            self._on.get(seed, set()).discard(key)
        else:
            self._on.setdefault(seed, set()).add(key)
        if before is None:
            return ()
        is_same = after is not None and (is_required(before), old and old.deleting_at) == (
            is_required(after),
            new and new.deleting_at,
        )
        return () if is_same else (seed,)


def seed_of(installation: Document | None) -> str:
    """The seed that an installation is on."""
    return str(section(installation or {}, "spec", "seedRef").get("name") or "")
