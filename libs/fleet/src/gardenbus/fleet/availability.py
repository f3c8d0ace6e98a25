"""What a binding's conditions say: whether it is ready, whether it has failed, and when to ask again.

Conditions speak of one generation of their binding; of any other they say nothing.
Source: KubeFleet's `pkg/utils/binding/binding.go` and `pkg/controllers/rollout/controller.go` (isBindingReady).
"""

from datetime import datetime

import msgspec

from gardenbus.common.resources.conditions import FALSE, TRUE, merge_conditions, observed_condition
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.placement_parts import (
    BOUND,
    PREVIOUS_STATE,
    UNSCHEDULED,
    PartCondition,
    ResourceBinding,
)
from gardenbus.common.resources.works import APPLIED, AVAILABLE, DIFF_REPORTED, PENDING_REASONS, UNTRACKABLE_REASONS

ROLLOUT_STARTED = "RolloutStarted"
OVERRIDDEN = "Overridden"
WORK_SYNCHRONIZED = "WorkSynchronized"

STEPS = (OVERRIDDEN, WORK_SYNCHRONIZED, APPLIED, AVAILABLE)
"""What can fail of a binding, in the order in which it happens."""


class Readiness(msgspec.Struct, frozen=True):
    """Whether a binding serves; `wait_seconds` until it will be taken to, None when only news can tell."""

    is_ready: bool
    wait_seconds: float | None = None


def condition_of(binding: ResourceBinding, kind: str) -> PartCondition | None:
    """The condition of a type, or None."""
    return next((each for each in binding.status.conditions if each.type == kind), None)


def is_true(binding: ResourceBinding, kind: str) -> bool:
    """Whether a condition is True of the present generation."""
    condition = condition_of(binding, kind)
    return condition is not None and condition.is_fresh(TRUE, binding.metadata.generation)


def is_false(binding: ResourceBinding, kind: str) -> bool:
    """Whether a condition is False of the present generation."""
    condition = condition_of(binding, kind)
    return condition is not None and condition.is_fresh(FALSE, binding.metadata.generation)


def readiness(binding: ResourceBinding, *, unavailable_period_seconds: float, now: float) -> Readiness:
    """Whether a binding is ready at `now` (unix seconds).

    What cannot be observed is taken to work once it has been applied for the period.
    """
    if is_true(binding, DIFF_REPORTED):
        return Readiness(is_ready=True)
    available = condition_of(binding, AVAILABLE)
    if available is None or not available.is_fresh(TRUE, binding.metadata.generation):
        return Readiness(is_ready=False)
    if available.reason not in UNTRACKABLE_REASONS:
        return Readiness(is_ready=True)
    since = _unix(available.last_transition_time)
    left = 0.0 if since is None else since + unavailable_period_seconds - now
    return Readiness(is_ready=True) if left <= 0 else Readiness(is_ready=False, wait_seconds=left)


def has_failed(binding: ResourceBinding) -> bool:
    """Whether something has come to an end that is no good: False, and not for being under way still."""
    conditions = (condition_of(binding, kind) for kind in STEPS)
    generation = binding.metadata.generation
    return any(each and each.is_fresh(FALSE, generation) and each.reason not in PENDING_REASONS for each in conditions)


def is_diff_reported(binding: ResourceBinding) -> bool:
    """Whether an agent only compared, and has said what it found."""
    condition = condition_of(binding, DIFF_REPORTED)
    return condition is not None and condition.observed_generation == binding.metadata.generation


def may_be_placed(binding: ResourceBinding) -> bool:
    """Whether something of it may be in the cluster: it is Bound, or was before it was given up."""
    if binding.spec.state == BOUND:
        return True
    return binding.spec.state == UNSCHEDULED and binding.metadata.annotations.get(PREVIOUS_STATE) == BOUND


def with_condition(  # noqa: PLR0913  (the fields of a condition)
    conditions: list[Document], kind: str, *, status: str, reason: str, message: str, generation: int, now: str
) -> list[Document]:
    """The conditions with one set; `now` (RFC 3339) is when its status changes, if it does.

    One that says this already, of the same generation, stays as it is.
    """
    said = observed_condition(conditions, kind, (status, reason, message), generation=generation, now=now)
    return merge_conditions(conditions, said)


def _unix(instant: str) -> float | None:
    try:
        return datetime.fromisoformat(instant).timestamp()
    except ValueError:
        return None
