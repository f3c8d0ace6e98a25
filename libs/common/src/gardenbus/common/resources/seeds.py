"""Seeds: a typed view, readiness, capacity, and what of a Seed a placement depends on."""

from math import inf
from typing import Any

import msgspec

from gardenbus.common.resources.conditions import condition_status, conditions_of
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.quantities import whole_places
from gardenbus.common.resources.seed_management import MARKED_FOR_REMOVAL
from gardenbus.common.resources.views import ConditionView, LastOperation, Metadata, View, mapping_or_empty, read_view

GARDENLET_READY = "GardenletReady"
BACKUP_BUCKETS_READY = "BackupBucketsReady"
SEED_SYSTEM_COMPONENTS_HEALTHY = "SeedSystemComponentsHealthy"
EMERGENCY_STOP = "shoot.gardener.cloud/emergency-stop-reconciliations"
SHOOTS = "shoots"

_canonical = msgspec.json.Encoder(order="deterministic").encode


class SeedProvider(View, frozen=True):
    """Where the seed stands."""

    type: str = ""
    """The infrastructure, as `aws`. A shoot goes to seeds of the types that its profile allows."""

    region: str = ""
    """Where it stands: what strategies compare with the region of the shoot."""

    zones: tuple[str, ...] = ()
    """Its zones. A control plane that survives the loss of a zone needs three of them."""


class ShootNetworks(View, frozen=True):
    """Ranges for shoots that state none."""

    pods: str | None = None
    """The range of pods."""

    services: str | None = None
    """The range of services."""


class SeedNetworks(View, frozen=True):
    """The seed's own ranges."""

    nodes: str | None = None
    """The seed's nodes: no range of a shoot may overlap it."""

    pods: str | None = None
    """The seed's pods, likewise."""

    services: str | None = None
    """The seed's services, likewise."""

    shoot_defaults: ShootNetworks | None = None
    """What a shoot gets that states no ranges."""


class SchedulingSettings(View, frozen=True):
    """Whether the scheduler may see the seed; a Seed that does not say is visible, as by Gardener's defaults."""

    visible: bool = True
    """`false` hides it from the scheduler; shoots that are there stay."""


class ZoneSelection(View, frozen=True):
    """Whether the zones of a shoot's workers bind the choice: `Enforce`, `Prefer` or something else."""

    mode: str = ""
    """`Enforce`: the seed must share a zone with the workers; `Prefer`: if any seed does; else zones do not bind."""


class SeedSettings(View, frozen=True):
    """What is read of spec.settings."""

    scheduling: SchedulingSettings = SchedulingSettings()
    zone_selection: ZoneSelection = ZoneSelection()


class Taint(View, frozen=True):
    """A taint; without a value any toleration of its key will do."""

    key: str = ""
    """What a shoot must tolerate by `spec.tolerations`."""

    value: str | None = None
    """If given, the toleration has to have the same value, or none."""


class AccessRestriction(View, frozen=True):
    """A restriction that a seed supports, or a shoot demands."""

    name: str = ""
    """Its name, as `eu-access-only`. A seed must support each that a shoot demands."""


class DefaultDomain(View, frozen=True):
    """A domain below which the seed's shoots get theirs."""

    domain: str = ""
    """As `example.org`."""


class SeedDNS(View, frozen=True):
    """What is read of spec.dns."""

    defaults: tuple[DefaultDomain, ...] = ()


class SeedSpec(View, frozen=True):
    """What is read of a Seed's spec."""

    provider: SeedProvider = SeedProvider()
    networks: SeedNetworks = SeedNetworks()
    settings: SeedSettings = SeedSettings()
    taints: tuple[Taint, ...] = ()
    access_restrictions: tuple[AccessRestriction, ...] = ()
    dns: SeedDNS = SeedDNS()
    backup: dict[str, Any] | None = None
    """Where etcd backups go. Control planes can move to and from seeds with a backup only."""


class SeedStatus(View, frozen=True):
    """What is read of a Seed's status. Quantities are as written."""

    conditions: tuple[ConditionView, ...] = ()
    last_operation: LastOperation | None = None
    capacity: dict[str, str | int | float] = msgspec.field(default_factory=dict[str, str | int | float])
    """How much of each resource there is, `shoots` above all."""

    allocatable: dict[str, str | int | float] = msgspec.field(default_factory=dict[str, str | int | float])
    """How much may be used. Without `shoots` the seed takes any number."""

    client_certificate_expiration_timestamp: str | None = None
    """When the gardenlet's certificate ends."""


class Seed(View, frozen=True):
    """A Seed."""

    metadata: Metadata = Metadata()
    spec: SeedSpec = SeedSpec()
    status: SeedStatus = SeedStatus()

    @classmethod
    def from_document(cls, document: Document | bytes) -> "Seed":
        """Read the view; raises InvalidResource when a field has the wrong type."""
        return read_view(document, cls)

    @property
    def name(self) -> str:
        """Its name."""
        return self.metadata.name

    def condition(self, kind: str) -> str:
        """The status of a condition; "" when it is missing."""
        return next((condition.status for condition in self.status.conditions if condition.type == kind), "")


def is_ready(seed: Seed) -> bool:
    """Whether a gardenlet keeps the seed and its backups work. Source: Gardener's scheduler, `isUsableSeed`."""
    return not unready_because(seed)


def unready_because(seed: Seed) -> str:
    """Why the seed is not ready; "" when it is."""
    if seed.status.last_operation is None:
        return "no gardenlet has reported yet"
    if seed.condition(GARDENLET_READY) != "True":
        return f"its condition {GARDENLET_READY} is {seed.condition(GARDENLET_READY) or 'missing'}"
    if seed.spec.backup is not None and seed.condition(BACKUP_BUCKETS_READY) != "True":
        return f"its condition {BACKUP_BUCKETS_READY} is {seed.condition(BACKUP_BUCKETS_READY) or 'missing'}"
    return ""


def shoot_capacity(document: Document) -> int | None:
    """How many shoots the seed takes: the next whole number up from status.allocatable.shoots.

    None when there is no such key (no limit). Raises ValueError when it is no quantity.
    """
    quantity = mapping_or_empty(mapping_or_empty(document.get("status")).get("allocatable")).get(SHOOTS)
    return None if quantity is None else max(whole_places(quantity), 0)


def removal_mark(document: Document) -> str:
    """On whose behalf the seed is about to be removed; "" when it is not, and it takes shoots."""
    metadata = mapping_or_empty(document.get("metadata"))
    mark = mapping_or_empty(metadata.get("annotations")).get(MARKED_FOR_REMOVAL)
    return str(mark) if mark else ""


def gate_content(document: Document) -> bytes:
    """Canonical JSON of what a bind depends on in a Seed besides its usage and its capacity.

    That is spec, labels, the emergency stop, whether it is being deleted or marked for removal, and readiness;
    heartbeats change nothing.
    """
    metadata = mapping_or_empty(document.get("metadata"))
    return _canonical(
        {
            "spec": document.get("spec"),
            "labels": metadata.get("labels") or {},
            "emergencyStop": mapping_or_empty(metadata.get("annotations")).get(EMERGENCY_STOP),
            "deletionTimestamp": metadata.get("deletionTimestamp"),
            "markedForRemoval": bool(removal_mark(document)),
            "ready": document_is_ready(document),
        }
    )


def may_gain(old: Document | None, new: Document | None) -> bool:
    """Whether a shoot may fit somewhere after the change that fitted nowhere before.

    The loss of a seed counts too: while it stood, seeds that only prefer zones in common may have been pushed aside,
    and its default domains may have bound shoots to it.
    """
    was_open, is_open = old is not None and _is_open(old), new is not None and _is_open(new)
    if old is None or new is None or was_open != is_open:
        return was_open or is_open
    if not is_open:
        return False
    return gate_content(old) != gate_content(new) or _capacity_or_none_left(new) > _capacity_or_none_left(old)


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
        and not removal_mark(document)
        and mapping_or_empty(settings.get("scheduling")).get("visible") is not False
        and mapping_or_empty(metadata.get("annotations")).get(EMERGENCY_STOP) != "true"
        and document_is_ready(document)
    )


def _capacity_or_none_left(document: Document) -> float:
    try:
        capacity = shoot_capacity(document)
    except ValueError:
        return 0
    return inf if capacity is None else capacity
