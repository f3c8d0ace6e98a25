"""Seeds: a typed view, readiness, capacity, and the content that binds depend on."""

from math import inf
from typing import Any

import msgspec

from gardenbus.common.api.conditions import condition_status, conditions_of
from gardenbus.common.api.document import Document, canonical
from gardenbus.common.api.garden.resource_amounts import allocatable_amounts
from gardenbus.common.api.garden.seed_management import REMOVAL_ANNOTATION
from gardenbus.common.api.quantities import whole_count
from gardenbus.common.api.views import ConditionView, LastOperation, Metadata, TypedView, mapping_or_empty

GARDENLET_READY = "GardenletReady"
BACKUP_BUCKETS_READY = "BackupBucketsReady"
SEED_SYSTEM_COMPONENTS_HEALTHY = "SeedSystemComponentsHealthy"
OBJECTS_CONDITION = "ObjectsKnown"
EMERGENCY_STOP = "shoot.gardener.cloud/emergency-stop-reconciliations"
SHOOTS = "shoots"
MOST_SHOOTS = 2**53
"""Largest capacity: as large a number as Redis, Prometheus and JavaScript hold exactly."""


class SeedProvider(TypedView, frozen=True):
    """Infrastructure and location of the seed."""

    type: str = ""
    """The infrastructure, as `aws`. A shoot goes to seeds of the types that its profile allows."""

    region: str = ""
    """Region, which strategies compare with that of the shoot."""

    zones: tuple[str, ...] = ()
    """Its zones. A control plane that survives the loss of a zone needs three of them."""


class ShootNetworks(TypedView, frozen=True):
    """Ranges for shoots that state none."""

    pods: str | None = None
    """The range of pods."""

    services: str | None = None
    """The range of services."""


class SeedNetworks(TypedView, frozen=True):
    """The seed's own ranges."""

    nodes: str | None = None
    """The seed's nodes: no range of a shoot may overlap it."""

    pods: str | None = None
    """The seed's pods, likewise."""

    services: str | None = None
    """The seed's services, likewise."""

    shoot_defaults: ShootNetworks | None = None
    """Defaults of shoots that state no ranges."""


class SchedulingSettings(TypedView, frozen=True):
    """Visibility to the scheduler; true by default, as in Gardener."""

    visible: bool = True
    """`false` hides it from the scheduler; shoots that are there stay."""


class ZoneSelection(TypedView, frozen=True):
    """Constraint by the zones of a shoot's workers: `Enforce`, `Prefer` or something else."""

    mode: str = ""
    """`Enforce`: the seed must share a zone with the workers; `Prefer`: if any seed does; else zones do not bind."""


class SeedSettings(TypedView, frozen=True):
    """Fields of spec.settings."""

    scheduling: SchedulingSettings = SchedulingSettings()
    zone_selection: ZoneSelection = ZoneSelection()


class SeedTaint(TypedView, frozen=True):
    """A taint; without a value any toleration of its key will do."""

    key: str = ""
    """Key that a shoot must tolerate by `spec.tolerations`."""

    value: str | None = None
    """Value that the toleration must have, unless it has none."""


class AccessRestriction(TypedView, frozen=True):
    """A restriction that a seed supports, or a shoot demands."""

    name: str = ""
    """Its name, as `eu-access-only`. A seed must support each that a shoot demands."""


class DefaultDomain(TypedView, frozen=True):
    """A domain below which the seed's shoots get theirs."""

    domain: str = ""
    """As `example.org`."""


class SeedDNS(TypedView, frozen=True):
    """Fields of spec.dns."""

    defaults: tuple[DefaultDomain, ...] = ()


class SeedSpec(TypedView, frozen=True):
    """Fields of a Seed's spec."""

    provider: SeedProvider = SeedProvider()
    networks: SeedNetworks = SeedNetworks()
    settings: SeedSettings = SeedSettings()
    taints: tuple[SeedTaint, ...] = ()
    access_restrictions: tuple[AccessRestriction, ...] = ()
    dns: SeedDNS = SeedDNS()
    backup: dict[str, Any] | None = None
    """Destination of etcd backups. Control planes can move to and from seeds with a backup only."""


class SeedStatus(TypedView, frozen=True):
    """Fields of a Seed's status. Quantities are as written."""

    conditions: tuple[ConditionView, ...] = ()
    last_operation: LastOperation | None = None
    capacity: dict[str, str | int | float] = msgspec.field(default_factory=dict[str, str | int | float])
    """Total of each resource, `shoots` above all."""

    allocatable: dict[str, str | int | float] = msgspec.field(default_factory=dict[str, str | int | float])
    """Usable part of each resource. Without `shoots` there is no limit of shoots."""

    client_certificate_expiration_timestamp: str | None = None
    """Expiry of the gardenlet's certificate."""


class Seed(TypedView, frozen=True):
    """A Seed."""

    metadata: Metadata = Metadata()
    spec: SeedSpec = SeedSpec()
    status: SeedStatus = SeedStatus()

    @property
    def name(self) -> str:
        """Its name."""
        return self.metadata.name

    def condition(self, kind: str) -> str:
        """The status of a condition; "" when it is missing."""
        return next((condition.status for condition in self.status.conditions if condition.type == kind), "")


def is_ready(seed: Seed) -> bool:
    """True when the gardenlet is ready and backups work. Source: Gardener's scheduler, `isUsableSeed`."""
    return not unready_because(seed)


def unready_because(seed: Seed) -> str:
    """Reason that the seed is not ready; "" when it is."""
    if seed.status.last_operation is None:
        return "no gardenlet has reported yet"
    if seed.condition(GARDENLET_READY) != "True":
        return f"its condition {GARDENLET_READY} is {seed.condition(GARDENLET_READY) or 'missing'}"
    if seed.spec.backup is not None and seed.condition(BACKUP_BUCKETS_READY) != "True":
        return f"its condition {BACKUP_BUCKETS_READY} is {seed.condition(BACKUP_BUCKETS_READY) or 'missing'}"
    return ""


def shoot_capacity(document: Document) -> int | None:
    """Capacity in shoots: status.allocatable.shoots, rounded up, at most `MOST_SHOOTS`.

    None when there is no such key (no limit). Raises ValueError when it is no quantity.
    """
    quantity = mapping_or_empty(mapping_or_empty(document.get("status")).get("allocatable")).get(SHOOTS)
    return None if quantity is None else min(max(whole_count(quantity), 0), MOST_SHOOTS)


def allocatable_resources(document: Document) -> dict[str, int]:
    """Amounts of status.allocatable but `shoots`, in units of account; what is no quantity cannot be had there."""
    return allocatable_amounts(mapping_or_empty(mapping_or_empty(document.get("status")).get("allocatable")), (SHOOTS,))


def removal_owner(document: Document) -> str:
    """Owner of the seed's removal annotation; "" without one."""
    metadata = mapping_or_empty(document.get("metadata"))
    mark = mapping_or_empty(metadata.get("annotations")).get(REMOVAL_ANNOTATION)
    return str(mark) if mark else ""


def scheduling_content(document: Document) -> bytes:
    """Canonical JSON of a Seed's fields that binds depend on, besides usage and capacity.

    Those are spec, labels, the emergency stop, deletion, the removal annotation, and readiness; heartbeats change
    nothing.
    """
    metadata = mapping_or_empty(document.get("metadata"))
    return canonical(
        {
            "spec": document.get("spec"),
            "labels": metadata.get("labels") or {},
            "emergencyStop": mapping_or_empty(metadata.get("annotations")).get(EMERGENCY_STOP),
            "deletionTimestamp": metadata.get("deletionTimestamp"),
            "markedForRemoval": bool(removal_owner(document)),
            "ready": document_is_ready(document),
        }
    )


def may_unblock(old: Document | None, new: Document | None) -> bool:
    """True when the change may make an unschedulable shoot schedulable.

    So may the loss of a seed: seeds that only prefer common zones may have lost against it, and its default domains may
    have bound shoots to it.
    """
    was_open, is_open = old is not None and _is_open(old), new is not None and _is_open(new)
    if old is None or new is None or was_open != is_open:
        return was_open or is_open
    if not is_open:
        return False
    if scheduling_content(old) != scheduling_content(new) or _capacity_or_zero(new) > _capacity_or_zero(old):
        return True
    before = allocatable_resources(old)
    return any(amount > before.get(resource, 0) for resource, amount in allocatable_resources(new).items())


def document_is_ready(document: Document) -> bool:
    """`is_ready` on the document itself, whatever its other fields are like."""
    conditions = conditions_of(document)
    if mapping_or_empty(document.get("status")).get("lastOperation") is None:
        return False
    if condition_status(conditions, GARDENLET_READY) != "True":
        return False
    has_backup = mapping_or_empty(document.get("spec")).get("backup") is not None
    return not has_backup or condition_status(conditions, BACKUP_BUCKETS_READY) == "True"


def _is_open(document: Document) -> bool:
    metadata = mapping_or_empty(document.get("metadata"))
    settings = mapping_or_empty(mapping_or_empty(document.get("spec")).get("settings"))
    return (
        not metadata.get("deletionTimestamp")
        and not removal_owner(document)
        and mapping_or_empty(settings.get("scheduling")).get("visible") is not False
        and mapping_or_empty(metadata.get("annotations")).get(EMERGENCY_STOP) != "true"
        and document_is_ready(document)
    )


def _capacity_or_zero(document: Document) -> float:
    try:
        capacity = shoot_capacity(document)
    except ValueError:
        return 0
    return inf if capacity is None else capacity
