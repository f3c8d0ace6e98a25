"""Objects that Shoots and Seeds use, and that must not go before them: Secrets, ConfigMaps and WorkloadIdentities.

Source: Gardener's `pkg/controller/reference` and `pkg/controllermanager/controller/shoot/reference`.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, cast

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import FINALIZER, REFERENCE_FINALIZER, with_finalizer, without_finalizer
from gardenbus.common.api.garden.named_references import named_references
from gardenbus.common.api.keys import ObjectKey

GARDEN_ROLE = "gardener.cloud/role"
"""A Secret with this label is Gardener's own: nobody else has to protect it."""


def referenced_objects(document: Document) -> frozenset[ObjectKey]:
    """The objects that a Shoot or Seed uses; none once it is being deleted and no gardenlet holds it any more."""
    metadata = section(document, "metadata")
    if metadata.get("deletionTimestamp") and FINALIZER not in _texts(metadata.get("finalizers")):
        return frozenset()
    return frozenset(each.key for each in named_references(document))


def with_protection(document: Document, *, is_protected: bool) -> Document | None:
    """The object with, or without, the finalizer; None when nothing changes. One that is being deleted gets none."""
    changed = (
        with_finalizer(document, REFERENCE_FINALIZER)
        if is_protected
        else without_finalizer(document, REFERENCE_FINALIZER)
    )
    return None if changed is document else changed


class ReferenceIndex:
    """Counts the Shoots and Seeds that use each object."""

    def __init__(self) -> None:
        self._users: Counter[ObjectKey] = Counter()
        self._used: dict[ObjectKey, frozenset[ObjectKey]] = {}

    def replace(self, user: ObjectKey, references: frozenset[ObjectKey]) -> Sequence[ObjectKey]:
        """Record what a Shoot or Seed uses now; return what nothing uses any more, in order."""
        before = self._used.pop(user, frozenset())
        if references:
            self._used[user] = references
        self._users.update(references)
        self._users.subtract(before)
        unused = sorted(key for key in before if self._users[key] <= 0)
        for key in unused:
            del self._users[key]
        return unused

    def is_used(self, key: ObjectKey) -> bool:
        """True when a Shoot or Seed uses it."""
        return self._users[key] > 0


def _texts(value: Any) -> list[str]:
    return [str(each) for each in cast("list[Any]", value)] if isinstance(value, list) else []
