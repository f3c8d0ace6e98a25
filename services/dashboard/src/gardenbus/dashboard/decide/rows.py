"""What tables and maps show of an object: slim rows out of manifests of any shape. Pure.

A row is small (a few hundred bytes as JSON), so that thousands of them fit into a browser; the manifest itself is
asked for when somebody opens the object.
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from gardenbus.common.errors import GardenbusError
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.quantities import parse_quantity

ShootState = Literal["new", "pending", "processing", "succeeded", "error", "failed", "deleting"]

STATES: Mapping[str, ShootState] = {
    "Processing": "processing",
    "Succeeded": "succeeded",
    "Pending": "pending",
    "Error": "error",
    "Failed": "failed",
    "Aborted": "failed",
}
"""States of Gardener's lastOperation, and what they are called here."""

LONGEST_TEXT = 400
"""Characters of a description in a row; the whole of it stands in the object."""


class Row(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One object in one line."""

    name: str
    namespace: str = ""
    version: int = 0
    """Its resourceVersion."""

    created: str = ""
    """When it was made (RFC 3339)."""

    deleting: bool = False


class ShootRow(Row, frozen=True):
    """One shoot. `seed` is where it is to be, `actual_seed` where it is."""

    provider: str
    region: str
    purpose: str
    seed: str
    actual_seed: str
    operation: str
    state: ShootState
    progress: int
    """Percent of the operation."""

    description: str
    conditions: str
    """One letter a condition: t, f, p (progressing) or u, in the manifest's order."""

    scheduler: str
    refused: bool
    """A scheduler said that it fits nowhere."""

    moving: bool
    """Its control plane is on its way to another seed."""


class SeedRow(Row, frozen=True):
    """One seed. `ready` is the status of GardenletReady, "" when it was never reported."""

    provider: str
    region: str
    zones: tuple[str, ...]
    ready: str
    reason: str
    message: str
    capacity: float | None
    """Places for shoots; None where there is no limit."""

    visible: bool
    cordoned: bool
    """An operator has closed it."""

    managed: bool
    """It is made of a shoot (its labels or its ManagedSeed say so)."""

    taints: tuple[str, ...]


class SetRow(Row, frozen=True):
    """One ManagedSeedSet. `pending` is the replica in the making, and `reason` what is waited for."""

    wanted: int
    replicas: int
    ready: int
    updated: int
    pending: str
    reason: str
    since: str


class AutoscalerRow(Row, frozen=True):
    """One SeedAutoscaler. `desired` is None before its first look."""

    target: str
    least: int
    most: int
    desired: int | None
    current: int | None
    pending_shoots: int | None
    last_scale: str
    reason: str
    """What its condition ScalingActive or ScalingLimited says."""


class OtherRow(Row, frozen=True):
    """An object of a kind that only the search and an object's page show."""

    kind: str


def shoot_row(document: Document) -> ShootRow:
    """The row of a Shoot."""
    spec, status = section(document, "spec"), section(document, "status")
    operation = section(status, "lastOperation")
    seed, actual = text(spec.get("seedName")), text(status.get("seedName"))
    common = common_of(document)
    state = "deleting" if common["deleting"] else STATES.get(text(operation.get("state")), "new")
    is_refused = not seed and (operation.get("type"), operation.get("state")) == ("Create", "Pending")
    return ShootRow(
        **common,
        provider=text(section(spec, "provider").get("type")),
        region=text(spec.get("region")),
        purpose=text(spec.get("purpose")),
        seed=seed,
        actual_seed=actual,
        operation=text(operation.get("type")),
        state=state,
        progress=number(operation.get("progress")),
        description=text(operation.get("description"))[:LONGEST_TEXT],
        conditions="".join(text(each.get("status"))[:1].lower() or "u" for each in mappings(status.get("conditions"))),
        scheduler=text(spec.get("schedulerName")),
        refused=is_refused and not common["deleting"],
        moving=bool(actual and seed and actual != seed),
    )


def seed_row(document: Document) -> SeedRow:
    """The row of a Seed."""
    spec, status = section(document, "spec"), section(document, "status")
    provider = section(spec, "provider")
    ready = condition(document, "GardenletReady")
    annotations = section(document, "metadata", "annotations")
    return SeedRow(
        **common_of(document),
        provider=text(provider.get("type")),
        region=text(provider.get("region")),
        zones=tuple(str(zone) for zone in listed(provider.get("zones"))),
        ready=text(ready.get("status")),
        reason=text(ready.get("reason")),
        message=text(ready.get("message"))[:LONGEST_TEXT],
        capacity=_quantity(section(status, "allocatable").get("shoots")),
        visible=section(spec, "settings", "scheduling").get("visible") is not False,
        cordoned=any(name.endswith("/cordoned-by") for name in annotations),
        managed=bool(section(document, "metadata", "labels").get("set")),
        taints=tuple(text(taint.get("key")) for taint in mappings(spec.get("taints"))),
    )


def set_row(document: Document) -> SetRow:
    """The row of a ManagedSeedSet."""
    spec, status = section(document, "spec"), section(document, "status")
    pending = section(status, "pendingReplica")
    wanted = spec.get("replicas")
    return SetRow(
        **common_of(document),
        wanted=1 if wanted is None else number(wanted),
        replicas=number(status.get("replicas")),
        ready=number(status.get("readyReplicas")),
        updated=number(status.get("updatedReplicas")),
        pending=text(pending.get("name")),
        reason=text(pending.get("reason")),
        since=text(pending.get("since")),
    )


def autoscaler_row(document: Document) -> AutoscalerRow:
    """The row of a SeedAutoscaler."""
    spec, status = section(document, "spec"), section(document, "status")
    limited = condition(document, "ScalingLimited")
    said = limited if limited.get("status") == "True" else condition(document, "ScalingActive")
    return AutoscalerRow(
        **common_of(document),
        target=text(section(spec, "scaleTargetRef").get("name")),
        least=number(spec.get("minReplicas", 1)),
        most=number(spec.get("maxReplicas", 1)),
        desired=_number_or_none(status.get("desiredReplicas")),
        current=_number_or_none(status.get("currentReplicas")),
        pending_shoots=_number_or_none(status.get("pendingShoots")),
        last_scale=text(status.get("lastScaleTime")),
        reason=text(said.get("message"))[:LONGEST_TEXT],
    )


def condition(document: Document, wanted: str) -> Document:
    """A condition of a status, or an empty mapping."""
    for each in mappings(section(document, "status").get("conditions")):
        if each.get("type") == wanted:
            return each
    return {}


def mappings(value: object) -> list[Document]:
    """The mappings in a list; what is none is left out."""
    return [each for each in listed(value) if isinstance(each, dict)]


def listed(value: object) -> list[Any]:
    """A list, or an empty one."""
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]


def common_of(document: Document) -> dict[str, Any]:
    """What all rows have, as arguments."""
    metadata = section(document, "metadata")
    version = text(metadata.get("resourceVersion"))
    return {
        "name": text(metadata.get("name")),
        "namespace": text(metadata.get("namespace")),
        "version": int(version) if version.isdecimal() else 0,
        "created": text(metadata.get("creationTimestamp")),
        "deleting": bool(metadata.get("deletionTimestamp")),
    }


def text(value: object) -> str:
    """A text; "" of nothing."""
    return value if isinstance(value, str) else "" if value is None else str(value)


def number(value: object) -> int:
    """A whole number; 0 of what is none."""
    return int(value) if isinstance(value, int | float) else 0


def _number_or_none(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) else None


def _quantity(value: object) -> float | None:
    if not isinstance(value, str | int | float):
        return None
    try:
        return float(parse_quantity(value))
    except (GardenbusError, ValueError, OverflowError):
        return None
