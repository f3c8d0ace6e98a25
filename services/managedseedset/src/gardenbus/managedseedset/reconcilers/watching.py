"""What changed, and which set has to look at it: an informer's callback that nudges.

It only asks for looks; a look reads the store. What changes all the time without a meaning to a set (progress,
heartbeats) nudges nobody.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from gardenbus.common.machinery.nudges import Nudges
from gardenbus.common.resources.document import STATUS_LABEL, Document, StoredObject, section
from gardenbus.common.resources.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.resources.selectors import parse_selector
from gardenbus.managedseedset.decide.ownership import controller_of
from gardenbus.managedseedset.decide.replicas import seed_is_ready

KIND = "managedseedset"
KINDS = (KIND, "shoot", "managedseed")
NAMESPACES = {"shoot": GARDEN_NAMESPACE}


class ObjectsKnown(Protocol):
    """What is needed of an informer."""

    def objects(self, kind: str) -> Mapping[ObjectKey, StoredObject]:
        """The objects of a kind."""
        ...


class Watch:
    """See the module. `changed` is the callback."""

    def __init__(self, informer: ObjectsKnown, nudges: Nudges) -> None:
        self._informer = informer
        self._nudges = nudges

    def changed(self, key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        """Nudge the sets that a change concerns."""
        if key.kind == KIND:
            if new is not None and (old is None or _beyond_status(old) != _beyond_status(new)):
                self._nudges.nudge(key)
        elif key.kind in _MEANINGS:
            meaning = _MEANINGS[key.kind]
            before, after = (None if each is None else each.document() for each in (old, new))
            if before is not None and after is not None and meaning(before) == meaning(after):
                return
            for managed_seed_set in self._concerned(key, before) | self._concerned(key, after):
                self._nudges.nudge(managed_seed_set)

    def _concerned(self, key: ObjectKey, document: Document | None) -> set[ObjectKey]:
        if document is None:
            return set()
        if key.kind == "seed":
            return self._growing(key.name)
        owner = controller_of(document)
        if owner is not None:
            is_set = owner.get("kind") == "ManagedSeedSet"
            return {ObjectKey(KIND, key.namespace, str(owner.get("name")))} if is_set else set()
        return self._selecting(key.namespace, section(document, "metadata", "labels"))

    def _growing(self, seed: str) -> set[ObjectKey]:
        """The set of the replica that a Seed belongs to; its ManagedSeed may not be known here yet, or any more."""
        for kind in ("managedseed", "shoot"):
            stored = self._informer.objects(kind).get(ObjectKey(kind, GARDEN_NAMESPACE, seed))
            if stored is not None:
                return self._concerned(stored.key, stored.document())
        return set()

    def _selecting(self, namespace: str, labels: Mapping[str, str]) -> set[ObjectKey]:
        found: set[ObjectKey] = set()
        for key, stored in self._informer.objects(KIND).items():
            if key.namespace == namespace:
                try:
                    selector = parse_selector(section(stored.document(), "spec", "selector"))
                except ValueError:
                    continue
                if selector.meets(labels):
                    found.add(key)
        return found


def _beyond_status(stored: StoredObject) -> object:
    return stored.uid, stored.deleting_at, stored.parts._replace(status=b"")


def _meaning_of_shoot(shoot: Document) -> object:
    metadata, status = section(shoot, "metadata"), section(shoot, "status")
    operation = section(status, "lastOperation")
    refusal = operation.get("description") if operation.get("state") == "Pending" else None
    return (
        _identity(metadata),
        section(shoot, "spec").get("seedName"),
        section(metadata, "labels").get(STATUS_LABEL),
        status.get("observedGeneration"),
        (operation.get("type"), operation.get("state"), refusal),
    )


def _meaning_of_managed_seed(managed_seed: Document) -> object:
    return _identity(section(managed_seed, "metadata")), managed_seed.get("status")


def _meaning_of_seed(seed: Document) -> object:
    return _identity(section(seed, "metadata")), seed_is_ready(seed)


def _identity(metadata: Document) -> tuple[Any, ...]:
    fields = ("uid", "generation", "deletionTimestamp", "labels", "annotations", "ownerReferences")
    return tuple(metadata.get(field) for field in fields)


_MEANINGS: Mapping[str, Callable[[Document], object]] = {
    "shoot": _meaning_of_shoot,
    "managedseed": _meaning_of_managed_seed,
    "seed": _meaning_of_seed,
}
