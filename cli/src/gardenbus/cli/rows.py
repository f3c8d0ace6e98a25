"""What tables and pictures show of shoots and seeds, taken from manifests of any shape. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Literal, NamedTuple

from gardenbus.cli.documents import as_mapping
from gardenbus.common.errors import GardenbusError
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.quantities import parse_quantity

ShootState = Literal["new", "pending", "processing", "succeeded", "error", "failed", "deleting"]

_STATES: Mapping[str, ShootState] = {
    "Processing": "processing",
    "Succeeded": "succeeded",
    "Pending": "pending",
    "Error": "error",
    "Failed": "failed",
    "Aborted": "failed",
}


class ShootRow(NamedTuple):
    """One shoot. `seed` is where it is to be, `actual_seed` where it is."""

    namespace: str
    name: str
    provider: str
    region: str
    seed: str
    actual_seed: str
    generation: int
    observed_generation: int
    operation: str
    operation_state: str
    progress: int
    description: str
    is_deleting: bool
    began_at: str = ""
    """When its operation began, as far as its manifest tells: at the latest when it was last heard of."""

    @property
    def state(self) -> ShootState:
        """One word for where it stands."""
        if self.is_deleting:
            return "deleting"
        return _STATES.get(self.operation_state, "new")

    @property
    def is_refused(self) -> bool:
        """Whether a scheduler said that it fits nowhere."""
        return not self.seed and (self.operation, self.operation_state) == ("Create", "Pending")

    @property
    def is_reconciled(self) -> bool:
        """Whether its gardenlet has carried out what stands in its manifest now."""
        return (
            bool(self.seed)
            and not self.is_deleting
            and self.operation_state == "Succeeded"
            and self.observed_generation == self.generation
        )


class SeedRow(NamedTuple):
    """One seed. `ready` is the status of GardenletReady, "" when it was never reported."""

    name: str
    provider: str
    region: str
    ready: str
    reason: str
    allocatable: Fraction | None
    is_visible: bool
    is_deleting: bool


class SetRow(NamedTuple):
    """One ManagedSeedSet. `pending` is the replica in the making and what is waited for, "" when there is none."""

    name: str
    wanted: int
    replicas: int
    ready: int
    pending: str
    is_observed: bool
    is_deleting: bool

    @property
    def is_settled(self) -> bool:
        """Whether it has what it wants, and nothing is in the making."""
        return self.is_observed and not self.pending and self.wanted == self.replicas == self.ready


class AutoscalerRow(NamedTuple):
    """One SeedAutoscaler. `desired` is None before its first look."""

    name: str
    target: str
    desired: int | None


def shoot_row(document: Document) -> ShootRow:
    """The row of a Shoot."""
    metadata, spec = as_mapping(document.get("metadata")), as_mapping(document.get("spec"))
    status = as_mapping(document.get("status"))
    operation = as_mapping(status.get("lastOperation"))
    return ShootRow(
        namespace=_text(metadata.get("namespace")),
        name=_text(metadata.get("name")),
        provider=_text(as_mapping(spec.get("provider")).get("type")),
        region=_text(spec.get("region")),
        seed=_text(spec.get("seedName")),
        actual_seed=_text(status.get("seedName")),
        generation=_number(metadata.get("generation")),
        observed_generation=_number(status.get("observedGeneration")),
        operation=_text(operation.get("type")),
        operation_state=_text(operation.get("state")),
        progress=_number(operation.get("progress")),
        description=_text(operation.get("description")),
        is_deleting=bool(metadata.get("deletionTimestamp")),
        began_at=_began_at(metadata, operation),
    )


def _began_at(metadata: Document, operation: Document) -> str:
    known = {"Create": "creationTimestamp", "Delete": "deletionTimestamp"}.get(_text(operation.get("type")), "")
    return (
        _text(metadata.get(known)) or _text(operation.get("lastUpdateTime")) or _text(metadata.get("creationTimestamp"))
    )


def seed_row(document: Document) -> SeedRow:
    """The row of a Seed."""
    metadata, spec = as_mapping(document.get("metadata")), as_mapping(document.get("spec"))
    provider = as_mapping(spec.get("provider"))
    status = as_mapping(document.get("status"))
    ready = condition(document, "GardenletReady")
    scheduling = as_mapping(as_mapping(spec.get("settings")).get("scheduling"))
    return SeedRow(
        name=_text(metadata.get("name")),
        provider=_text(provider.get("type")),
        region=_text(provider.get("region")),
        ready=_text(ready.get("status")),
        reason=_text(ready.get("reason")),
        allocatable=_quantity(as_mapping(status.get("allocatable")).get("shoots")),
        is_visible=scheduling.get("visible") is not False,
        is_deleting=bool(metadata.get("deletionTimestamp")),
    )


def set_row(document: Document) -> SetRow:
    """The row of a ManagedSeedSet."""
    metadata, spec = as_mapping(document.get("metadata")), as_mapping(document.get("spec"))
    status = as_mapping(document.get("status"))
    pending = as_mapping(status.get("pendingReplica"))
    wanted = spec.get("replicas")
    return SetRow(
        name=_text(metadata.get("name")),
        wanted=1 if wanted is None else _number(wanted),
        replicas=_number(status.get("replicas")),
        ready=_number(status.get("readyReplicas")),
        pending=f"{_text(pending.get('name'))}: {_text(pending.get('reason'))}" if pending else "",
        is_observed=_number(status.get("observedGeneration")) == _number(metadata.get("generation")),
        is_deleting=bool(metadata.get("deletionTimestamp")),
    )


def autoscaler_row(document: Document) -> AutoscalerRow:
    """The row of a SeedAutoscaler."""
    desired = as_mapping(document.get("status")).get("desiredReplicas")
    return AutoscalerRow(
        name=_text(as_mapping(document.get("metadata")).get("name")),
        target=_text(as_mapping(as_mapping(document.get("spec")).get("scaleTargetRef")).get("name")),
        desired=None if desired is None else _number(desired),
    )


def usage_of(shoots: Iterable[ShootRow]) -> Mapping[str, int]:
    """Shoots per seed; one that moves counts on both."""
    used: Counter[str] = Counter()
    for shoot in shoots:
        used.update({shoot.seed, shoot.actual_seed} - {""})
    return used


def condition(document: Document, wanted: str) -> Document:
    """A condition of a status, or an empty mapping."""
    conditions = as_mapping(document.get("status")).get("conditions")
    for each in conditions if isinstance(conditions, list) else ():  # pyright: ignore[reportUnknownVariableType]
        found = as_mapping(each)  # pyright: ignore[reportUnknownArgumentType]
        if found.get("type") == wanted:
            return found
    return {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _number(value: object) -> int:
    return int(value) if isinstance(value, int | float) else 0


def _quantity(value: object) -> Fraction | None:
    if not isinstance(value, str | int | float):
        return None
    try:
        return parse_quantity(value)
    except (GardenbusError, ValueError):
        return None
