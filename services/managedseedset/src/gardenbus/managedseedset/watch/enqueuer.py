"""Enqueues sets on changes of themselves, their replicas and their Seeds.

Frequent changes that mean nothing to a set (progress, heartbeats) enqueue none.
"""

from collections.abc import Callable, Iterable

from gardenbus.common.api.document import STATUS_LABEL, Document, StoredObject, section
from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.api.owners import controller_of
from gardenbus.common.api.selectors import parse_selector
from gardenbus.common.controller.enqueue_on_change import (
    ChangeRule,
    EnqueueOnChange,
    ObjectLister,
    beyond_status,
    itself,
)
from gardenbus.managedseedset.domain.replicas import seed_is_ready

KIND = "managedseedset"
KINDS = (KIND, "shoot", "managedseed")
NAMESPACES = {"shoot": GARDEN_NAMESPACE}


def managed_seed_set_enqueuer(informer: ObjectLister, enqueue: Callable[[ObjectKey], None]) -> EnqueueOnChange:
    """Create the informer's callback; `enqueue` is called with the keys of ManagedSeedSets."""

    def of_replica(stored: StoredObject) -> Iterable[ObjectKey]:
        document = stored.document()
        owner = controller_of(document)
        if owner is None:
            return _sets_selecting(informer, stored.key.namespace, document)
        is_set = owner.get("kind") == "ManagedSeedSet"
        return (ObjectKey(KIND, stored.key.namespace, str(owner.get("name"))),) if is_set else ()

    def of_seed(stored: StoredObject) -> Iterable[ObjectKey]:
        """The set of the replica that a Seed belongs to; its ManagedSeed may not be cached here yet, or any more."""
        for kind in ("managedseed", "shoot"):
            replica = informer.objects(kind).get(ObjectKey(kind, GARDEN_NAMESPACE, stored.key.name))
            if replica is not None:
                return of_replica(replica)
        return ()

    return EnqueueOnChange(
        enqueue,
        {
            KIND: ChangeRule(beyond_status, itself, on_delete=False),
            "shoot": ChangeRule(_relevant_of_shoot, of_replica),
            "managedseed": ChangeRule(_relevant_of_managed_seed, of_replica),
            "seed": ChangeRule(_relevant_of_seed, of_seed),
        },
    )


def _sets_selecting(informer: ObjectLister, namespace: str, document: Document) -> Iterable[ObjectKey]:
    labels = section(document, "metadata", "labels")
    for key, stored in informer.objects(KIND).items():
        if key.namespace == namespace:
            try:
                selector = parse_selector(section(stored.document(), "spec", "selector"))
            except ValueError:
                continue
            if selector.meets(labels):
                yield key


def _relevant_of_shoot(stored: StoredObject) -> object:
    shoot = stored.document()
    metadata, status = section(shoot, "metadata"), section(shoot, "status")
    operation = section(status, "lastOperation")
    scheduler_message = operation.get("description") if operation.get("state") == "Pending" else None
    return (
        _identity(metadata),
        section(shoot, "spec").get("seedName"),
        section(metadata, "labels").get(STATUS_LABEL),
        status.get("observedGeneration"),
        (operation.get("type"), operation.get("state"), scheduler_message),
    )


def _relevant_of_managed_seed(stored: StoredObject) -> object:
    managed_seed = stored.document()
    return _identity(section(managed_seed, "metadata")), managed_seed.get("status")


def _relevant_of_seed(stored: StoredObject) -> object:
    seed = stored.document()
    return _identity(section(seed, "metadata")), seed_is_ready(seed)


def _identity(metadata: Document) -> object:
    fields = ("uid", "generation", "deletionTimestamp", "labels", "annotations", "ownerReferences")
    return tuple(metadata.get(field) for field in fields)
