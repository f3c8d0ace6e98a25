"""How the objects of a set become the numbers that decisions are made on."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, cast

from gardenbus.autoscaler.decide.landscape import Replica
from gardenbus.common.resources.conditions import TRUE, conditions_of, get_condition
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.quantities import parse_quantity
from gardenbus.common.resources.seed_management import CORDONED_BY, CORDONED_BY_OPERATOR, MARKED_FOR_REMOVAL
from gardenbus.common.resources.seeds import document_is_ready

DEFAULT_REPLICAS = 1
REPLICA_UNSCHEDULABLE = "ReplicaUnschedulable"
"""Condition of a ManagedSeedSet: a shoot of its own finds no seed."""

_LONGEST_REASON = 1024


def ordered_replicas(managed_seed_set: Document) -> int:
    """How many replicas the set is told to have."""
    stated: Any = section(managed_seed_set, "spec").get("replicas")
    return stated if isinstance(stated, int) and not isinstance(stated, bool) and stated >= 0 else DEFAULT_REPLICAS


def unschedulable_because(managed_seed_set: Document) -> str:
    """Why a shoot of the set's own finds no seed; "" when none waits."""
    condition = get_condition(conditions_of(managed_seed_set), REPLICA_UNSCHEDULABLE)
    if condition is None or condition.get("status") != TRUE:
        return ""
    return str(condition.get("message") or "a shoot of the set finds no seed")[:_LONGEST_REASON]


def pending_replica(managed_seed_set: Document) -> str:
    """The name of the replica that the set is busy making, "" when there is none.

    One that was ready before and is waited for is made already, however long it takes.
    """
    status = section(managed_seed_set, "status")
    name = str(section(status, "pendingReplica").get("name") or "")
    return "" if section(status, "replicaRecords", name).get("established") is True else name


def replica_of(shoot: Document, managed_seed: Document | None, seed: Document | None, pending: str) -> Replica:
    """One replica; `pending` is the one that its set is busy making.

    A seed that its set empties takes no shoots, as one that is not built yet: both will if the set is told to keep
    as many. One that an operator closed may stay so for ever.
    """
    name = str(section(shoot, "metadata").get("name"))
    parts = [part for part in (shoot, managed_seed, seed) if part is not None]
    is_leaving = any(section(part, "metadata").get("deletionTimestamp") for part in parts)
    if seed is None:
        return Replica(name=name, is_built=False, is_leaving=is_leaving)
    annotations = section(seed, "metadata", "annotations")
    allocatable = amounts(section(seed, "status", "allocatable")) if "allocatable" in section(seed, "status") else None
    was_ready = document_is_ready(seed) or (allocatable is not None and name != pending)
    return Replica(
        name=name,
        is_built=was_ready and annotations.get(CORDONED_BY) in (None, "", CORDONED_BY_OPERATOR),
        is_leaving=is_leaving or bool(annotations.get(MARKED_FOR_REMOVAL)),
        allocatable=allocatable,
        usage=amounts(section(seed, "status", "usage")),
    )


def amounts(quantities: Mapping[str, Any]) -> dict[str, Fraction]:
    """Quantities as numbers; what is none is left out."""
    read: dict[str, Fraction] = {}
    for resource, quantity in quantities.items():
        if isinstance(quantity, str | int | float):
            try:
                read[resource] = parse_quantity(quantity)
            except ValueError:
                continue
    return read


def owner_sets(document: Document) -> Sequence[str]:
    """The names of the ManagedSeedSets that control an object: one, or none."""
    return [str(owner.get("name")) for owner in _controllers(document) if owner.get("kind") == "ManagedSeedSet"]


def is_controlled_by(document: Document, uid: str) -> bool:
    """Whether the object with this uid controls another."""
    return any(owner.get("uid") == uid for owner in _controllers(document))


def shoot_behind(managed_seed: Document) -> str:
    """The name of the shoot that a ManagedSeed makes a seed of."""
    return str(section(managed_seed, "spec", "shoot").get("name") or "")


def _controllers(document: Document) -> list[Document]:
    owners: Any = section(document, "metadata").get("ownerReferences")
    listed = cast("list[Any]", owners) if isinstance(owners, list) else []
    found = [cast("Document", owner) for owner in listed if isinstance(owner, dict)]
    return [owner for owner in found if owner.get("controller") is True]
