"""Which changes make an autoscaler look at once: its own, its set's, and those of the set's ManagedSeeds and Seeds.

What a look writes itself (status) and what changes all the time (heartbeats) do not.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from gardenbus.autoscaler.decide.reading import owner_sets
from gardenbus.common.resources.document import Document, StoredObject, section
from gardenbus.common.resources.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.resources.seeds import document_is_ready

KINDS = ("seedautoscaler", "managedseedset", "managedseed", "seed")


class ObjectsSeen(Protocol):
    """What is needed of an informer."""

    def objects(self, kind: str) -> Mapping[ObjectKey, StoredObject]:
        """The objects of a kind."""
        ...


class Watch:
    """An informer's callback. `nudge` is called with the keys of SeedAutoscalers."""

    def __init__(self, informer: ObjectsSeen, nudge: Callable[[ObjectKey], None]) -> None:
        self._informer = informer
        self._nudge = nudge

    def changed(self, key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        """Take a change of an object."""
        if key.kind == "seedautoscaler":
            if new is not None and (old is None or old.uid != new.uid or old.generation != new.generation):
                self._nudge(key)
            return
        if old is not None and new is not None and _telling(old) == _telling(new):
            return
        for name in self._sets_of(key, old, new):
            self._nudge_autoscalers_of(name)

    def _sets_of(self, key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> set[str]:
        if key.kind == "managedseedset":
            return {key.name}
        if key.kind == "managedseed":
            return {name for stored in (old, new) if stored is not None for name in owner_sets(stored.document())}
        managed_seed = self._informer.objects("managedseed").get(ObjectKey("managedseed", GARDEN_NAMESPACE, key.name))
        return set(owner_sets(managed_seed.document())) if managed_seed is not None else set()

    def _nudge_autoscalers_of(self, name: str) -> None:
        for key, stored in self._informer.objects("seedautoscaler").items():
            if section(stored.document(), "spec", "scaleTargetRef").get("name") == name:
                self._nudge(key)


def _telling(stored: StoredObject) -> Any:
    """What of an object a decision may depend on."""
    document: Document = stored.document()
    status = section(document, "status")
    match stored.key.kind:
        case "seed":
            annotations = section(document, "metadata", "annotations")
            of_seed = (status.get("allocatable"), status.get("usage"), document_is_ready(document))
            return stored.is_deleting, annotations, *of_seed
        case "managedseedset":
            conditions = [(each.get("type"), each.get("status")) for each in status.get("conditions") or ()]
            return stored.generation, stored.is_deleting, status.get("pendingReplica"), conditions
        case _:
            return stored.generation, stored.is_deleting
