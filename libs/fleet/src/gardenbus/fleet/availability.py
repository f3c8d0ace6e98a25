"""Readiness and failure of a binding, read from its conditions.

A condition counts only for the generation that it has observed.
Source: KubeFleet's `pkg/utils/binding/binding.go` and `pkg/controllers/rollout/controller.go` (isBindingReady).
"""

import msgspec

from gardenbus.common.api.conditions import FALSE, TRUE, merge_conditions, observed_condition
from gardenbus.common.api.document import Document
from gardenbus.common.api.fleet.placement_parts import (
    BOUND,
    PREVIOUS_STATE,
    UNSCHEDULED,
    ResourceBinding,
)
from gardenbus.common.api.fleet.works import APPLIED, AVAILABLE, DIFF_REPORTED, PENDING_REASONS, UNTRACKABLE_REASONS
from gardenbus.common.api.views import condition_in
from gardenbus.fleet.eligibility import instant

ROLLOUT_STARTED = "RolloutStarted"
OVERRIDDEN = "Overridden"
WORK_SYNCHRONIZED = "WorkSynchronized"

STEPS = (OVERRIDDEN, WORK_SYNCHRONIZED, APPLIED, AVAILABLE)
"""The conditions of a binding that can fail, in order."""


class BindingReadiness(msgspec.Struct, frozen=True):
    """Readiness of a binding; `wait_seconds` until it is assumed ready, None when only an event can change it."""

    is_ready: bool
    wait_seconds: float | None = None


def is_true(binding: ResourceBinding, kind: str) -> bool:
    """Report whether a condition is True for the current generation."""
    condition = condition_in(binding.status.conditions, kind)
    return condition is not None and condition.is_fresh(TRUE, binding.metadata.generation)


def readiness(binding: ResourceBinding, *, unavailable_period_seconds: float, now: float) -> BindingReadiness:
    """Return the readiness of a binding at `now` (unix seconds).

    An untrackable resource is assumed available once it has been applied for the whole period.
    """
    if is_true(binding, DIFF_REPORTED):
        return BindingReadiness(is_ready=True)
    available = condition_in(binding.status.conditions, AVAILABLE)
    if available is None or not available.is_fresh(TRUE, binding.metadata.generation):
        return BindingReadiness(is_ready=False)
    if available.reason not in UNTRACKABLE_REASONS:
        return BindingReadiness(is_ready=True)
    left = instant(available.last_transition_time) + unavailable_period_seconds - now
    return BindingReadiness(is_ready=True) if left <= 0 else BindingReadiness(is_ready=False, wait_seconds=left)


def has_failed(binding: ResourceBinding) -> bool:
    """Report whether a step is False for a reason that is not pending."""
    conditions = (condition_in(binding.status.conditions, kind) for kind in STEPS)
    generation = binding.metadata.generation
    return any(each and each.is_fresh(FALSE, generation) and each.reason not in PENDING_REASONS for each in conditions)


def is_diff_reported(binding: ResourceBinding) -> bool:
    """Report whether the agent has only compared, and has reported the differences."""
    condition = condition_in(binding.status.conditions, DIFF_REPORTED)
    return condition is not None and condition.observed_generation == binding.metadata.generation


def may_be_placed(binding: ResourceBinding) -> bool:
    """Report whether resources may be in the cluster: the binding is Bound, or was before it became Unscheduled."""
    if binding.spec.state == BOUND:
        return True
    return binding.spec.state == UNSCHEDULED and binding.metadata.annotations.get(PREVIOUS_STATE) == BOUND


def with_condition(
    conditions: list[Document], kind: str, outcome: tuple[str, str, str], *, generation: int, now: str
) -> list[Document]:
    """Return the conditions with one set to a status, reason and message.

    `now` (RFC 3339) becomes its transition time if its status changes.
    An equal condition of the same generation is kept as it is.
    """
    condition = observed_condition(conditions, kind, outcome, generation=generation, now=now)
    return merge_conditions(conditions, condition)
