"""Assessment of one eviction of a placement from a cluster.

Source: KubeFleet's `pkg/controllers/clusterresourceplacementeviction/controller.go`.
"""

from collections.abc import Sequence

import msgspec

from gardenbus.common.api.conditions import FALSE
from gardenbus.common.api.fleet.placement_parts import DisruptionBudget, Eviction, ResourceBinding
from gardenbus.common.api.fleet.placements import PICK_ALL, PICK_FIXED, PICK_N, Placement
from gardenbus.common.api.fleet.works import AVAILABLE
from gardenbus.fleet.availability import has_failed, is_diff_reported, is_true, may_be_placed
from gardenbus.fleet.budgets import scaled

VALID = "Valid"
EXECUTED = "Executed"

VALID_REASON = "ClusterResourcePlacementEvictionValid"
INVALID_REASON = "ClusterResourcePlacementEvictionInvalid"
EXECUTED_REASON = "ClusterResourcePlacementEvictionExecuted"
NOT_EXECUTED_REASON = "ClusterResourcePlacementEvictionNotExecuted"

ALREADY_LEAVING = "the placement is already being taken off the cluster"


class EvictionResult(msgspec.Struct, frozen=True):
    """Final result of an eviction, as its conditions record it."""

    is_valid: bool
    """True when the eviction can be assessed."""

    message: str
    """Reason in words."""

    is_executed: bool = False
    """True when the binding is deleted, or is being deleted already."""

    binding: str = ""
    """The binding to delete; "" for none."""


class Availability(msgspec.Struct, frozen=True):
    """Available bindings of a placement, and the number that may be evicted."""

    available: int
    """Bindings that are available."""

    total: int
    """All bindings, in any state."""

    allowed: int
    """Number of allowed evictions."""


def is_terminal(eviction: Eviction) -> bool:
    """Report whether an eviction has its final result."""
    conditions = {each.type: each for each in eviction.status.conditions}
    valid = conditions.get(VALID)
    is_invalid = valid is not None and valid.is_fresh(FALSE, eviction.metadata.generation)
    return is_invalid or EXECUTED in conditions


def assess_eviction(
    eviction: Eviction,
    placement: Placement | None,
    bindings: Sequence[ResourceBinding],
    budget: DisruptionBudget | None,
) -> EvictionResult:
    """Assess an eviction against all bindings of its placement, deleting ones too.

    Raises InvalidResource when the budget is no number.
    """
    if placement is None:
        return EvictionResult(is_valid=False, message=f"there is no placement {eviction.spec.placement_name}")
    if invalid_reason := _invalid_reason(placement):
        return EvictionResult(is_valid=False, message=invalid_reason)
    of_cluster = [each for each in bindings if each.spec.target_cluster == eviction.spec.cluster_name]
    if len(of_cluster) != 1:
        count = f"there are {len(of_cluster)}" if of_cluster else "there is none"
        message = f"one binding of cluster {eviction.spec.cluster_name} is needed, and {count}"
        return EvictionResult(is_valid=False, message=message)
    return _assess_binding(of_cluster[0], placement, bindings, budget)


def _invalid_reason(placement: Placement) -> str:
    if placement.metadata.deletion_timestamp is not None:
        return "the placement is being deleted"
    if placement.policy.placement_type == PICK_FIXED:
        return "the placement names its clusters (PickFixed): take the name out of its policy"
    return ""


def _assess_binding(
    binding: ResourceBinding,
    placement: Placement,
    bindings: Sequence[ResourceBinding],
    budget: DisruptionBudget | None,
) -> EvictionResult:
    if binding.is_deleting:
        return EvictionResult(is_valid=True, is_executed=True, message=ALREADY_LEAVING)
    if not may_be_placed(binding):
        return EvictionResult(is_valid=True, message="nothing has been placed on the cluster yet")
    if has_failed(binding) or is_diff_reported(binding):
        return EvictionResult(is_valid=True, is_executed=True, binding=binding.name, message="it does not serve there")
    if budget is None:
        return EvictionResult(
            is_valid=True, is_executed=True, binding=binding.name, message="there is no disruption budget"
        )
    if placement.policy.placement_type == PICK_ALL and not _fits_pick_all(budget):
        return EvictionResult(
            is_valid=True,
            message="the disruption budget of a PickAll placement must be minAvailable, as a number",
        )
    found = availability_of(placement, bindings, budget)
    counted = f"{found.available} of {found.total} bindings are available"
    if found.allowed <= 0:
        return EvictionResult(is_valid=True, message=f"the disruption budget allows none to go: {counted}")
    return EvictionResult(
        is_valid=True,
        is_executed=True,
        binding=binding.name,
        message=f"the disruption budget allows {found.allowed} to go: {counted}",
    )


def availability_of(
    placement: Placement, bindings: Sequence[ResourceBinding], budget: DisruptionBudget
) -> Availability:
    """Count the available bindings and the allowed evictions. Percent refer to the wanted number (PickN)."""
    available = sum(is_true(each, AVAILABLE) for each in bindings)
    policy = placement.policy
    desired = (policy.number_of_clusters or 0) if policy.placement_type == PICK_N else 0
    spec = budget.spec
    allowed = 0
    if spec.max_unavailable is not None:
        allowed = scaled(spec.max_unavailable, desired) - (len(bindings) - available)
    elif spec.min_available is not None:
        allowed = available - scaled(spec.min_available, desired)
    return Availability(available, len(bindings), allowed)


def _fits_pick_all(budget: DisruptionBudget) -> bool:
    return budget.spec.max_unavailable is None and not isinstance(budget.spec.min_available, str)
