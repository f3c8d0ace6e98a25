"""Reads a set's manifests into the numbers that decisions use."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from gardenbus.autoscaling.seed_set import ReplicaState
from gardenbus.common.api.conditions import TRUE, conditions_of, get_condition
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.resource_amounts import CPU, THOUSANDTHS
from gardenbus.common.api.garden.seed_management import CORDONED_BY, CORDONED_BY_OPERATOR, REMOVAL_ANNOTATION
from gardenbus.common.api.garden.seeds import SHOOTS, document_is_ready
from gardenbus.common.api.owners import controller_of
from gardenbus.common.api.quantities import parse_quantity

DEFAULT_REPLICAS = 1
REPLICA_UNSCHEDULABLE = "ReplicaUnschedulable"
"""Condition of a ManagedSeedSet: a shoot of its own finds no seed."""

_LONGEST_REASON = 1024


def ordered_replicas(managed_seed_set: Document) -> int:
    """The set's spec.replicas."""
    stated: Any = section(managed_seed_set, "spec").get("replicas")
    return stated if isinstance(stated, int) and not isinstance(stated, bool) and stated >= 0 else DEFAULT_REPLICAS


def unschedulable_message(managed_seed_set: Document) -> str:
    """The reason why a shoot of the set's own finds no seed; "" when none waits."""
    condition = get_condition(conditions_of(managed_seed_set), REPLICA_UNSCHEDULABLE)
    if condition is None or condition.get("status") != TRUE:
        return ""
    return str(condition.get("message") or "a shoot of the set finds no seed")[:_LONGEST_REASON]


def pending_replica(managed_seed_set: Document) -> str:
    """Name of the replica under construction, "" when there is none.

    One that was ready before is complete, however long it is waited for.
    """
    status = section(managed_seed_set, "status")
    name = str(section(status, "pendingReplica").get("name") or "")
    return "" if section(status, "replicaRecords", name).get("established") is True else name


def replica_of(
    shoot: Document,
    managed_seed: Document | None,
    seed: Document | None,
    pending: str,
    requested: Mapping[str, int] = {},
) -> ReplicaState:
    """State of one replica; `pending` is the one under construction.

    What its shoots request of a resource that the seed states counts as used where its gardenlet does not report usage.

    A seed that its set drains accepts no shoots, like one that is not built yet: both will if the set is to keep as
    many. One that an operator cordoned may stay so for ever.
    """
    name = str(section(shoot, "metadata").get("name"))
    parts = [part for part in (shoot, managed_seed, seed) if part is not None]
    is_leaving = any(section(part, "metadata").get("deletionTimestamp") for part in parts)
    if seed is None:
        return ReplicaState(name=name, is_built=False, is_leaving=is_leaving)
    annotations = section(seed, "metadata", "annotations")
    allocatable = amounts(section(seed, "status", "allocatable")) if "allocatable" in section(seed, "status") else None
    was_ready = document_is_ready(seed) or (allocatable is not None and name != pending)
    stated = (allocatable or {}).keys() - {SHOOTS}
    taken = dict.fromkeys(sorted(stated), Fraction()) | {
        resource: amount for resource, amount in _in_units(requested).items() if resource in stated
    }
    return ReplicaState(
        name=name,
        is_built=was_ready and annotations.get(CORDONED_BY) in (None, "", CORDONED_BY_OPERATOR),
        is_leaving=is_leaving or bool(annotations.get(REMOVAL_ANNOTATION)),
        allocatable=allocatable,
        usage={**taken, **amounts(section(seed, "status", "usage"))},
        requested=_in_units(requested),
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


def _in_units(requested: Mapping[str, int]) -> dict[str, Fraction]:
    """Amounts in units of account, as quantities count them."""
    return {resource: Fraction(amount, THOUSANDTHS if resource == CPU else 1) for resource, amount in requested.items()}


def owner_sets(document: Document) -> Sequence[str]:
    """The names of the ManagedSeedSets that control an object: one, or none."""
    owner = controller_of(document)
    return [str(owner.get("name"))] if owner is not None and owner.get("kind") == "ManagedSeedSet" else []


def is_controlled_by(document: Document, uid: str) -> bool:
    """True if the object with this uid controls another."""
    owner = controller_of(document)
    return owner is not None and owner.get("uid") == uid


def cluster_shoot_of(managed_seed: Document) -> str:
    """Name of the shoot that a ManagedSeed turns into a seed."""
    return str(section(managed_seed, "spec", "shoot").get("name") or "")
