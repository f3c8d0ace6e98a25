"""Enqueues autoscalers on changes of themselves, their sets, and the sets' ManagedSeeds and Seeds.

Status writes of a reconciliation itself and frequent changes (heartbeats) enqueue nothing.
"""

from collections.abc import Callable, Iterable

from gardenbus.autoscaler.domain.manifests import owner_sets
from gardenbus.common.api.document import StoredObject, section
from gardenbus.common.api.garden.seeds import document_is_ready
from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.controller.enqueue_on_change import ChangeRule, EnqueueOnChange, ObjectLister, itself

KINDS = ("seedautoscaler", "managedseedset", "managedseed", "seed")


def seed_autoscaler_enqueuer(informer: ObjectLister, enqueue: Callable[[ObjectKey], None]) -> EnqueueOnChange:
    """Create the informer's callback; `enqueue` is called with the keys of SeedAutoscalers."""

    def autoscalers_of(names: Iterable[str]) -> Iterable[ObjectKey]:
        wanted = set(names)
        for key, stored in informer.objects("seedautoscaler").items():
            if section(stored.document(), "spec", "scaleTargetRef").get("name") in wanted:
                yield key

    def of_set(stored: StoredObject) -> Iterable[ObjectKey]:
        return autoscalers_of((stored.key.name,))

    def of_managed_seed(stored: StoredObject) -> Iterable[ObjectKey]:
        return autoscalers_of(owner_sets(stored.document()))

    def of_seed(stored: StoredObject) -> Iterable[ObjectKey]:
        managed_seed = informer.objects("managedseed").get(ObjectKey("managedseed", GARDEN_NAMESPACE, stored.key.name))
        return of_managed_seed(managed_seed) if managed_seed is not None else ()

    return EnqueueOnChange(
        enqueue,
        {
            "seedautoscaler": ChangeRule(_spec, itself, on_delete=False),
            "managedseedset": ChangeRule(_relevant_of_set, of_set),
            "managedseed": ChangeRule(_spec, of_managed_seed),
            "seed": ChangeRule(_relevant_of_seed, of_seed),
        },
    )


def _spec(stored: StoredObject) -> object:
    return stored.uid, stored.generation, stored.is_deleting


def _relevant_of_seed(stored: StoredObject) -> object:
    document = stored.document()
    status = section(document, "status")
    annotations = section(document, "metadata", "annotations")
    return stored.is_deleting, annotations, status.get("allocatable"), status.get("usage"), document_is_ready(document)


def _relevant_of_set(stored: StoredObject) -> object:
    status = section(stored.document(), "status")
    conditions = [(each.get("type"), each.get("status")) for each in status.get("conditions") or ()]
    return stored.generation, stored.is_deleting, status.get("pendingReplica"), conditions
