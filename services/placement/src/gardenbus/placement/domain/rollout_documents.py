"""Documents that rollouts and evictions write: bindings with their conditions, results, and claims.

A writer that uses a placement's budgets first increments the step counter of the latest resource snapshot, and then
reads the bindings: each of its writes holds only while the snapshot keeps that version. Of several concurrent writers
only the last to increment writes, and it has read what the others wrote.
"""

from gardenbus.common.api.conditions import FALSE, TRUE, conditions_of
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.fleet.overrides import AppliedOverrides
from gardenbus.common.api.fleet.placement_parts import BOUND
from gardenbus.fleet.availability import ROLLOUT_STARTED, with_condition
from gardenbus.placement.domain.bindings import with_overrides
from gardenbus.placement.domain.eviction import (
    EXECUTED,
    EXECUTED_REASON,
    INVALID_REASON,
    NOT_EXECUTED_REASON,
    VALID,
    VALID_REASON,
    EvictionResult,
)

STEP = "placement.gardenbus.io/step"
"""Annotation of the latest resource snapshot: counter of writers that use the placement's budgets."""

EVICTS = "placement.gardenbus.io/evicts"
"""Annotation of an eviction: uid of the binding that it is going to delete."""

STARTED = (TRUE, "RolloutStarted", "The latest resources are being rolled out.")
WAITING = (
    FALSE,
    "RolloutNotStartedYet",
    "The latest resources wait for other clusters, within maxUnavailable and maxSurge.",
)


def rolled_out(binding: Document, resource_snapshot: str, overrides: AppliedOverrides, now: str) -> Document:
    """Return a binding made Bound with resources as overrides want them; `now` is RFC 3339. Its generation grows."""
    spec = {**section(binding, "spec"), "state": BOUND, "resourceSnapshotName": resource_snapshot}
    changed = with_overrides({**binding, "spec": spec}, overrides)
    return _with_rollout_started(changed, _generation(binding) + 1, now, started=True)


def with_strategy(binding: Document, apply_strategy: Document | None) -> Document:
    """Return a binding with an apply strategy."""
    spec = {name: value for name, value in section(binding, "spec").items() if name != "applyStrategy"}
    if apply_strategy is not None:
        spec["applyStrategy"] = apply_strategy
    return {**binding, "spec": spec}


def with_rollout(binding: Document, now: str, *, started: bool) -> Document:
    """Return a binding with its condition RolloutStarted."""
    return _with_rollout_started(binding, _generation(binding), now, started=started)


def with_eviction_result(eviction: Document, result: EvictionResult, now: str) -> Document:
    """Return an eviction with its final result."""
    generation, message = _generation(eviction), f"{result.message[:1].upper()}{result.message[1:]}."
    valid = (TRUE, VALID_REASON, "The eviction can be judged.") if result.is_valid else (FALSE, INVALID_REASON, message)
    conditions = with_condition(conditions_of(eviction), VALID, valid, generation=generation, now=now)
    if result.is_valid:
        status, reason = (TRUE, EXECUTED_REASON) if result.is_executed else (FALSE, NOT_EXECUTED_REASON)
        executed = (status, reason, message)
        conditions = with_condition(conditions, EXECUTED, executed, generation=generation, now=now)
    return _with_conditions(eviction, conditions)


def _with_rollout_started(binding: Document, generation: int, now: str, *, started: bool) -> Document:
    outcome = STARTED if started else WAITING
    conditions = with_condition(conditions_of(binding), ROLLOUT_STARTED, outcome, generation=generation, now=now)
    return _with_conditions(binding, conditions)


def _with_conditions(document: Document, conditions: list[Document]) -> Document:
    return {**document, "status": {**section(document, "status"), "conditions": conditions}}


def _generation(document: Document) -> int:
    return int(section(document, "metadata").get("generation") or 1)
