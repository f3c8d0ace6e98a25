"""Rows of shoots, seeds, sets and autoscalers for tables and maps: small extracts of manifests of any shape.

The names of a row's fields in JSON are those that the dashboard's page reads.
"""

from collections.abc import Mapping
from typing import Any, Literal, cast

import msgspec

from gardenbus.common.api.conditions import LAST_HEARTBEAT, conditions_of, get_condition
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings
from gardenbus.common.api.garden.seed_autoscalers import DEFAULT_UTILIZATION
from gardenbus.common.api.garden.seeds import BACKUP_BUCKETS_READY
from gardenbus.common.api.numbers import whole_number
from gardenbus.common.api.quantities import parse_quantity
from gardenbus.common.errors import GardenbusError

ShootOperationState = Literal["new", "pending", "processing", "succeeded", "error", "failed", "deleting"]

STATES: Mapping[str, ShootOperationState] = {
    "Processing": "processing",
    "Succeeded": "succeeded",
    "Pending": "pending",
    "Error": "error",
    "Failed": "failed",
    "Aborted": "failed",
}
"""States of Gardener's lastOperation, and their short names."""


_EXACT_DIGITS = 15
"""Numbers of so many digits are exact in a float."""


class TableRow(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One object in one line."""

    name: str
    namespace: str = ""
    version: int = 0
    """Its resourceVersion."""

    created: str = ""
    """Creation time (RFC 3339)."""

    is_deleting: bool = msgspec.field(default=False, name="deleting")


class ShootRow(TableRow, frozen=True, gc=False):
    """One shoot. `seed` is its target, `actual_seed` the one it is on."""

    provider: str
    region: str
    purpose: str
    seed: str
    actual_seed: str
    operation: str
    state: ShootOperationState
    progress: int
    """Percent of the operation."""

    description: str
    conditions: str
    """One letter a condition: t, f, p (progressing) or u, in the manifest's order."""

    scheduler: str
    is_unschedulable: bool = msgspec.field(name="refused")
    """True when a scheduler found no feasible seed."""

    is_migrating: bool = msgspec.field(name="moving")
    """True during a migration of its control plane."""


class SeedRow(TableRow, frozen=True):
    """One seed. `ready` is the status of GardenletReady, "" when it was never reported."""

    provider: str
    region: str
    zones: tuple[str, ...]
    ready: str
    reason: str
    message: str
    capacity: float | None
    """Allocatable number of shoots; None where there is no limit."""

    is_visible: bool = msgspec.field(name="visible")
    is_cordoned: bool = msgspec.field(name="cordoned")
    """True when an operator has cordoned it."""

    is_managed: bool = msgspec.field(name="managed")
    """True when it is a ManagedSeed (by its labels)."""

    taints: tuple[str, ...]
    lacks_backups: bool = False
    """True when its backup bucket is not (or not yet) ready: a scheduler leaves it out."""

    last_heartbeat: str = ""
    """Last heartbeat (RFC 3339) of a seed that is silent now; "" for others, whose Lease has it."""

    certificate_ends: str = ""
    """End of its gardenlet's client certificate (RFC 3339); "" without one."""


class SetRow(TableRow, frozen=True):
    """One ManagedSeedSet. `pending` is the replica in progress, and `reason` what it waits for."""

    wanted: int
    replicas: int
    ready: int
    updated: int
    pending: str
    reason: str
    since: str

    @property
    def pending_replica(self) -> str:
        """The replica in progress and its reason; "" when there is none."""
        return f"{self.pending}: {self.reason}" if self.pending or self.reason else ""


class AutoscalerRow(TableRow, frozen=True):
    """One SeedAutoscaler. `desired` is None before its first reconcile."""

    target: str
    least: int
    most: int
    desired: int | None
    current: int | None
    pending_shoots: int | None
    last_scale: str
    reason: str
    """Metrics beside their targets, and the limit, from which the desired number follows."""


def shoot_row(document: Document) -> ShootRow:
    """Return the row of a Shoot."""
    return ShootRow(**shoot_fields(document))


def shoot_fields(document: Document) -> dict[str, Any]:
    """Return the fields of a ShootRow, as arguments."""
    spec, status = section(document, "spec"), section(document, "status")
    operation = section(status, "lastOperation")
    seed, actual = text(spec.get("seedName")), text(status.get("seedName"))
    common = metadata_fields(document)
    is_unschedulable = not seed and (operation.get("type"), operation.get("state")) == ("Create", "Pending")
    return common | {
        "provider": text(section(spec, "provider").get("type")),
        "region": text(spec.get("region")),
        "purpose": text(spec.get("purpose")),
        "seed": seed,
        "actual_seed": actual,
        "operation": text(operation.get("type")),
        "state": "deleting" if common["is_deleting"] else STATES.get(text(operation.get("state")), "new"),
        "progress": number(operation.get("progress")),
        "description": text(operation.get("description")),
        "conditions": "".join(text(each.get("status"))[:1].lower() or "u" for each in conditions_of(document)),
        "scheduler": text(spec.get("schedulerName")),
        "is_unschedulable": is_unschedulable and not common["is_deleting"],
        "is_migrating": bool(actual and seed and actual != seed),
    }


def seed_row(document: Document) -> SeedRow:
    """Return the row of a Seed."""
    spec, status = section(document, "spec"), section(document, "status")
    provider = section(spec, "provider")
    ready = condition(document, "GardenletReady")
    annotations = section(document, "metadata", "annotations")
    return SeedRow(
        **metadata_fields(document),
        provider=text(provider.get("type")),
        region=text(provider.get("region")),
        zones=tuple(str(zone) for zone in listed(provider.get("zones"))),
        ready=text(ready.get("status")),
        reason=text(ready.get("reason")),
        message=text(ready.get("message")),
        capacity=capacity_of(section(status, "allocatable").get("shoots")),
        is_visible=section(spec, "settings", "scheduling").get("visible") is not False,
        is_cordoned=any(name.endswith("/cordoned-by") for name in annotations),
        is_managed=bool(section(document, "metadata", "labels").get("set")),
        taints=tuple(text(taint.get("key")) for taint in mappings(spec.get("taints"))),
        lacks_backups=spec.get("backup") is not None
        and condition(document, BACKUP_BUCKETS_READY).get("status") != "True",
        last_heartbeat=text(ready.get(LAST_HEARTBEAT)),
        certificate_ends=text(status.get("clientCertificateExpirationTimestamp")),
    )


def set_row(document: Document) -> SetRow:
    """Return the row of a ManagedSeedSet."""
    return SetRow(**set_fields(document))


def set_fields(document: Document) -> dict[str, Any]:
    """Return the fields of a SetRow, as arguments."""
    spec, status = section(document, "spec"), section(document, "status")
    pending = section(status, "pendingReplica")
    wanted = spec.get("replicas")
    return metadata_fields(document) | {
        "wanted": 1 if wanted is None else number(wanted),
        "replicas": number(status.get("replicas")),
        "ready": number(status.get("readyReplicas")),
        "updated": number(status.get("updatedReplicas")),
        "pending": text(pending.get("name")),
        "reason": text(pending.get("reason")),
        "since": text(pending.get("since")),
    }


def autoscaler_row(document: Document) -> AutoscalerRow:
    """Return the row of a SeedAutoscaler."""
    spec, status = section(document, "spec"), section(document, "status")
    return AutoscalerRow(
        **metadata_fields(document),
        target=text(section(spec, "scaleTargetRef").get("name")),
        least=number(spec.get("minReplicas", 1)),
        most=number(spec.get("maxReplicas", 1)),
        desired=_number_or_none(status.get("desiredReplicas")),
        current=_number_or_none(status.get("currentReplicas")),
        pending_shoots=_number_or_none(status.get("pendingShoots")),
        last_scale=text(status.get("lastScaleTime")),
        reason=scaling_reason(document),
    )


def scaling_reason(document: Document) -> str:
    """`utilization of shoots 50 %, below the target of 80 %`, and what keeps an autoscaler from more or fewer."""
    spec, status = section(document, "spec"), section(document, "status")
    resources = [section(each, "resource") for each in mappings(spec.get("metrics"))]
    targets = {text(each.get("name")): section(each, "target") for each in resources}
    current = [section(each, "resource") for each in mappings(status.get("currentMetrics"))]
    parts = [_metric_words(each, targets.get(text(each.get("name")), {})) for each in current]
    if waiting := number(status.get("pendingShoots")):
        parts.append(f"{waiting} of its shoots wait for a seed")
    limited, active = condition(document, "ScalingLimited"), condition(document, "ScalingActive")
    if limited.get("status") == "True":
        parts.append(text(limited.get("message")))
    if active.get("status") == "False" or not any(parts):
        parts.append(text(active.get("message")))
    return "; ".join(filter(None, parts))


def _metric_words(resource: Document, target: Document) -> str:
    """A metric beside its target: by its share of what the seeds have, or by its amount on each seed."""
    name, current = text(resource.get("name")), section(resource, "current")
    utilization, average = current.get("averageUtilization"), current.get("averageValue")
    if target.get("type") == "AverageValue" and average is not None:
        return f"{average} {name} on each seed, of a target of {text(target.get('averageValue'))}"
    if not isinstance(utilization, int | float):
        return ""
    wanted = number(target.get("averageUtilization")) or DEFAULT_UTILIZATION
    relation = "at" if utilization == wanted else "below" if utilization < wanted else "above"
    return f"utilization of {name} {utilization} %, {relation} the target of {wanted} %"


def metadata_fields(document: Document) -> dict[str, Any]:
    """Return the fields that all rows have in common, as arguments."""
    metadata = section(document, "metadata")
    return {
        "name": text(metadata.get("name")),
        "namespace": text(metadata.get("namespace")),
        "version": whole_number(metadata.get("resourceVersion")),
        "created": text(metadata.get("creationTimestamp")),
        "is_deleting": bool(metadata.get("deletionTimestamp")),
    }


def condition(document: Document, wanted: str) -> Document:
    """Return a condition of a status, or an empty mapping."""
    return get_condition(conditions_of(document), wanted) or {}


def listed(value: object) -> list[Any]:
    """Return a list, or an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def text(value: object) -> str:
    """Return a text; "" for None."""
    return value if isinstance(value, str) else "" if value is None else str(value)


def number(value: object) -> int:
    """Return a whole number; 0 for anything else."""
    return _number_or_none(value) or 0


def _number_or_none(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) else None


def capacity_of(value: object) -> float | None:
    """Return the number that a quantity states; None for what is none."""
    if isinstance(value, str) and len(value) <= _EXACT_DIGITS and value.isascii() and value.isdecimal():
        return float(value)
    if not isinstance(value, str | int | float):
        return None
    try:
        return float(parse_quantity(value))
    except (GardenbusError, ValueError, OverflowError):
        return None
