"""How much of a placement may be missing, or too much, at once.

Source: KubeFleet's `pkg/controllers/rollout/controller.go` (calculateMaxToRemove, calculateMaxToAdd and
calculateRealTarget), and Kubernetes' `GetScaledValueFromIntOrPercent`, rounding up.
"""

import re

import msgspec

from gardenbus.common.errors import InvalidResource
from gardenbus.common.resources.placements import PICK_FIXED, PICK_N, Placement

_PERCENT = re.compile(r"([0-9]{1,9})%")
_NUMBER = re.compile(r"[0-9]{1,9}")


class Counts(msgspec.Struct, frozen=True):
    """The bindings of a placement, counted."""

    target: int
    """How many clusters are wanted."""

    ready: int
    """Bindings that serve, those on their way out among them."""

    leaving: int
    """Of these, those on their way out: they may stop to serve at any time."""

    can_be_ready: int
    """Bindings that serve or may come to: all that were handed to an agent, unless they failed."""


class Budget(msgspec.Struct, frozen=True):
    """What one step of a rollout may do. Both can be negative: nothing may be done then."""

    removals: int
    """Ready bindings that may stop to serve."""

    additions: int
    """Bindings that may be handed to an agent."""

    least: int
    """How many have to serve; zero or less: none has to."""


def budget_of(counts: Counts, *, max_unavailable: int | str, max_surge: int | str) -> Budget:
    """The budget that these counts leave. Raises InvalidResource when a limit is neither a number nor percent."""
    least = counts.target - scaled(max_unavailable, counts.target)
    return Budget(
        removals=counts.ready - counts.leaving - least,
        additions=counts.target + scaled(max_surge, counts.target) - counts.can_be_ready,
        least=least,
    )


def target_of(placement: Placement, chosen: int) -> int:
    """How many clusters a placement wants; `chosen` are those that are Scheduled or Bound."""
    policy = placement.policy
    if policy.placement_type == PICK_N:
        return policy.number_of_clusters or 0
    if policy.placement_type == PICK_FIXED:
        return len(policy.cluster_names)
    return chosen


def scaled(limit: int | str, total: int) -> int:
    """A limit as a number: percent of the total are rounded up. Raises InvalidResource when it is neither."""
    if isinstance(limit, int):
        return limit
    if match := _PERCENT.fullmatch(limit):
        return -(-int(match[1]) * total // 100)
    if _NUMBER.fullmatch(limit):
        return int(limit)
    raise InvalidResource(f"{limit!r} is neither a number nor percent")
