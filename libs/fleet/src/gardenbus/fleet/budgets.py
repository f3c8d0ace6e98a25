"""Budgets of a rollout: the bindings that may be unavailable, or surplus, at once.

Source: KubeFleet's `pkg/controllers/rollout/controller.go` (calculateMaxToRemove, calculateMaxToAdd and
calculateRealTarget), and Kubernetes' `GetScaledValueFromIntOrPercent`, rounding up.
"""

import re

import msgspec

from gardenbus.common.api.fleet.placements import PICK_FIXED, PICK_N, Placement
from gardenbus.common.errors import InvalidResource

_PERCENT = re.compile(r"([0-9]{1,9})%")
_NUMBER = re.compile(r"[0-9]{1,9}")


class BindingCounts(msgspec.Struct, frozen=True):
    """The bindings of a placement, counted."""

    target: int
    """Number of clusters wanted."""

    ready: int
    """Ready bindings, deleting ones among them."""

    leaving: int
    """Ready bindings that are being deleted: they may become unavailable at any time."""

    can_be_ready: int
    """Bindings that are ready or may become so: all that were rolled out and have not failed."""


class RolloutBudget(msgspec.Struct, frozen=True):
    """Limits of one rollout step. A limit of zero or less allows nothing."""

    removals: int
    """Ready bindings that may become unavailable."""

    additions: int
    """Bindings that may be rolled out."""

    least: int
    """Number of bindings that have to be ready; zero or less: none."""


def budget_of(counts: BindingCounts, *, max_unavailable: int | str, max_surge: int | str) -> RolloutBudget:
    """Return the budget for these counts. Raises InvalidResource when a limit is neither a number nor percent."""
    least = counts.target - scaled(max_unavailable, counts.target)
    return RolloutBudget(
        removals=counts.ready - counts.leaving - least,
        additions=counts.target + scaled(max_surge, counts.target) - counts.can_be_ready,
        least=least,
    )


def target_of(placement: Placement, chosen: int) -> int:
    """Return the number of clusters that a placement wants; `chosen` bindings are Scheduled or Bound."""
    policy = placement.policy
    if policy.placement_type == PICK_N:
        return policy.number_of_clusters or 0
    if policy.placement_type == PICK_FIXED:
        return len(policy.cluster_names)
    return chosen


def scaled(limit: int | str, total: int) -> int:
    """Return a limit as a number; percent of the total are rounded up. Raises InvalidResource when it is neither."""
    if isinstance(limit, int):
        return limit
    if match := _PERCENT.fullmatch(limit):
        return -(-int(match[1]) * total // 100)
    if _NUMBER.fullmatch(limit):
        return int(limit)
    raise InvalidResource(f"{limit!r} is neither a number nor percent")
