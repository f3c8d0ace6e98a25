"""What is written about a shoot that moves to another seed: whether that seed is ready, and what must be kept for it.

| destination                                                            | ReadyForMigration                |
|------------------------------------------------------------------------|----------------------------------|
| is being deleted                                                       | False, DestinationSeedInDeletion |
| is gone, runs another version than the source, has not seen its own    | False, DestinationSeedUnready    |
| spec, or lacks GardenletReady or SeedSystemComponentsHealthy           |                                  |
| otherwise                                                              | True, DestinationSeedReady       |

Source of the rules: `pkg/controllermanager/controller/shoot/{migration,shootstate}` of Gardener.
"""

from datetime import datetime
from typing import Any, NamedTuple, cast

from gardenbus.common.ports.clock import timestamp
from gardenbus.common.resources.conditions import (
    FALSE,
    TRUE,
    build_condition,
    condition_status,
    conditions_of,
    get_condition,
    get_or_init,
    merge_conditions,
)
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.migrating import READY_FOR_MIGRATION
from gardenbus.common.resources.seeds import GARDENLET_READY, SEED_SYSTEM_COMPONENTS_HEALTHY

STATE_FINALIZER = "core.gardener.cloud/shootstate"
"""On a ShootState for as long as a migration may need it."""

NEEDED_CONDITIONS = (GARDENLET_READY, SEED_SYSTEM_COMPONENTS_HEALTHY)


class Readiness(NamedTuple):
    """What the constraint shall say. `message` begins with the seed's name."""

    status: str
    reason: str
    message: str


def seeds_of(shoot: Document) -> tuple[str, str]:
    """Where a shoot stands and where it shall ("" for nowhere)."""
    source: Any = section(shoot, "status").get("seedName")
    destination: Any = section(shoot, "spec").get("seedName")
    return str(source or ""), str(destination or "")


def is_moving(shoot: Document) -> bool:
    """Whether it stands on another seed than it shall."""
    source, destination = seeds_of(shoot)
    return bool(source) and bool(destination) and source != destination


def destination_readiness(name: str, destination: Document | None, source: Document | None) -> Readiness:
    """Judge a destination by the module's table; `source` tells which version it must run."""
    if destination is not None and section(destination, "metadata").get("deletionTimestamp"):
        return Readiness(FALSE, "DestinationSeedInDeletion", f"{_called(name)} is being deleted.")
    problem = _problem(destination, source)
    if problem:
        return Readiness(FALSE, "DestinationSeedUnready", f"{_called(name)} {problem}")
    return Readiness(TRUE, "DestinationSeedReady", f"{_called(name)} is ready to take the control plane.")


def with_readiness(shoot: Document, readiness: Readiness, now: datetime) -> Document | None:
    """The Shoot with its constraint; None when the same verdict on the same seed stands already."""
    constraints = conditions_of(shoot, "constraints")
    old = get_condition(constraints, READY_FOR_MIGRATION)
    if old is not None and _verdict(old) == _verdict(readiness._asdict()):
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
    """Whether the ShootState may still be needed: from Migrate on until Restore has succeeded, or Reconcile follows."""
    operation = section(shoot, "status", "lastOperation")
    kind, state = operation.get("type"), operation.get("state")
    return kind == "Migrate" or (kind == "Restore" and state != "Succeeded")


def with_state_held(shoot_state: Document, *, held: bool) -> Document | None:
    """The ShootState with its finalizer set or taken off; None when that is so already."""
    metadata = section(shoot_state, "metadata")
    finalizers = cast("list[str]", metadata.get("finalizers") or [])
    if held == (STATE_FINALIZER in finalizers) or (held and metadata.get("deletionTimestamp")):
        return None
    others = [each for each in finalizers if each != STATE_FINALIZER]
    new = [*others, STATE_FINALIZER] if held else others
    return {**shoot_state, "metadata": {**metadata, "finalizers": new}}


def matters(old: Document | None, new: Document | None) -> bool:
    """Whether a change of a Seed may change what its readiness is."""
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


def _called(name: str) -> str:
    return f'Seed "{name}"'


def _verdict(constraint: Document) -> tuple[str, str, str]:
    seed = '"'.join(str(constraint.get("message") or "").split('"')[:2])
    return str(constraint.get("status")), str(constraint.get("reason")), seed


def _with_constraints(shoot: Document, constraints: list[Document]) -> Document:
    status = {name: value for name, value in section(shoot, "status").items() if name != "constraints"}
    if constraints:
        status["constraints"] = constraints
    return {**shoot, "status": status}
