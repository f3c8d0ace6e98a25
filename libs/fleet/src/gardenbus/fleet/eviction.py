"""Whether one placement may be taken off one cluster, once.

Source: KubeFleet's `pkg/controllers/clusterresourceplacementeviction/controller.go`.
"""

from collections.abc import Sequence

import msgspec

from gardenbus.common.resources.conditions import FALSE
from gardenbus.common.resources.placement_parts import DisruptionBudget, Eviction, ResourceBinding
from gardenbus.common.resources.placements import PICK_ALL, PICK_FIXED, PICK_N, Placement
from gardenbus.common.resources.works import AVAILABLE
from gardenbus.fleet.availability import has_failed, is_diff_reported, is_true, may_be_placed
from gardenbus.fleet.budgets import scaled

VALID = "Valid"
EXECUTED = "Executed"

VALID_REASON = "ClusterResourcePlacementEvictionValid"
INVALID_REASON = "ClusterResourcePlacementEvictionInvalid"
EXECUTED_REASON = "ClusterResourcePlacementEvictionExecuted"
NOT_EXECUTED_REASON = "ClusterResourcePlacementEvictionNotExecuted"

LEAVING = "the placement is already being taken off the cluster"


class Verdict(msgspec.Struct, frozen=True):
    """What becomes of an eviction; it is told in its conditions, and final."""

    is_valid: bool
    """Whether it makes sense at all."""

    message: str
    """Why, or why not."""

    is_executed: bool = False
    """Whether the placement goes, or goes already."""

    binding: str = ""
    """The binding to delete; "" for none."""


class Availability(msgspec.Struct, frozen=True):
    """How a placement's bindings are, and how many of them an eviction may take."""

    available: int
    """Bindings that serve."""

    total: int
    """All bindings, whatever their state."""

    allowed: int
    """How many may go."""


def is_settled(eviction: Eviction) -> bool:
    """Whether it has been judged: nothing more happens to it."""
    conditions = {each.type: each for each in eviction.status.conditions}
    valid = conditions.get(VALID)
    is_invalid = valid is not None and valid.is_fresh(FALSE, eviction.metadata.generation)
    return is_invalid or EXECUTED in conditions


def judge(
    eviction: Eviction,
    placement: Placement | None,
    bindings: Sequence[ResourceBinding],
    budget: DisruptionBudget | None,
) -> Verdict:
    """Judge an eviction on the bindings of its placement, those on their way out among them.

    Raises InvalidResource when the budget is no number.
    """
    if placement is None:
        return Verdict(is_valid=False, message=f"there is no placement {eviction.spec.placement_name}")
    if objection := _objection(placement):
        return Verdict(is_valid=False, message=objection)
    of_cluster = [each for each in bindings if each.spec.target_cluster == eviction.spec.cluster_name]
    if len(of_cluster) != 1:
        count = f"there are {len(of_cluster)}" if of_cluster else "there is none"
        message = f"one binding of cluster {eviction.spec.cluster_name} is needed, and {count}"
        return Verdict(is_valid=False, message=message)
    return _judge_binding(of_cluster[0], placement, bindings, budget)


def _objection(placement: Placement) -> str:
    if placement.metadata.deletion_timestamp is not None:
        return "the placement is being deleted"
    if placement.policy.placement_type == PICK_FIXED:
        return "the placement names its clusters (PickFixed): take the name out of its policy"
    return ""


def _judge_binding(
    binding: ResourceBinding,
    placement: Placement,
    bindings: Sequence[ResourceBinding],
    budget: DisruptionBudget | None,
) -> Verdict:
    if binding.is_deleting:
        return Verdict(is_valid=True, is_executed=True, message=LEAVING)
    if not may_be_placed(binding):
        return Verdict(is_valid=True, message="nothing has been placed on the cluster yet")
    if has_failed(binding) or is_diff_reported(binding):
        return Verdict(is_valid=True, is_executed=True, binding=binding.name, message="it does not serve there")
    if budget is None:
        return Verdict(is_valid=True, is_executed=True, binding=binding.name, message="there is no disruption budget")
    if placement.policy.placement_type == PICK_ALL and not _fits_pick_all(budget):
        return Verdict(
            is_valid=True,
            message="the disruption budget of a PickAll placement must be minAvailable, as a number",
        )
    found = availability_of(placement, bindings, budget)
    counted = f"{found.available} of {found.total} bindings are available"
    if found.allowed <= 0:
        return Verdict(is_valid=True, message=f"the disruption budget allows none to go: {counted}")
    return Verdict(
        is_valid=True,
        is_executed=True,
        binding=binding.name,
        message=f"the disruption budget allows {found.allowed} to go: {counted}",
    )


def availability_of(
    placement: Placement, bindings: Sequence[ResourceBinding], budget: DisruptionBudget
) -> Availability:
    """How many bindings serve, and how many the budget lets go. Percent are of the number asked for (PickN)."""
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
