"""A seed takes shoots while its usage is below status.allocatable.shoots."""

from gardenbus.scheduling.filters.context import FilterContext
from gardenbus.scheduling.filters.row import Filter
from gardenbus.scheduling.seed_candidates import SeedCandidate


def full_because(usage: int, capacity: int | None) -> str:
    """The reason why there is no room; "" when there is. A capacity of None has no limit."""
    return "" if capacity is None or usage < capacity else "seed has no capacity left for shoots"


def _reason(context: FilterContext, candidate: SeedCandidate) -> str:
    return full_because(context.usage.get(candidate.name, 0), candidate.capacity)


CAPACITY = Filter(
    "capacity",
    removes="are full",
    unblocked_by=("seed", "usage"),
    reason=_reason,
    suggestion=lambda _context, seeds, _: f"a shoot leaves {seeds}, or status.allocatable.shoots is raised there",
)
