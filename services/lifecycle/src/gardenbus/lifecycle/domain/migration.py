"""Readiness of a migration's destination seed, and the need for the ShootState.

| destination                                                            | ReadyForMigration                |
|------------------------------------------------------------------------|----------------------------------|
| is being deleted                                                       | False, DestinationSeedInDeletion |
| is gone, runs another version than the source, has not seen its own    | False, DestinationSeedUnready    |
| spec, or lacks GardenletReady or SeedSystemComponentsHealthy           |                                  |
| otherwise                                                              | True, DestinationSeedReady       |

Source of the rules: `pkg/controllermanager/controller/shoot/{migration,shootstate}` of Gardener.
"""

from datetime import datetime
from typing import NamedTuple, cast

from gardenbus.common.api.conditions import (
    FALSE,
    TRUE,
    build_condition,
    condition_status,
    conditions_of,
    get_condition,
    get_or_init,
    merge_conditions,
)
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.migration_feasibility import READY_FOR_MIGRATION, seeds_of
from gardenbus.common.api.garden.seeds import GARDENLET_READY, SEED_SYSTEM_COMPONENTS_HEALTHY
from gardenbus.common.ports.clock import timestamp

STATE_FINALIZER = "core.gardener.cloud/shootstate"
"""On a ShootState for as long as a migration may need it."""

NEEDED_CONDITIONS = (GARDENLET_READY, SEED_SYSTEM_COMPONENTS_HEALTHY)


class DestinationReadiness(NamedTuple):
    """Content of the constraint. `message` begins with the seed's name."""

    status: str
    reason: str
    message: str


def is_moving(shoot: Document) -> bool:
    """True if the seeds of spec and status are set and differ."""
    destination, source = seeds_of(shoot)
    return bool(source) and bool(destination) and source != destination


def destination_readiness(name: str, destination: Document | None, source: Document | None) -> DestinationReadiness:
    """Readiness by the module's table; `source` states the version that the destination must run."""
    if destination is not None and section(destination, "metadata").get("deletionTimestamp"):
        return DestinationReadiness(FALSE, "DestinationSeedInDeletion", f"{_quoted(name)} is being deleted.")
    problem = _problem(destination, source)
    if problem:
        return DestinationReadiness(FALSE, "DestinationSeedUnready", f"{_quoted(name)} {problem}")
    return DestinationReadiness(TRUE, "DestinationSeedReady", f"{_quoted(name)} is ready to take the control plane.")


def with_readiness(shoot: Document, readiness: DestinationReadiness, now: datetime) -> Document | None:
    """The Shoot with its constraint; None when it has the same status and reason for the same seed already."""
    constraints = conditions_of(shoot, "constraints")
    old = get_condition(constraints, READY_FOR_MIGRATION)
    if old is not None and _compared(old) == _compared(readiness._asdict()):
        return None
    constraint, _ = build_condition(
        get_or_init(constraints, READY_FOR_MIGRATION, timestamp(now)), now=timestamp(now), **readiness._asdict()
    )
    return _with_constraints(shoot, merge_conditions(constraints, constraint))


def without_readiness(shoot: Document) -> Document | None:
    """The Shoot without the constraint; None when it has none."""
    constraints = conditions_of(shoot, "constraints")
    left = [each for each in constraints if each.get("type") != READY_FOR_MIGRATION]
    return None if len(left) == len(constraints) else _with_constraints(shoot, left)


def needs_state(shoot: Document) -> bool:
    """True if the ShootState may still be needed: from Migrate on until Restore has succeeded, or Reconcile follows."""
    operation = section(shoot, "status", "lastOperation")
    kind, state = operation.get("type"), operation.get("state")
    return kind == "Migrate" or (kind == "Restore" and state != "Succeeded")


def with_state_finalizer(shoot_state: Document, *, held: bool) -> Document | None:
    """The ShootState with or without its finalizer; None when nothing changes."""
    metadata = section(shoot_state, "metadata")
    finalizers = cast("list[str]", metadata.get("finalizers") or [])
    if held == (STATE_FINALIZER in finalizers) or (held and metadata.get("deletionTimestamp")):
        return None
    others = [each for each in finalizers if each != STATE_FINALIZER]
    new = [*others, STATE_FINALIZER] if held else others
    return {**shoot_state, "metadata": {**metadata, "finalizers": new}}


def affects_readiness(old: Document | None, new: Document | None) -> bool:
    """True if a change of a Seed may change its readiness as a destination."""
    return _aspects(old) != _aspects(new)


def _aspects(seed: Document | None) -> object:
    if seed is None:
        return None
    metadata, status = section(seed, "metadata"), section(seed, "status")
    return (bool(metadata.get("deletionTimestamp")), section(status, "gardener").get("version"), _problem(seed, None))


def _problem(destination: Document | None, source: Document | None) -> str:
    if destination is None:
        return "is not there."
    status = section(destination, "status")
    wanted = section(source or {}, "status", "gardener").get("version")
    actual = section(status, "gardener").get("version")
    if wanted and actual != wanted:
        return f"runs version {actual or 'unknown'} of the gardenlet, and its source {wanted}."
    if status.get("observedGeneration") != section(destination, "metadata").get("generation"):
        return "has not taken up its latest spec yet."
    conditions = conditions_of(destination)
    for kind in NEEDED_CONDITIONS:
        if (found := condition_status(conditions, kind)) != TRUE:
            return f"is not ready: its condition {kind} is {found or 'missing'}."
    return ""


def _quoted(name: str) -> str:
    return f'Seed "{name}"'


def _compared(constraint: Document) -> tuple[str, str, str]:
    seed = '"'.join(str(constraint.get("message") or "").split('"')[:2])
    return str(constraint.get("status")), str(constraint.get("reason")), seed


def _with_constraints(shoot: Document, constraints: list[Document]) -> Document:
    status = {name: value for name, value in section(shoot, "status").items() if name != "constraints"}
    if constraints:
        status["constraints"] = constraints
    return {**shoot, "status": status}
